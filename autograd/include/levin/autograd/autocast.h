#pragma once
// Automatic mixed precision: in a scope, each operation computes in the type that suits it.

#include <levin/core/tensor.h>

namespace levin {

namespace detail {
struct AutocastState {
  DType dtype = kHalf;
  bool enabled = false;
  bool cache = true;
  int depth = 0;  ///< autocast scopes round the running code
};
inline constinit thread_local AutocastState autocast_state{};
}  // namespace detail

inline bool autocast_enabled() { return detail::autocast_state.enabled; }
/// The type of the operations that gain from it, in the innermost scope.
inline DType autocast_dtype() { return detail::autocast_state.dtype; }

/// `autocast on(kHalf);` PyTorch's lists: products of matrices, linear, convolutions and attention compute in `dtype`;
/// pow, exp, logarithms, sums and norms, softmax, normalisation over layers and losses in float32; addcdiv, addcmul,
/// atan2 and scatter_add in the widest type of their inputs; all others in their inputs' type. float64 is left alone,
/// in-place edits too. Backward runs in the types that forward chose, wherever it is called.
///
/// Scopes nest; the innermost counts, also one with enabled = false. The casts of leaves that require gradients are
/// kept until the outermost scope ends, so that a weight is cast once; not those made while nothing is recorded.
/// Throws DTypeError unless dtype is float16 or bfloat16.
class autocast {
 public:
  explicit autocast(DType dtype = kHalf, bool enabled = true, bool cache_enabled = true);
  ~autocast();
  autocast(const autocast&) = delete;
  autocast& operator=(const autocast&) = delete;

 private:
  detail::AutocastState before_;
};

}  // namespace levin
