// The two kernels of loss scaling.

#include "cases/cases.h"

#include <levin/autograd/ops/creation.h>
#include <levin/kernels/amp.h>

#include <cmath>
#include <limits>

namespace levin::test {

namespace {

float* floats(const Tensor& t) { return static_cast<float*>(t.raw_data()); }

/// Inputs: gradient, scale (1), found_inf (1).
Tensors unscale(const Tensors& inputs) {
  const Tensors x = contiguous_copies(inputs);
  const kernels::AmpTensor t{x[0].raw_data(), x[0].numel(), x[0].dtype()};
  Stream stream = current_stream(x[0].device());
  kernels::amp_unscale({{&t, 1}, floats(x[1]), floats(x[2])}, stream);
  return {x[0], x[2]};
}

Tensors unscale_reference(const Tensors& inputs) {
  const Tensors x = contiguous_copies(inputs);
  const auto factor = static_cast<double>(static_cast<float>(1.0 / x[1].item<double>()));
  for (int64_t i = 0; i < x[0].numel(); ++i) {
    double& v = x[0].data<double>()[i];
    if (!std::isfinite(v)) x[2].fill_(1.0);
    v *= factor;
  }
  return {x[0], x[2]};
}

InputSpec single(double value) {
  return {.sizes = {1}, .values = cycle({value}), .dtype = DType::f32, .differentiable = false, .rearrange = false};
}

Sample unscale_sample(const Shape& sizes, const Values& values, double scale) {
  return {.inputs = {{.sizes = sizes, .values = values}, single(scale), single(0)}};
}

constexpr kernels::UpdateScaleArgs kUpdate{.growth = 4.0f, .backoff = 0.5f, .min_scale = 2.0f, .growth_interval = 100};

/// Inputs, one number each: scale, tracker, skips, found_inf.
Tensors update_scale(const Tensors& inputs) {
  const Tensors x = contiguous_copies(inputs);
  kernels::UpdateScaleArgs a = kUpdate;
  a.scale = floats(x[0]);
  a.tracker = floats(x[1]);
  a.skips = floats(x[2]);
  a.found_inf = floats(x[3]);
  Stream stream = current_stream(x[0].device());
  kernels::amp_update_scale(a, stream);
  return {x[0], x[1], x[2]};
}

Tensors update_scale_reference(const Tensors& inputs) {
  const Tensors x = contiguous_copies(inputs);
  double &scale = x[0].data<double>()[0], &tracker = x[1].data<double>()[0], &skips = x[2].data<double>()[0];
  if (x[3].item<double>() != 0) {
    scale = std::max<double>(scale * kUpdate.backoff, kUpdate.min_scale);
    tracker = 0;
    skips += 1;
  } else {
    skips = 0;
    tracker += 1;
    if (tracker >= kUpdate.growth_interval) {
      const double grown = scale * kUpdate.growth;
      if (grown <= static_cast<double>(std::numeric_limits<float>::max())) scale = grown;
      tracker = 0;
    }
  }
  return {x[0], x[1], x[2]};
}

Sample update_sample(const char* label, double scale, double tracker, double skips, double found) {
  return {.inputs = {single(scale), single(tracker), single(skips), single(found)}, .label = label};
}

}  // namespace

std::vector<OpCase> amp_cases() {
  constexpr double inf = std::numeric_limits<double>::infinity();
  return {{.name = "amp_unscale",
           .op = unscale,
           .reference = unscale_reference,
           .samples = {unscale_sample({}, uniform(), 8), unscale_sample({0}, uniform(), 8),
                       unscale_sample({31}, uniform(-100, 100), 65536), unscale_sample({7, 13}, uniform(), 3),
                       unscale_sample({33}, cycle({1, -2, inf}), 4), unscale_sample({5}, cycle({1, -inf, 0}), 4),
                       unscale_sample({1030}, cycle({0.5, -8}), 0.5)},
           .draw =
               [](Draw& d) {
                 const double scale = std::ldexp(1.0, static_cast<int>(d.below(20)));
                 return unscale_sample(d.shape(), uniform(), scale);
               },
           .large = {unscale_sample({100003}, uniform(), 65536)},
           // A parallel task has 32,768 elements.
           .limits = {unscale_sample({32768}, uniform(), 8), unscale_sample({32769}, uniform(), 8)},
           .dtypes = kFloatTypes,
           .outputs = {Output::same, Output::any},
           .tolerance = {.ulps = 1},
           .differentiable = false,
           .twice = false,
           .bench = {unscale_sample({1000000}, uniform(), 65536)}},
          {.name = "amp_update_scale",
           .op = update_scale,
           .reference = update_scale_reference,
           .samples = {update_sample("good step", 65536, 7, 2, 0), update_sample("grows", 1024, 99, 0, 0),
                       update_sample("shrinks", 1024, 50, 3, 1), update_sample("floor", 3, 0, 0, 1),
                       update_sample("stays finite", 0x1p127, 99, 0, 0)},
           .dtypes = {DType::f32},
           .layouts = {Layout::contiguous},
           .differentiable = false,
           .twice = false}};
}

}  // namespace levin::test
