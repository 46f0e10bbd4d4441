#pragma once
// What operations ask of their inputs' values before they call a kernel.

#include <levin/autograd/modes.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/view.h>

namespace levin::ops {

/// float16 or bfloat16: computed through float32 where a kernel knows only the wide types.
inline bool is_16_bit(const Tensor& x) { return x.dtype() == kHalf || x.dtype() == kBFloat16; }

/// Values without history, in row-major memory; undefined stays undefined.
inline Tensor dense(const Tensor& t) {
  if (!t.defined()) return t;
  no_grad guard;
  return contiguous(detach(t));
}

}  // namespace levin::ops
