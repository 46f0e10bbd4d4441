#include <levin/nn/init.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>

#include <fmt/format.h>

#include <cmath>

namespace levin::nn::init {

const Tensor& uniform_(const Tensor& t, double low, double high, Generator* generator) {
  no_grad guard;
  return levin::uniform_(t, low, high, generator);
}

const Tensor& normal_(const Tensor& t, double mean, double std, Generator* generator) {
  no_grad guard;
  return levin::normal_(t, mean, std, generator);
}

const Tensor& constant_(const Tensor& t, double value) {
  no_grad guard;
  return t.fill_(value);
}

const Tensor& zeros_(const Tensor& t) { return constant_(t, 0.0); }
const Tensor& ones_(const Tensor& t) { return constant_(t, 1.0); }

Fans calculate_fans(const Tensor& t) {
  if (t.dim() < 2)
    throw ShapeError(fmt::format("[init] fans need two dimensions or more, the tensor is {}. Use uniform_ or normal_.",
                                 to_string(t.sizes())));
  int64_t field = 1;
  for (int axis = 2; axis < t.dim(); ++axis) field *= t.size(axis);
  return {t.size(1) * field, t.size(0) * field};
}

double calculate_gain(Nonlinearity nonlinearity, double a) {
  switch (nonlinearity) {
    case Nonlinearity::linear:
    case Nonlinearity::sigmoid: return 1.0;
    case Nonlinearity::tanh: return 5.0 / 3.0;
    case Nonlinearity::relu: return std::sqrt(2.0);
    case Nonlinearity::leaky_relu: return std::sqrt(2.0 / (1.0 + a * a));
  }
  return 1.0;
}

namespace {

double xavier_std(const Tensor& t, double gain) {
  const Fans fans = calculate_fans(t);
  return gain * std::sqrt(2.0 / static_cast<double>(fans.in + fans.out));
}

double kaiming_std(const Tensor& t, const KaimingOptions& options) {
  const Fans fans = calculate_fans(t);
  return calculate_gain(options.nonlinearity, options.a) /
         std::sqrt(static_cast<double>(options.mode == Fan::in ? fans.in : fans.out));
}

}  // namespace

const Tensor& xavier_uniform_(const Tensor& t, double gain, Generator* generator) {
  const double bound = std::sqrt(3.0) * xavier_std(t, gain);
  return init::uniform_(t, -bound, bound, generator);
}

const Tensor& xavier_normal_(const Tensor& t, double gain, Generator* generator) {
  return init::normal_(t, 0.0, xavier_std(t, gain), generator);
}

const Tensor& kaiming_uniform_(const Tensor& t, const KaimingOptions& options) {
  if (t.numel() == 0) return t;
  const double bound = std::sqrt(3.0) * kaiming_std(t, options);
  return init::uniform_(t, -bound, bound, options.generator);
}

const Tensor& kaiming_normal_(const Tensor& t, const KaimingOptions& options) {
  if (t.numel() == 0) return t;
  return init::normal_(t, 0.0, kaiming_std(t, options), options.generator);
}

}  // namespace levin::nn::init
