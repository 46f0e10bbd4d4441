#pragma once
// Activations as layers.

#include <levin/autograd/ops/elementwise.h>
#include <levin/nn/layer.h>

namespace levin::nn {

class ReLU : public Layer<ReLU> {
 public:
  Tensor forward(const Tensor& x) override { return relu(x); }
};

class LeakyReLU : public Layer<LeakyReLU> {
 public:
  explicit LeakyReLU(double negative_slope_ = 0.01) : negative_slope(negative_slope_) {}
  Tensor forward(const Tensor& x) override { return leaky_relu(x, negative_slope); }
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(negative_slope);
  }

  const double negative_slope;
};

class GELU : public Layer<GELU> {
 public:
  explicit GELU(Approximate approximate_ = Approximate::none) : approximate(approximate_) {}
  Tensor forward(const Tensor& x) override { return gelu(x, approximate); }
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(approximate);
  }

  const Approximate approximate;
};

class Tanh : public Layer<Tanh> {
 public:
  Tensor forward(const Tensor& x) override { return tanh(x); }
};

class Sigmoid : public Layer<Sigmoid> {
 public:
  Tensor forward(const Tensor& x) override { return sigmoid(x); }
};

}  // namespace levin::nn
