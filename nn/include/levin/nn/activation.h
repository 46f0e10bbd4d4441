#pragma once
// Activations as layers.

#include <levin/autograd/ops/elementwise.h>
#include <levin/nn/module.h>

namespace levin::nn {

class ReLU : public Module {
 public:
  Tensor forward(const Tensor& x) override { return relu(x); }
  std::unique_ptr<Module> fresh() const override;
};

class LeakyReLU : public Module {
 public:
  explicit LeakyReLU(double negative_slope_ = 0.01) : negative_slope(negative_slope_) {}
  Tensor forward(const Tensor& x) override { return leaky_relu(x, negative_slope); }
  std::string extra_repr() const override;
  std::unique_ptr<Module> fresh() const override;

  const double negative_slope;
};

class GELU : public Module {
 public:
  explicit GELU(Approximate approximate_ = Approximate::none) : approximate(approximate_) {}
  Tensor forward(const Tensor& x) override { return gelu(x, approximate); }
  std::string extra_repr() const override;
  std::unique_ptr<Module> fresh() const override;

  const Approximate approximate;
};

class Tanh : public Module {
 public:
  Tensor forward(const Tensor& x) override { return tanh(x); }
  std::unique_ptr<Module> fresh() const override;
};

class Sigmoid : public Module {
 public:
  Tensor forward(const Tensor& x) override { return sigmoid(x); }
  std::unique_ptr<Module> fresh() const override;
};

}  // namespace levin::nn
