#pragma once
// The number that decides whether a step is skipped, as kernels read it.

#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/view.h>
#include <levin/core/error.h>

#include <fmt/format.h>

#include <string>

namespace levin::optim {

/// Returns a 0-dim float32 that is nonzero if `given` (one element of any shape and type) is nonzero; it shares memory
/// with a float32 `given`. Throws ShapeError, tagged `who`.
inline Tensor found_inf_of(const std::string& who, const Tensor& given) {
  if (given.numel() != 1)
    throw ShapeError(
        fmt::format("[{}] found_inf is {}; one number is needed, 0 for a step. Reduce it with "
                    "found_inf.max().",
                    who, to_string(given.sizes())));
  return (given.dtype() == kFloat32 ? given : ne(given, 0).to(kFloat32)).reshape({});
}

}  // namespace levin::optim
