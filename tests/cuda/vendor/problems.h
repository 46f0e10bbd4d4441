#pragma once
// Products and convolutions for the tests of NVIDIA's libraries and of their stand-ins.
#include <levin/autograd/ops.h>
#include <levin/kernels/conv.h>
#include <levin/kernels/cuda.h>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "cuda/matmul_problem.h"

namespace levin::test {

/// Small integers, whose sums are exact in every type and order.
inline Tensor integers(const Shape& sizes, DType dtype, int step) {
  std::vector<double> v(at(sizes.numel()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>((i * at(step) + i / 7) % 5) - 2;
  return from_data(v, sizes, {.dtype = dtype, .device = levin::cuda(0)});
}

struct Layer {
  Shape x, weight, y;
  Conv2dOptions options = {};
};

inline const Layer kLayers[] = {
    {{2, 3, 7, 6}, {4, 3, 3, 2}, {2, 4, 5, 5}},
    {{3, 4, 9, 8}, {6, 4, 3, 3}, {3, 6, 6, 3}, {.stride = {2, 3}, .padding = {2, 1}}},
    {{2, 4, 8, 9}, {6, 2, 2, 3}, {2, 6, 8, 9}, {.padding = 1, .dilation = {2, 1}, .groups = 2}},
    {{2, 3, 6, 6}, {3, 1, 3, 3}, {2, 3, 2, 2}, {.stride = 2, .groups = 3}},
};

/// Returns the results of conv2d and its two gradients, each computed from the other two tensors.
inline std::vector<std::vector<double>> run_layer(const Layer& layer, DType dtype) {
  const Conv2dOptions& o = layer.options;
  const Tensor x = integers(layer.x, dtype, 3), weight = integers(layer.weight, dtype, 2);
  const Tensor y = integers(layer.y, dtype, 4);
  const Tensor y_bias = integers({layer.y[1]}, dtype, 1), x_bias = integers({layer.x[1]}, dtype, 2);
  Stream stream = current_stream(levin::cuda(0));
  std::vector<std::vector<double>> values;
  const auto run = [&](auto& table, const Tensor& to_x, const Tensor& to_weight, const Tensor& to_y, const Tensor& bias,
                       const Tensor& result) {
    table({to_x.tensor_view(), to_weight.tensor_view(), bias.defined() ? bias.tensor_view() : TensorView{},
           to_y.tensor_view(), o.stride[0], o.stride[1], o.padding[0], o.padding[1], o.dilation[0], o.dilation[1],
           o.groups},
          stream);
    values.push_back(result.to_vector<double>());
  };
  const Tensor new_x = full_like(x, NAN), new_weight = full_like(weight, NAN), new_y = full_like(y, NAN);
  run(kernels::conv2d, x, weight, new_y, y_bias, new_y);
  run(kernels::conv2d_backward_input, new_x, weight, y, x_bias, new_x);
  run(kernels::conv2d_backward_weight, x, new_weight, y, {}, new_weight);
  return values;
}

}  // namespace levin::test
