#include <levin/core/config.h>
#include <levin/kernels/kernel.h>

#if LEVIN_HAS_CUDA
#include "kernels/cuda/device/backend.h"
#endif

#include <fmt/format.h>

namespace levin::kernels {

namespace detail {

std::atomic<KernelObserver*> observer{nullptr};

void missing(const char* kernel, Device device) {
  throw DeviceError(
      fmt::format("[{}] there is no kernel for {} in this build; move the tensors to cpu with x.to(cpu()).", kernel,
                  to_string(device)));
}

}  // namespace detail

#if LEVIN_HAS_CUDA
namespace {
// The linker takes from a static library only what is referenced: this reference links the backend into every program
// with kernels.
[[maybe_unused]] const DeviceBackend* const kept = cuda::backend();
}  // namespace
#endif

KernelObserver* set_observer(KernelObserver* observer) { return detail::observer.exchange(observer); }

}  // namespace levin::kernels
