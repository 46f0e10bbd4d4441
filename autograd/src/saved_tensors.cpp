#include "saved_tensors.h"

#include "errors.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops/elementwise.h>

#include <fmt/format.h>

namespace levin {

std::shared_ptr<saved_tensors_hooks::Functions>& saved_tensor_functions() {
  thread_local std::shared_ptr<saved_tensors_hooks::Functions> functions;
  return functions;
}

saved_tensors_hooks::saved_tensors_hooks(Pack pack, Unpack unpack) : before_(saved_tensor_functions()) {
  if (!pack || !unpack) throw ValueError("[saved_tensors_hooks] pack or unpack is empty; give both functions.");
  saved_tensor_functions() = std::make_shared<Functions>(std::move(pack), std::move(unpack));
}

saved_tensors_hooks::~saved_tensors_hooks() { saved_tensor_functions() = before_; }

Tensor PackedTensor::unpack(const char* operation) const {
  no_grad guard;
  const Tensor t = functions->unpack(value);
  if (!t.defined() || t.sizes() != meta.sizes || t.dtype() != meta.dtype || t.device() != meta.device)
    fail<GradError>("[{}] unpack of saved_tensors_hooks returned {}, but the saved tensor was {} {} on {}.", operation,
                    t.defined()
                        ? fmt::format("{} {} on {}", to_string(t.sizes()), name_of(t.dtype()), to_string(t.device()))
                        : "an undefined tensor",
                    meta.sizes, meta.dtype, meta.device);
  return t;
}

namespace {

struct OnCpu {
  Tensor tensor;
  Device device;
};

}  // namespace

save_on_cpu::save_on_cpu()
    : saved_tensors_hooks(
          [](const Tensor& x) -> std::any {
            return OnCpu{x.to(kCpu), x.device()};
          },
          [](const std::any& packed) {
            const auto& [tensor, device] = *std::any_cast<OnCpu>(&packed);
            return tensor.to(device);
          }) {}

}  // namespace levin
