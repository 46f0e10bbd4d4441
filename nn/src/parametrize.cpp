#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/nn/parametrize.h>

#include <fmt/format.h>

#include <algorithm>

namespace levin::nn {

namespace {

Axes all_but(const Tensor& x, int64_t dim) {
  Axes axes;
  for (int64_t i = 0; i < x.dim(); ++i)
    if (i != dim) axes.push_back(i);
  return axes;
}

/// Euclidean norm of each slice along `dim`, with the other axes kept as 1.
Tensor norms(const Tensor& x, int64_t dim) {
  return x.dim() == 1 ? abs(x) : sqrt(sum(square(x), all_but(x, dim), /*keepdim=*/true));
}

int64_t checked_dim(const Tensor& weight, int64_t dim, const char* op) {
  if (dim >= -weight.dim() && dim < weight.dim()) return dim < 0 ? dim + weight.dim() : dim;
  throw IndexError(fmt::format("[{}] dim is {}, but the parameter is {}.", op, dim, to_string(weight.sizes())));
}

Tensor unit(const Tensor& x, double eps) { return x / clamp(sqrt(sum(square(x))), eps, {}); }

}  // namespace

Module& detail::parametrization_of(Module& module, const std::string& name) {
  for (const auto& [child, m] : module.named_children())
    if (child == "parametrizations") return m->add<Module>(name);
  return module.add<Module>("parametrizations").add<Module>(name);
}

Tensor detail::own_parameter(Module& module, const std::string& name) {
  for (const auto& [own, p] : module.named_parameters(/*recurse=*/false))
    if (own == name) return p;
  throw ValueError(fmt::format("[parametrize] a {} has no parameter \"{}\".", module.type_name(), name));
}

void weight_norm(Module& module, const std::string& name, int64_t given_dim) {
  const Tensor weight = detail::own_parameter(module, name);
  const int64_t dim = checked_dim(weight, given_dim, "weight_norm");
  Module& place = detail::parametrization_of(module, name);
  const no_grad guard;
  const Tensor& g = place.register_parameter("original0", norms(weight.detach(), dim).clone());
  const Tensor& v = place.register_parameter("original1", weight);
  module.derive_parameter(
      name, [&g, &v, dim] { return v * (g / norms(v, dim)); },
      [name, dim](Module& copy) { weight_norm(copy, name, dim); });
}

SpectralNorm::SpectralNorm(const Tensor& weight, const SpectralNormOptions& options) : options_(options) {
  if (options.n_power_iterations < 1)
    throw ValueError(
        fmt::format("[spectral_norm] n_power_iterations is {}; give 1 or more.", options.n_power_iterations));
  checked_dim(weight, options.dim, "spectral_norm");
  if (weight.dim() < 2) return;
  const no_grad guard;
  const Tensor matrix = as_matrix(weight.detach());
  u_ = register_buffer("_u", unit(randn({matrix.size(0)}, like(matrix)), options.eps));
  v_ = register_buffer("_v", unit(randn({matrix.size(1)}, like(matrix)), options.eps));
  constexpr int64_t first_iterations = 15;
  iterate(matrix, first_iterations);
}

Tensor SpectralNorm::as_matrix(const Tensor& weight) const {
  const int64_t dim = checked_dim(weight, options_.dim, "spectral_norm");
  return reshape(dim == 0 ? weight : movedim(weight, dim, 0), {weight.size(dim), -1});
}

void SpectralNorm::iterate(const Tensor& matrix, int64_t times) {
  for (int64_t i = 0; i < times; ++i) {
    u_.copy_(unit(mv(matrix, v_), options_.eps));
    v_.copy_(unit(mv(matrix.t(), u_), options_.eps));
  }
}

Tensor SpectralNorm::forward(const Tensor& weight) {
  if (weight.dim() < 2) return unit(weight, options_.eps);
  const Tensor matrix = as_matrix(weight);
  if (is_training()) {
    const no_grad guard;
    iterate(matrix.detach(), options_.n_power_iterations);
  }
  return weight / dot(u_.clone(), mv(matrix, v_.clone()));
}

SpectralNorm& spectral_norm(Module& module, const std::string& name, const SpectralNormOptions& options) {
  // The vectors depend on the parameter, so a copy of the module takes its own.
  const Tensor original = detail::own_parameter(module, name);
  Module& place = detail::parametrization_of(module, name);
  Tensor& kept = place.register_parameter("original", original);
  SpectralNorm& map = place.add<SpectralNorm>("0", original, options);
  module.derive_parameter(
      name, [&map, &kept] { return map(kept); }, [name, options](Module& copy) { spectral_norm(copy, name, options); });
  return map;
}

}  // namespace levin::nn
