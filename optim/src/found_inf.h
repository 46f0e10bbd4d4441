#pragma once
// The number by which a step is skipped, as kernels read it.

#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/view.h>
#include <levin/core/error.h>

#include <fmt/format.h>

#include <string>

namespace levin::optim {

/// One float32 without axes, not 0 where `given` (one element of any shape and type) is not 0; that tensor itself where
/// it is so already. Throws ShapeError, tagged `who`.
inline Tensor found_inf_of(const std::string& who, const Tensor& given) {
  if (given.numel() != 1)
    throw ShapeError(
        fmt::format("[{}] found_inf is {}; one number is needed, 0 for a step. Reduce it with "
                    "found_inf.max().",
                    who, to_string(given.sizes())));
  return (given.dtype() == kFloat32 ? given : ne(given, 0).to(kFloat32)).reshape({});
}

}  // namespace levin::optim
