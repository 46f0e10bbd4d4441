// Reductions, products, scans and softmax.

#include "lowering.h"

#include <cmath>

namespace levin::interop::onnx {

namespace export_reduction {
namespace {

using L = Lowering;

void reduction(L& l, const char* op) {
  const std::vector<int64_t> axes = l.integers("axes");
  const bool keep = l.integer("keepdim") != 0;
  if (l.rank() == 0) return l.set(l.in_as(0, l.result().dtype));
  l.set(l.reduce(op, l.in_as(0, l.result().dtype), axes, keep));
}

/// any and all: the largest or the smallest of 0 and 1.
void logical(L& l, const char* op) {
  if (l.rank() == 0) return l.set(l.in_as(0, kBool));
  const std::string x = l.cast(l.in_as(0, kBool), kInt32);
  l.set(l.cast(l.reduce(op, x, l.integers("axes"), l.integer("keepdim") != 0), kBool));
}

void norm(L& l) {
  const double p = l.real("p");
  const DType t = l.result().dtype;
  if (p == 1.0) return reduction(l, "ReduceL1");
  if (p == 2.0) return reduction(l, "ReduceL2");
  const std::string x = l.add("Abs", {l.in()});
  const std::vector<int64_t> axes = l.integers("axes");
  const bool keep = l.integer("keepdim") != 0;
  if (std::isinf(p)) return l.set(l.reduce(p > 0 ? "ReduceMax" : "ReduceMin", x, axes, keep));
  if (p == 0.0) l.refuse("p is 0");
  const std::string sum = l.reduce("ReduceSum", l.binary("Pow", x, l.number(p, t)), axes, keep);
  l.set(l.binary("Pow", sum, l.number(1.0 / p, t)));
}

void sum_to_size(L& l) {
  const Extents &from = l.value(0).sizes, &to = l.result().sizes;
  std::vector<int64_t> axes;
  const std::size_t lead = from.size() - to.size();
  for (std::size_t d = 0; d < from.size(); ++d)
    if (d < lead || from[d] != to[d - lead]) axes.push_back(static_cast<int64_t>(d));
  const std::string y = l.reduce("ReduceSum", l.in_as(0, l.result().dtype), axes, true);
  Extents kept(lead, {0, 1});
  kept.insert(kept.end(), to.begin(), to.end());
  l.set(l.reshape(y, kept, to));
}

/// Outputs are the position and the value; either may be absent.
void arg_extremum(L& l, const char* arg, const char* reduce) {
  const int64_t axis = l.axis();
  const bool keep = l.integer("keepdim") != 0;
  if (l.rank() == 0) l.refuse("its input has no axis");
  l.set(l.add(arg, {l.in()}, {{"axis", axis}, {"keepdims", keep ? 1 : 0}}), 0);
  if (l.step().outputs[1] >= 0) l.set(l.reduce(reduce, l.in(), {axis}, keep), 1);
}

void matmul(L& l) { l.set(l.binary("MatMul", l.in(0), l.in(1))); }

void linear(L& l) {
  if (l.rank() == 2) return l.set(l.add("Gemm", {l.in(0), l.in(1), l.has(2) ? l.in(2) : ""}, {{"transB", 1}}));
  const std::string y = l.binary("MatMul", l.in(0), l.permute(l.in(1), {1, 0}));
  l.set(l.has(2) ? l.binary("Add", y, l.in(2)) : y);
}

void addmm(L& l) {
  l.set(l.add("Gemm", {l.in(1), l.in(2), l.in(0)}, {{"alpha", l.real("alpha")}, {"beta", l.real("beta")}}));
}

void cumsum(L& l) {
  l.set(l.add("CumSum", {l.in_as(0, l.result().dtype), l.constant(tensor(l.axis(), {.dtype = kInt64}))},
              {{"reverse", l.integer("reverse")}}));
}

void softmax(L& l, const char* op) {
  if (l.rank() == 0) l.refuse("its input has no axis");
  l.set(l.add(op, {l.in()}, {{"axis", l.axis()}}));
}

void topk(L& l) {
  if (l.rank() == 0) l.refuse("its input has no axis");
  const auto y = l.add_many("TopK", {l.in(), l.list({l.integer("k")})}, 2,
                            {{"axis", l.axis()}, {"largest", l.integer("largest")}, {"sorted", 1}});
  for (std::size_t i = 0; i < 2; ++i)
    if (l.step().outputs[i] >= 0) l.set(y[i], i);
}

const ExportRow kRows[] = {
    {"sum", [](L& l) { reduction(l, "ReduceSum"); }},
    {"mean", [](L& l) { reduction(l, "ReduceMean"); }},
    {"prod", [](L& l) { reduction(l, "ReduceProd"); }},
    {"amax", [](L& l) { reduction(l, "ReduceMax"); }},
    {"amin", [](L& l) { reduction(l, "ReduceMin"); }},
    {"any", [](L& l) { logical(l, "ReduceMax"); }},
    {"all", [](L& l) { logical(l, "ReduceMin"); }},
    {"norm", norm},
    {"sum_to_size", sum_to_size},
    {"argmax", [](L& l) { arg_extremum(l, "ArgMax", "ReduceMax"); }},
    {"argmin", [](L& l) { arg_extremum(l, "ArgMin", "ReduceMin"); }},
    {"matmul", matmul},
    {"linear", linear},
    {"addmm", addmm},
    {"cumsum", cumsum},
    {"topk", topk},
    {"softmax", [](L& l) { softmax(l, "Softmax"); }},
    {"log_softmax", [](L& l) { softmax(l, "LogSoftmax"); }},
};

}  // namespace
}  // namespace export_reduction

std::span<const ExportRow> reduction_export_rows() { return export_reduction::kRows; }

}  // namespace levin::interop::onnx
