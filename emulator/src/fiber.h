#pragma once
// Fibers: stacks to switch between. The sanitizers are told of each switch.

#include <cstddef>

namespace levin::emulator {

/// A context to switch back to: a suspended fiber, or the host thread while a fiber runs.
struct Context {
  void* stack_pointer = nullptr;
  void* asan_fake_stack = nullptr;
  const void* stack_bottom = nullptr;  ///< lowest address of the fiber's or host thread's stack
  std::size_t stack_size = 0;
  void* tsan_fiber = nullptr;
};

class Fiber {
 public:
  /// `number` is the index of the fiber among its owner's.
  explicit Fiber(unsigned number);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Makes the fiber restart in entry(argument) at the next switch to it, whatever it was doing; entry must not return.
  /// To the thread sanitizer a fiber is the same thread for all its life.
  void prepare(void (*entry)(void*), void* argument);
  /// Sets the name in the thread sanitizer's reports.
  void name(const char* name);

  /// Tells the thread sanitizer that the fiber's writes are visible after acquire(tag), for a fiber that never resumes.
  void release(const void* tag);

  Context context;

 private:
  char* memory_ = nullptr;
  std::size_t unused_;  ///< bytes at the top of the stack
};

/// Switches from `from` to `to`. `leave` says whether `from` will be resumed.
enum class Leave { for_a_while, for_good };
void switch_context(Context& from, Context& to, Leave leave);
/// Resets the pages to zeros, as new ones, and makes the thread sanitizer forget their accesses.
void renew_pages(void* p, std::size_t bytes);
/// Must be called first by a fiber's entry, with the context that it was entered from.
void fiber_entered(Context& from);

}  // namespace levin::emulator
