#pragma once
// A stack that one can switch to and from. The sanitizers are told of each switch.

#include <cstddef>

namespace levin::emulator {

/// A place to come back to: a suspended fiber, or the host's thread while a fiber runs.
struct Context {
  void* stack_pointer = nullptr;
  void* asan_fake_stack = nullptr;
  const void* stack_bottom = nullptr;  ///< lowest address, of a fiber or of the host's thread
  std::size_t stack_size = 0;
  void* tsan_fiber = nullptr;
};

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Makes the fiber begin anew in entry(argument) at the next switch to it; entry must not return.
  void prepare(void (*entry)(void*), void* argument);
  /// Forgets what the fiber was doing, also in the middle of a function.
  void abandon();

  Context context;

 private:
  char* memory_ = nullptr;
};

/// Leaves `from`, which may be gone back to, for `to`.
void switch_context(Context& from, Context& to);
/// The first thing a fiber's entry calls, with the context it was entered from.
void fiber_entered(Context& from);

}  // namespace levin::emulator
