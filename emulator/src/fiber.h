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
  /// `number`: how many its owner has made before.
  explicit Fiber(unsigned number);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Makes the fiber begin anew in entry(argument) at the next switch to it, whatever it was doing; entry must not
  /// return. To the thread sanitizer a fiber is one thread for all its life.
  void prepare(void (*entry)(void*), void* argument);
  /// For the thread sanitizer's reports.
  void name(const char* name);

  /// Tells the thread sanitizer: what the fiber did is seen after acquire(tag). For one that never comes back.
  void release(const void* tag);

  Context context;

 private:
  char* memory_ = nullptr;
  std::size_t unused_;  ///< bytes at the stack's top
};

/// Leaves `from` for `to`, to come back, or not.
enum class Leave { for_a_while, for_good };
void switch_context(Context& from, Context& to, Leave leave);
/// Gives the pages the contents of new ones, zeros, and makes the thread sanitizer forget who touched them.
void renew_pages(void* p, std::size_t bytes);
/// The first thing a fiber's entry calls, with the context it was entered from.
void fiber_entered(Context& from);

}  // namespace levin::emulator
