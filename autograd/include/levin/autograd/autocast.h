#pragma once
// Automatic mixed precision: in a scope, each operation computes in the type that suits it.

#include <levin/core/tensor.h>

namespace levin {

namespace detail {
struct AutocastState {
  DType dtype = kHalf;
  bool enabled = false;
  bool cache = true;
  int depth = 0;  ///< number of autocast scopes around the running code
};
inline constinit thread_local AutocastState autocast_state{};
}  // namespace detail

/// True if the calling thread is in a scope of autocast whose innermost one is enabled.
inline bool autocast_enabled() { return detail::autocast_state.enabled; }
/// Returns the type of the operations that autocast runs in lower precision, in the innermost scope.
inline DType autocast_dtype() { return detail::autocast_state.dtype; }

/// `autocast on(kHalf);` follows PyTorch's lists: matrix products, linear, convolutions and attention compute in
/// `dtype`; pow, exp, logarithms, sums, norms, softmax, layer norm and losses compute in float32; addcdiv, addcmul,
/// atan2 and scatter_add compute in the widest type of their inputs; all others in the type of their inputs. float64
/// tensors and in-place operations are not affected. Backward runs in the types that forward chose, wherever it is
/// called.
///
/// Scopes nest, and the innermost one counts, even if it has enabled = false. The casts of leaves that require
/// gradients are cached until the outermost scope ends, so that a weight is cast only once; casts made while nothing is
/// recorded are not cached. Throws DTypeError unless dtype is float16 or bfloat16.
class autocast {
 public:
  /// Begins a scope; cache_enabled = false casts a weight each time that it is used.
  explicit autocast(DType dtype = kHalf, bool enabled = true, bool cache_enabled = true);
  ~autocast();
  autocast(const autocast&) = delete;
  autocast& operator=(const autocast&) = delete;

 private:
  detail::AutocastState before_;
};

}  // namespace levin
