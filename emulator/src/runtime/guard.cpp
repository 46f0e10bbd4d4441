#include "guard.h"

#include "../poison.h"
#include "../team.h"
#include "state.h"

#include <levin/emulator/execution.h>

#include <ucontext.h>
#include <unistd.h>
#include <atomic>
#include <csignal>
#include <cstdarg>
#include <cstdio>

namespace levin::emulator {

namespace {

constinit thread_local char fault_text[512] = "";
std::atomic<cudaError_t> fault_of_kernel{cudaSuccess};
struct sigaction former {};

__attribute__((format(printf, 1, 2))) void describe(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(fault_text, sizeof(fault_text), format, arguments);
  va_end(arguments);
}

/// Writes the report. Returns false if the address does not belong to the emulator.
bool describe_fault(const void* address, bool kernel) {
  Runtime& rt = runtime();
  const bool locked = rt.mutex.try_lock();
  const Place place = locked ? rt.place_of(address) : Place{};
  bool ours = false;
  for (std::size_t d = 0; d < rt.devices.size() && !ours; ++d) ours = rt.devices[d].arena->contains(address);
  if (locked) rt.mutex.unlock();

  const char* const who = kernel ? "the kernel" : "host code";
  if (ours && place.kind == Place::Kind::device) {
    describe("%s touched device memory at %p: byte %td of an allocation of %zu bytes on device %d. %s", who, address,
             static_cast<const char*>(address) - place.begin, place.bytes, place.device,
             kernel ? "Its own device has no access to that one: cudaDeviceEnablePeerAccess gives it."
                    : "Copy it with cudaMemcpy, or touch it in a kernel.");
  } else if (ours) {
    describe("%s touched device memory at %p on device %d, where no allocation is.", who, address, place.device);
  } else if (kernel) {
    describe("the kernel touched address %p, where no memory is.", address);
  }
  return ours;
}

/// Continues a kernel's thread after a fault, because the faulting instruction may be where no exception can be thrown.
[[noreturn]] void end_kernel() { running_team->stop(nullptr, fault_text); }

/// Redirects the thread to end_kernel. The 128 bytes below the stack pointer (the red zone) belong to the faulting
/// function, and a function starts 8 bytes below a multiple of 16.
void redirect(ucontext_t& context) {
  auto& registers = context.uc_mcontext.gregs;
  registers[REG_RSP] = ((registers[REG_RSP] - 128) & ~greg_t{15}) - 8;
  *reinterpret_cast<greg_t*>(registers[REG_RSP]) = registers[REG_RIP];  // imitates a call, for debuggers
  registers[REG_RIP] = reinterpret_cast<greg_t>(&end_kernel);
}

#if defined(LEVIN_EMULATOR_ASAN)
constexpr bool kSanitizerReports = true;  // its report has more detail
#else
constexpr bool kSanitizerReports = false;
#endif

void on_fault(int, siginfo_t* info, void* context) {
  const bool fault = info->si_code > 0;  // raised by the hardware, not by kill()
  const bool kernel = in_kernel();
  const bool misaligned = info->si_code == SI_KERNEL;  // the signal carries no address
  const bool ours = fault && !misaligned && describe_fault(info->si_addr, kernel);
  if (misaligned && kernel) {
    describe(
        "misaligned address: 16 bytes or more are read or written at once at an address that is no multiple of "
        "16, or at one that cannot exist.");
  }
  if (fault && kernel && !kSanitizerReports) {
    fault_of_kernel.store(misaligned ? cudaErrorMisalignedAddress : cudaErrorIllegalAddress);
    redirect(*static_cast<ucontext_t*>(context));
    return;
  }
  if (ours) {
    char line[600];
    const int length = snprintf(line, sizeof(line), "levin emulator: %s\n", fault_text);
    [[maybe_unused]] const auto written = write(STDERR_FILENO, line, static_cast<std::size_t>(length));
  }
  sigaction(SIGSEGV, &former, nullptr);  // the access is repeated under the former action
  if (!fault) raise(SIGSEGV);
}

}  // namespace

void install_guard() {
  struct sigaction now {};
  sigaction(SIGSEGV, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault) return;
  former = now;
  struct sigaction own {};
  own.sa_sigaction = on_fault;
  own.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&own.sa_mask);
  sigaction(SIGSEGV, &own, nullptr);
}

void note_fault(cudaError_t error) { fault_of_kernel.store(error); }
cudaError_t take_fault() { return fault_of_kernel.exchange(cudaSuccess); }

void fail_misaligned(const void* p, std::size_t alignment, Site site) {
  note_fault(cudaErrorMisalignedAddress);
  fail("misaligned address: " + text_of(p) + " is no multiple of " + std::to_string(alignment) +
           ", the size of what is read or written there at once",
       site);
}

}  // namespace levin::emulator
