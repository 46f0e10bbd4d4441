#include <levin/autograd/ops.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>

using namespace levin;

namespace {

class Scale : public nn::Layer<Scale> {
 public:
  explicit Scale(double factor_) : factor(factor_) {}
  Tensor forward(const Tensor& x) override { return x * factor; }
  template <class F>
  auto with_arguments(F construct) const {
    return construct(factor);
  }

  const double factor;
};

class Mirror : public nn::Layer<Mirror, Scale> {
 public:
  using Layer::Layer;
  Tensor forward(const Tensor& x) override { return Scale::forward(-x); }
};

struct Double : nn::Layer<Double> {
  Tensor forward(const Tensor& x) override { return x + x; }
};

}  // namespace

TEST_CASE("a layer of one's own is cloned by the arguments that it states, inherits, or does not take") {
  const nn::Sequential net(Scale(3), Mirror(5), Double(), nn::BatchNorm2d(2, {.eps = 0.5}),
                           nn::MSELoss(Reduction::sum));
  nn::Sequential copy = nn::clone(net);
  CHECK(dynamic_cast<Scale&>(copy[0]).factor == 3);
  CHECK(copy[1](ones({1})).item<float>() == -5);
  CHECK(copy[1].type_name() == "Mirror");
  CHECK(copy[2](ones({1})).item<float>() == 2);
  CHECK(dynamic_cast<nn::BatchNorm2d&>(copy[3]).options.eps == 0.5);
  CHECK(dynamic_cast<nn::MSELoss&>(copy[4]).reduction == Reduction::sum);
}
