#include <levin/nn/init.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/linalg.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/view.h>

#include <fmt/format.h>

#include <algorithm>
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
    case Nonlinearity::selu:
      return 0.75;
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

namespace {

void require_matrix(const char* name, const Tensor& t) {
  if (t.dim() != 2)
    throw ShapeError(fmt::format("[{}] the tensor is {}, a matrix is needed.", name, to_string(t.sizes())));
}

/// The probability that a standard normal number is below x.
double below(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

/// Normal numbers in float32, or float64 for a tensor of that type.
Tensor drawn_normal(const Shape& sizes, const Tensor& like, Generator* generator) {
  return levin::normal_(
      empty(sizes, {.dtype = like.dtype() == kFloat64 ? kFloat64 : kFloat32, .device = like.device()}), 0.0, 1.0,
      generator);
}

}  // namespace

const Tensor& trunc_normal_(const Tensor& t, double mean, double std, double a, double b, Generator* generator) {
  if (!(std > 0 && a < b))
    throw ValueError(fmt::format("[trunc_normal_] std {} must be positive, and a {} below b {}.", std, a, b));
  no_grad guard;
  const double low = below((a - mean) / std), high = below((b - mean) / std);
  const DType type = t.dtype() == kFloat64 ? kFloat64 : kFloat32;
  const Tensor u =
      levin::uniform_(empty(t.sizes(), {.dtype = type, .device = t.device()}), 2 * low - 1, 2 * high - 1, generator);
  return t.copy_(clamp(add(mul(erfinv(u), std * std::sqrt(2.0)), mean), a, b));
}

const Tensor& orthogonal_(const Tensor& t, double gain, Generator* generator) {
  if (t.dim() < 2)
    throw ShapeError(fmt::format("[orthogonal_] the tensor is {}, two axes or more are needed.", to_string(t.sizes())));
  if (t.numel() == 0) return t;
  no_grad guard;
  const int64_t rows = t.size(0), columns = t.numel() / rows;
  const Tensor random = drawn_normal({std::max(rows, columns), std::min(rows, columns)}, t, generator);
  const auto [q, r] = linalg::qr(random);
  // Signs of R's diagonal make Q uniformly distributed (Mezzadri 2007).
  const Tensor basis = mul(mul(q, sign(diagonal(r))), gain);
  return t.copy_(reshape(rows < columns ? basis.t() : basis, t.sizes()));
}

const Tensor& eye_(const Tensor& t) {
  require_matrix("eye_", t);
  no_grad guard;
  t.zero_();
  diagonal(t).fill_(1);
  return t;
}

const Tensor& dirac_(const Tensor& t, int64_t groups) {
  if (t.dim() < 3 || t.dim() > 5)
    throw ShapeError(fmt::format("[dirac_] the tensor is {}, expected is the weight (O, I, k...) of a convolution.",
                                 to_string(t.sizes())));
  if (groups < 1 || t.size(0) % groups != 0)
    throw ValueError(fmt::format("[dirac_] {} output channels do not divide into {} groups.", t.size(0), groups));
  no_grad guard;
  t.zero_();
  const int64_t out = t.size(0) / groups, passed = std::min(out, t.size(1));
  Tensor centers = t;  // (O, I)
  while (centers.dim() > 2) centers = select(centers, 2, centers.size(2) / 2);
  for (int64_t g = 0; g < groups; ++g) diagonal(narrow(centers, 0, g * out, passed)).fill_(1);
  return t;
}

const Tensor& sparse_(const Tensor& t, double sparsity, double std, Generator* generator) {
  require_matrix("sparse_", t);
  if (!(sparsity >= 0 && sparsity <= 1))
    throw ValueError(fmt::format("[sparse_] sparsity is {}. Give a share between 0 and 1.", sparsity));
  no_grad guard;
  init::normal_(t, 0.0, std, generator);
  const auto zeros_each = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(t.size(0))));
  if (zeros_each == 0) return t;
  const Tensor order = argsort(drawn_normal(t.sizes(), t, generator), 0);
  return t.copy_(scatter(t, 0, narrow(order, 0, 0, zeros_each).contiguous(),
                         zeros({zeros_each, t.size(1)}, {.dtype = t.dtype(), .device = t.device()})));
}

}  // namespace levin::nn::init
