#pragma once
// Contract of scaled dot-product attention by blocks (Dao et al., "FlashAttention", NeurIPS 2022): the (L, S) scores
// are computed in blocks that stay in the cache, and the backward recomputes them.

#include <levin/core/generator.h>
#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Hides, shifts and drops weights. With r the number of a row of scores over the leading axes and L, weight (r, j) is
/// dropped if u < dropout, with u of 24 bits from word j % 4 of Philox block r * ceil(S / 4) + j / 4 after `random`;
/// the others are multiplied by 1 / (1 - dropout). Backward draws the same numbers, so nothing is stored.
struct AttentionMask {
  /// Empty, or (..., L, S) with the leading sizes of q and any strides, except that the last one is 0 or 1: bool (true:
  /// attend), or a number of lse's type that is added to the score, where -infinity hides. A row that is hidden
  /// entirely has weights of 0 and an lse of +infinity.
  TensorView scores{};
  double dropout = 0.0;  ///< probability to drop a weight, in [0, 1]
  PhiloxState random{};  ///< position of dropout's random numbers

  /// True if `scores` are given; empty() if neither they nor dropout change a weight.
  bool has_scores() const { return scores.dim() > 0; }
  bool empty() const { return !has_scores() && dropout == 0.0; }
};

/// Returns the number of Philox blocks of one row of `columns` weights.
constexpr std::uint64_t attention_random_blocks(int64_t columns) { return static_cast<std::uint64_t>(columns + 3) / 4; }

/// Computes, for every index of the leading axes, out = softmax(scale q k^T) v, and lse = log of the sum of exp of each
/// row's scores. q (..., L, E), k (..., S, E), v (..., S, Ev) and out (..., L, Ev) have the same leading sizes and any
/// strides, except 1 along the last axis. lse (..., L) is contiguous. With `causal`, row i attends to columns 0 to i;
/// `mask` hides, shifts and drops weights. All have one floating type, f32 or f64 on the CPU; with 16-bit floats lse is
/// f32, and the weights may be rounded to the 16-bit type before they are multiplied by v. S is at least 1. Bytes: q,
/// k, v and out once; flops: 2 L S (E + Ev) per index, about half with `causal`.
struct AttentionArgs {
  TensorView out, lse, q, k, v;
  double scale = 1.0;
  bool causal = false;
  AttentionMask mask{};

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    const double scores = count(q) / static_cast<double>(std::max<int64_t>(1, q.size(q.dim() - 1))) *
                          static_cast<double>(k.size(k.dim() - 2));
    const double widths = static_cast<double>(q.size(q.dim() - 1) + v.size(v.dim() - 1));
    return {bytes(out, q, k, v), 2 * scores * widths * (causal ? 0.5 : 1), q.dtype};
  }
};
extern constinit Kernel<void(const AttentionArgs&, Stream&)> attention;

/// With P = exp(scale q k^T + mask - lse), D the factors of dropout (1 without) and
/// dS = P (D g v^T - sum of g out along the last axis), computes dq = scale dS k, dk = scale dS^T q and dv = (D P)^T g.
/// They, g and out have strides like those above. P and dS may be rounded to the tensors' type before they are
/// multiplied. Bytes: eight tensors once; flops: 2 L S (3 E + 2 Ev) per index, about half with `causal`.
struct AttentionBackwardArgs {
  TensorView dq, dk, dv, g, out, lse, q, k, v;
  double scale = 1.0;
  bool causal = false;
  AttentionMask mask{};

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    const double scores = count(q) / static_cast<double>(std::max<int64_t>(1, q.size(q.dim() - 1))) *
                          static_cast<double>(k.size(k.dim() - 2));
    const double widths = static_cast<double>(3 * q.size(q.dim() - 1) + 2 * v.size(v.dim() - 1));
    return {bytes(dq, dk, dv, g, out, q, k, v), 2 * scores * widths * (causal ? 0.5 : 1), q.dtype};
  }
};
extern constinit Kernel<void(const AttentionBackwardArgs&, Stream&)> attention_backward;

}  // namespace levin::kernels
