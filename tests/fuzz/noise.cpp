#include "fuzz/noise.h"

#include <levin/autograd/ops/elementwise.h>
#include <levin/kernels/elementwise.h>
#include <levin/kernels/loss.h>
#include <levin/kernels/matmul.h>
#include <levin/kernels/reduce.h>
#include <levin/kernels/scan.h>
#include <levin/kernels/softmax.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>

namespace levin::fuzz {

namespace {

/// Returns whether a kernel's results are exact; an error in them would break ties that later steps depend on.
bool is_exact(const std::string& kernel) {
  static const std::set<std::string> exact = {"neg",     "abs",     "sign",  "relu",  "floor",
                                              "ceil",    "round",   "trunc", "amax",  "amin",
                                              "maximum", "minimum", "clamp", "where", "masked_fill"};
  return exact.count(kernel) != 0;
}

constexpr double kActivation = 4 * 8;  // the largest scale of an activation case's gradient

/// Returns the memory position of element i in row-major order.
int64_t place_of(const TensorView& v, int64_t i) {
  int64_t at = 0;
  for (int axis = v.dim() - 1; axis >= 0; --axis) {
    at += i % v.size(axis) * v.stride(axis);
    i /= v.size(axis);
  }
  return at;
}

/// Returns the output of a kernel that rounds, else a view without a pointer.
TensorView rounded_output(const std::type_info& type, const void* args) {
  using namespace kernels;
  if (type == typeid(UnaryArgs)) return static_cast<const UnaryArgs*>(args)->out;
  if (type == typeid(BinaryArgs)) return static_cast<const BinaryArgs*>(args)->out;
  if (type == typeid(TernaryArgs)) return static_cast<const TernaryArgs*>(args)->out;
  if (type == typeid(SumArgs)) return static_cast<const SumArgs*>(args)->out;
  if (type == typeid(ReduceArgs)) return static_cast<const ReduceArgs*>(args)->out;
  if (type == typeid(MatmulArgs)) return static_cast<const MatmulArgs*>(args)->out;
  if (type == typeid(SoftmaxArgs)) return static_cast<const SoftmaxArgs*>(args)->out;
  if (type == typeid(CumulativeArgs)) return static_cast<const CumulativeArgs*>(args)->out;
  if (type == typeid(NormArgs) && !std::isinf(static_cast<const NormArgs*>(args)->p))
    return static_cast<const NormArgs*>(args)->out;
  if (type == typeid(CrossEntropyArgs)) return static_cast<const CrossEntropyArgs*>(args)->dx;
  return {};
}

/// Returns the largest magnitude by which cross-entropy's backward multiplies a difference of probabilities.
double cross_entropy_factor(const kernels::CrossEntropyArgs& a) {
  double most = 0;
  for (int64_t i = 0; i < a.g.numel(); ++i) {
    const double g = std::abs(a.g.data<double>()[place_of(a.g, i)]);
    if (std::isfinite(g)) most = std::max(most, g);
  }
  return a.reduction == kernels::LossReduction::mean ? most / *a.norm.data<double>() : most;
}

}  // namespace

void Noise::returned(const char* kernel, const std::type_info& type, const void* args, const kernels::Work&,
                     const Stream&) {
  const TensorView out = rounded_output(type, args);
  if (!out.pointer || out.dtype != DType::f64 || is_exact(kernel) || rounds_) return;
  // Gradients of activations and of cross-entropy are differences; their errors are relative to the incoming gradient.
  const bool activation = type == typeid(kernels::BinaryArgs) && std::string(kernel).ends_with("_backward");
  const TensorView incoming = activation ? static_cast<const kernels::BinaryArgs*>(args)->a : TensorView();
  const bool same = incoming.pointer && incoming.dtype == DType::f64 && incoming.sizes == out.sizes;
  const double factor = type == typeid(kernels::CrossEntropyArgs)
                            ? cross_entropy_factor(*static_cast<const kernels::CrossEntropyArgs*>(args))
                            : 0;
  for (int64_t i = 0; i < out.numel(); ++i) {
    double& y = out.data<double>()[place_of(out, i)];
    const double error =
        std::abs(y) + kActivation * (same ? std::abs(incoming.data<double>()[place_of(incoming, i)]) : factor);
    if (std::isfinite(error)) y += unit_ * error * (2 * generator_.uniform() - 1);
  }
}

Tensor Noise::disturbed(const Tensor& x, const test::Tolerance& model, int64_t terms, double magnitude) {
  if (rounds_) return x;
  std::vector<double> errors = x.detach().to_vector<double>();
  const double absolute = 4 * model.scale * magnitude * static_cast<double>(terms);
  for (double& e : errors)
    if (std::isfinite(e)) {
      const double most = unit_ * (model.ulps * std::abs(e) + absolute);
      // A value smaller than its error may become 0 and be a divisor.
      e = most > std::abs(e) && generator_.uniform() < 0.25 ? -e : most * (2 * generator_.uniform() - 1);
    } else {
      e = 0;
    }
  return add(x, from_data(errors, x.sizes()));
}

Tensor Noise::of_result(const Tensor& y, const Step& step) {
  if (rounds_) {
    std::vector<double> rounded = y.detach().to_vector<double>();
    for (double& v : rounded) {
      int exponent = 0;
      std::frexp(v, &exponent);
      const double ulp = std::ldexp(unit_, exponent - 1);
      v = std::isfinite(v) && ulp > 0 ? std::nearbyint(v / ulp) * ulp - v : 0;
    }
    return add(y, from_data(rounded, y.sizes()));
  }
  return disturbed(y, test::tolerance_of(*step.op_case, step.sample), step.sample.terms, 1);
}

void Noise::of_gradients(const Tensor& x, const Tensor& y, const Step& step) {
  const auto incoming = std::make_shared<double>(0);
  y.register_hook([incoming](const Tensor& g) {
    for (const double v : g.detach().to_vector<double>())
      if (std::isfinite(v) && std::abs(v) > *incoming) *incoming = std::abs(v);
    return g;
  });
  x.register_hook([this, incoming, &step](const Tensor& g) {
    return disturbed(g, test::grad_tolerance_of(*step.op_case, step.sample), test::grad_terms_of(step.sample),
                     *incoming);
  });
}

}  // namespace levin::fuzz
