#pragma once
// Attention composed of public operations: for second derivatives, for the gradient of a mask, and for values without
// elements, which have no kernel.

#include <levin/autograd/node.h>
#include <levin/core/generator.h>

namespace levin::ops {

struct AttentionPlan {
  double scale = 1.0;
  bool causal = false;
  double dropout = 0.0;
  PhiloxState random{};  ///< of the first weight, see AttentionMask
};

/// q, k and v have the same leading sizes; the mask may be undefined.
struct AttentionInputs {
  Tensor q, k, v, mask;
};

/// Returns the mask as kernels read it: bool or of the type of q's statistics, without history, of two axes at least.
Tensor prepared_mask(const Tensor& mask, const Tensor& q);

Tensor composed_attention(const AttentionInputs& x, const AttentionPlan& plan);

/// Returns the gradients of q, k, v and, if `of_mask`, of the mask (in the broadcast shape). All operations record. The
/// gradients of 16-bit floats are rounded once.
Grads composed_attention_gradients(const AttentionInputs& x, const Tensor& g, const AttentionPlan& plan, bool of_mask);

/// Returns the gradient of the mask from the kernel's results y and lse: computed by blocks of rows, so that only one
/// block of scores exists at a time. Does not record.
Tensor attention_mask_gradient(const AttentionInputs& x, const Tensor& g, const Tensor& y, const Tensor& lse,
                               const AttentionPlan& plan);

}  // namespace levin::ops
