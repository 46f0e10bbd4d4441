// Reductions, products, scans and softmax of ONNX.

#include "interpreter.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/products.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>

namespace levin::interop::onnx {

namespace import_reduction {
namespace {

/// Calls f(x, axes, keepdims), where no axes are all; undoes the widening of small integers.
template <class F>
Tensors reduced(const Call& c, const F& f) {
  const Tensor x = c[0];
  const auto list = c.list_or_attribute(1, "axes");
  if (list.size() > kMaxDims) c.refuse("it has more axes than a tensor");
  if (list.empty() && c.integer("noop_with_empty_axes", 0) != 0) return {x};
  return {to(f(x, Axes(Shape(list.begin(), list.end())), c.integer("keepdims", 1) != 0), x.dtype())};
}

#define LEVIN_REDUCTION_NODE(op, ...)                                                          \
  {#op, 1, [](const Call& c) -> Tensors {                                                      \
     return reduced(c, [](const Tensor& x, const Axes& axes, bool keep) { return __VA_ARGS__; }); \
   }}

Tensors arg(const Call& c, bool largest) {
  const Tensor x = c[0];
  const int axis = c.axis("axis", 0, x.dim());
  const bool keep = c.integer("keepdims", 1) != 0;
  if (c.integer("select_last_index", 0) == 0) return {largest ? argmax(x, axis, keep) : argmin(x, axis, keep)};
  const Tensor mirrored = flip(x, axis);
  const Tensor at = largest ? argmax(mirrored, axis, keep) : argmin(mirrored, axis, keep);
  return {rsub(at, x.size(axis) - 1)};
}

Tensors gemm(const Call& c) {
  const Tensor a = c.integer("transA", 0) != 0 ? t(c[0]) : c[0], b = c.integer("transB", 0) != 0 ? t(c[1]) : c[1];
  const double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  if (!c.has(2)) return {alpha == 1.0 ? matmul(a, b) : mul(matmul(a, b), alpha)};
  const Tensor bias = c[2];
  if (alpha == 1.0 && beta == 1.0 && c.integer("transB", 0) != 0 && bias.dim() == 1) return {linear(a, c[1], bias)};
  return {addmm(bias, a, b, beta, alpha)};
}

Tensors softmax_node(const Call& c, bool logarithm) {
  const Tensor x = c[0];
  const int axis = c.axis("axis", -1, x.dim());
  return {logarithm ? log_softmax(x, axis) : softmax(x, axis)};
}

Tensors hardmax(const Call& c) {
  const Tensor x = c[0];
  const int axis = c.axis("axis", -1, x.dim());
  const Tensor at = argmax(x, axis, true);
  return {scatter(zeros_like(x), axis, at, ones(at.sizes(), like(x)))};
}

Tensors cum_sum(const Call& c) {
  Tensor x = c[0];
  const int axis = wrap_axis(c.number(1), x.dim(), "OnnxModel");
  const bool reverse = c.integer("reverse", 0) != 0;
  if (reverse) x = flip(x, axis);
  Tensor y = to(cumsum(x, axis), x.dtype());
  if (c.integer("exclusive", 0) != 0) y = sub(y, x);
  return {reverse ? flip(y, axis) : y};
}

Tensors top_k(const Call& c) {
  const Tensor x = c[0];
  const ValuesIndices y = topk(x, c.number(1), c.axis("axis", -1, x.dim()), c.integer("largest", 1) != 0);
  return {y.values, y.indices};
}

Tensors einsum_node(const Call& c) {
  Tensors operands;
  for (std::size_t i = 0; i < c.inputs(); ++i) operands.push_back(c[i]);
  return {einsum(c.text("equation", ""), operands)};
}

Tensors lp_normalization(const Call& c) {
  const Tensor x = c[0];
  return {div(x, norm(x, static_cast<double>(c.integer("p", 2)), c.axis("axis", -1, x.dim()), true))};
}

const ImportRow kRows[] = {
    LEVIN_REDUCTION_NODE(ReduceSum, sum(x, axes, keep)),
    LEVIN_REDUCTION_NODE(ReduceMean, mean(x.is_floating() ? x : to(x, kFloat64), axes, keep)),
    LEVIN_REDUCTION_NODE(ReduceProd, prod(x, axes, keep)),
    LEVIN_REDUCTION_NODE(ReduceMax, amax(x, axes, keep)),
    LEVIN_REDUCTION_NODE(ReduceMin, amin(x, axes, keep)),
    LEVIN_REDUCTION_NODE(ReduceL1, sum(abs(x), axes, keep)),
    LEVIN_REDUCTION_NODE(ReduceL2, norm(x, 2.0, axes, keep)),
    LEVIN_REDUCTION_NODE(ReduceSumSquare, sum(square(x), axes, keep)),
    LEVIN_REDUCTION_NODE(ReduceLogSum, log(sum(x, axes, keep))),
    LEVIN_REDUCTION_NODE(ReduceLogSumExp, logsumexp(x, axes, keep)),
    {"ArgMax", 1, [](const Call& c) -> Tensors { return arg(c, true); }},
    {"ArgMin", 1, [](const Call& c) -> Tensors { return arg(c, false); }},
    {"MatMul", 1, [](const Call& c) -> Tensors { return {matmul(c[0], c[1])}; }},
    {"Gemm", 7, gemm},
    // Before operator set 13 they were over all axes from one on.
    {"Softmax", 13, [](const Call& c) -> Tensors { return softmax_node(c, false); }},
    {"LogSoftmax", 13, [](const Call& c) -> Tensors { return softmax_node(c, true); }},
    {"Hardmax", 13, hardmax},
    {"CumSum", 11, cum_sum},
    {"TopK", 10, top_k},
    {"Einsum", 12, einsum_node},
    {"LpNormalization", 1, lp_normalization},
};

}  // namespace
}  // namespace import_reduction

std::span<const ImportRow> reduction_import_rows() { return import_reduction::kRows; }

}  // namespace levin::interop::onnx
