#include <levin/kernels/kernel.h>

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

KernelObserver* set_observer(KernelObserver* observer) { return detail::observer.exchange(observer); }

}  // namespace levin::kernels
