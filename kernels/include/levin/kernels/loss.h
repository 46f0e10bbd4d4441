#pragma once
// Contracts of fused losses. All tensors are contiguous; floating ones are of one type, unless stated otherwise, f32 or
// f64 on the CPU. Results of 16-bit floats are rounded once.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Throws IndexError, tagged `op`, if one of the `labels` (int64, any size) is neither in [0, classes) nor
/// ignore_index; on CUDA when the host next waits for the device.
struct CheckLabelsArgs {
  TensorView labels;
  int64_t classes = 0, ignore_index = -100;
  const char* op = "";

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(labels), 0, labels.dtype}; }
};
extern constinit Kernel<void(const CheckLabelsArgs&, Stream&)> check_labels;

/// How per-sample losses are reduced: not at all, to their mean (weighted by the labels' weights) or to their sum.
enum class LossReduction : std::uint8_t { none, mean, sum };

/// Arguments that forward and backward of cross-entropy share. x (B, C, S) logits; target (B, S) int64 labels or (B, C,
/// S) probabilities of x's type; weight (C) or absent. With labels the coefficients are
/// q[c] = (1 - smoothing) w[c] [c == target] + smoothing / C * w[c], and 0 in samples with ignore_index; with
/// probabilities t they are
/// q[c] = w[c] (t[c] (1 - smoothing) + smoothing / C). A sample's loss is the sum over c of q[c] (lse - x[c]).
struct CrossEntropyArgs {
  TensorView x, target, weight;
  TensorView lse;    ///< (2, B, S) f64, log of the sum of exp(x) over C and its rounding error, which
                     ///< differences of large logits need; written by the forward
  TensorView norm;   ///< () f64, the divisor of `mean`: the sum of the labels' weights, or B S; written by the forward
  TensorView out;    ///< forward: (B, S) for `none`, else ()
  TensorView g;      ///< backward: the gradient of out
  TensorView dx;     ///< backward: the gradient of x, (B, C, S)
  /// B, C and S.
  int64_t batch = 1, classes = 1, spatial = 1;
  int64_t ignore_index = -100;                    ///< samples with this label have no loss
  double smoothing = 0.0;                         ///< label smoothing, in [0, 1]
  LossReduction reduction = LossReduction::mean;  ///< decides the shape of out

  /// Returns the minimum work of a call.
  Work work(std::string_view kernel) const {
    const bool backward = kernel == "cross_entropy_backward";
    return {backward ? bytes(x, target, dx) : bytes(x, target), 25 * count(x), x.dtype};
  }
};
/// Throws IndexError for labels out of range; on CUDA when the host next waits for the device, and until then their
/// losses are NaN. Bytes: x once; about 25 flops per element. Softmax is never stored.
extern constinit Kernel<void(const CrossEntropyArgs&, Stream&)> cross_entropy;
/// Computes dx = g / norm * (softmax(x) sum(q) - q). Bytes: x and dx once; about 25 flops per element.
extern constinit Kernel<void(const CrossEntropyArgs&, Stream&)> cross_entropy_backward;

/// Binary cross-entropy of sigmoid(x) against t: |x| (x > 0 ? 1 - t : t) + log(1 + exp(-|x|)), which stays infinite at
/// an infinite x. target has x's size, or is a TensorView::number, of f32 with 16-bit floats. Forward: out has x's size
/// with reduction `none`, else (). Backward: dx = g (sigmoid(x) - t), divided by the number of elements for `mean`.
/// Bytes: x and target once, dx once; about 40 flops per element.
struct BceArgs {
  TensorView x, target, out, g, dx;
  LossReduction reduction = LossReduction::mean;

  /// Returns the minimum work of a call.
  Work work(std::string_view kernel) const {
    const bool backward = kernel == "bce_with_logits_backward";
    return {backward ? bytes(x, target, dx) : bytes(x, target, out), 40 * count(x), x.dtype};
  }
};
extern constinit Kernel<void(const BceArgs&, Stream&)> bce_with_logits, bce_with_logits_backward;

/// Computes out () = scale times the sum, in double, of d^2 / 2 where |d| <= limit and of limit (|d| - limit / 2)
/// elsewhere, with d = x - target; for an infinite limit it is d^2 / 2. x and target are contiguous and have the same
/// sizes; float32 and float64. Flops: 6 per element.
struct HuberSumArgs {
  TensorView out, x, target;
  double limit = 1.0, scale = 1.0;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(x, target), 6 * count(x), x.dtype}; }
};
extern constinit Kernel<void(const HuberSumArgs&, Stream&)> huber_sum;

/// Connectionist temporal classification (Graves et al. 2006): loss (B) is the negative logarithm of the sum, over all
/// paths of sample b through its states, of the product of the states' probabilities, 1e30 or more if there is no path.
/// A path begins in one of the first two states and ends in one of the last two; it stays, goes on by one state, or by
/// two where `skips` allows that for the state that it reaches. dx, if not absent, is the gradient of loss with respect
/// to x; 0 for samples without a path, and after their input's end. float32. Flops: about 100 per state and step.
struct CtcArgs {
  TensorView loss, dx;                       ///< (B); (T, B, C) or absent
  TensorView x;                              ///< (T, B, C) log-probabilities
  TensorView states;                         ///< (B, S) int64, classes: blank, label, blank, ..., label, blank
  TensorView skips;                          ///< (B, S) bool
  TensorView input_lengths, target_lengths;  ///< (B) int64; a sample has 2 target_length + 1 states

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    return {bytes(x, dx), 100 * count(states) * static_cast<double>(x.size(0)), x.dtype};
  }
};
extern constinit Kernel<void(const CtcArgs&, Stream&)> ctc;

}  // namespace levin::kernels
