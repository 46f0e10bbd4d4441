#include "fiber.h"

#include "msan.h"
#include "poison.h"
#include "tsan.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#if defined(LEVIN_EMULATOR_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__)
#error "the emulator switches stacks on x86-64 only"
#endif

// Saves the callee-saved registers, switches stacks, and returns on the other one.
extern "C" void levin_switch_stacks(void** from, void* to);
asm(R"(
.text
.p2align 4
.globl levin_switch_stacks
.type levin_switch_stacks, @function
levin_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size levin_switch_stacks, .-levin_switch_stacks

.p2align 4
.globl levin_fiber_start
.type levin_fiber_start, @function
levin_fiber_start:
  .cfi_startproc
  .cfi_undefined rip
  movq %r12, %rdi
  call *%rbx
  ud2
  .cfi_endproc
.size levin_fiber_start, .-levin_fiber_start
.section .note.GNU-stack,"",@progbits
.text
)");
extern "C" void levin_fiber_start();

namespace levin::emulator {

namespace {
#if defined(LEVIN_EMULATOR_ASAN) || defined(LEVIN_EMULATOR_TSAN)
constexpr std::size_t kStackBytes = 256 * 1024;
#else
constexpr std::size_t kStackBytes = 128 * 1024;
#endif
constexpr std::size_t kGuardBytes = 4096;  // a guard page below the stack turns an overflow into a fault
}  // namespace

// Offsets each stack, because stacks that start at the same offset in a page would share few lines of the L1 cache.
Fiber::Fiber(unsigned number) : unused_(number % 32 * 128) {
  void* p = mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<char*>(p);
  mprotect(memory_, kGuardBytes, PROT_NONE);
  context.stack_bottom = memory_ + kGuardBytes;
  context.stack_size = kStackBytes;
}

Fiber::~Fiber() {
#if defined(LEVIN_EMULATOR_TSAN)
  if (context.tsan_fiber) __tsan_destroy_fiber(context.tsan_fiber);
#endif
  unpoison(memory_ + kGuardBytes, kStackBytes);
  mark_written(memory_ + kGuardBytes, kStackBytes);
  munmap(memory_, kStackBytes + kGuardBytes);
}

void Fiber::release([[maybe_unused]] const void* tag) {
#if defined(LEVIN_EMULATOR_TSAN)
  void* const self = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(context.tsan_fiber, __tsan_switch_to_fiber_no_sync);
  order_release(tag);
  __tsan_switch_to_fiber(self, __tsan_switch_to_fiber_no_sync);
#endif
}

void Fiber::name([[maybe_unused]] const char* name) {
#if defined(LEVIN_EMULATOR_TSAN)
  __tsan_set_fiber_name(context.tsan_fiber, name);
#endif
}

void Fiber::prepare(void (*entry)(void*), void* argument) {
  char* const stack = memory_ + kGuardBytes;
  unpoison(stack, kStackBytes);  // frames that never returned
  context.asan_fake_stack = nullptr;
#if defined(LEVIN_EMULATOR_TSAN)
  if (!context.tsan_fiber) context.tsan_fiber = __tsan_create_fiber(0);
#endif
  auto* top = reinterpret_cast<void**>(stack + kStackBytes - unused_);
  // The layout that levin_switch_stacks expects: r15, r14, r13, r12, rbx, rbp, return address. The stack is then
  // aligned for a call.
  *--top = nullptr;
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(&levin_fiber_start);
  *--top = nullptr;                         // rbp
  *--top = reinterpret_cast<void*>(entry);  // rbx
  *--top = argument;                        // r12
  for (int i = 0; i < 3; ++i) *--top = nullptr;
  context.stack_pointer = top;
}

void renew_pages(void* p, std::size_t bytes) {
  if (mmap(p, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != p) {
    throw std::bad_alloc();
  }
}

void switch_context(Context& from, [[maybe_unused]] Context& to, [[maybe_unused]] Leave leave) {
#if defined(LEVIN_EMULATOR_ASAN)
  __sanitizer_start_switch_fiber(leave == Leave::for_good ? nullptr : &from.asan_fake_stack, to.stack_bottom,
                                 to.stack_size);
#endif
#if defined(LEVIN_EMULATOR_TSAN)
  if (!from.tsan_fiber) from.tsan_fiber = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.tsan_fiber, __tsan_switch_to_fiber_no_sync);
#endif
  levin_switch_stacks(&from.stack_pointer, to.stack_pointer);
#if defined(LEVIN_EMULATOR_ASAN)
  __sanitizer_finish_switch_fiber(from.asan_fake_stack, nullptr, nullptr);
#endif
}

void fiber_entered([[maybe_unused]] Context& from) {
#if defined(LEVIN_EMULATOR_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, &from.stack_bottom, &from.stack_size);
#endif
}

}  // namespace levin::emulator
