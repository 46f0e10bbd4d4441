#pragma once
// Parameters that are computed from others before each call of their module (torch.nn.utils.parametrizations, with its
// names in state dicts). Parametrize a module before its optimizer is created.

#include <levin/nn/module.h>

namespace levin::nn {

namespace detail {
/// Returns module.parametrizations.<name>, created if necessary.
Module& parametrization_of(Module& module, const std::string& name);
/// Returns the module's own parameter of that name; throws ValueError.
Tensor own_parameter(Module& module, const std::string& name);
}  // namespace detail

/// Replaces parameter `name` of a module by P(original), where P is a module of one tensor that is created with these
/// arguments, and `original` is trained instead: "parametrizations.weight.original" in state dicts. P's own parameters
/// and buffers are "parametrizations.weight.0.<name>". Returns P. A module takes one parametrization for each
/// parameter; throws ValueError for a second one and for a name that is not a parameter's.
///
///   struct Symmetric : nn::Module {
///     Tensor forward(const Tensor& x) override { return triu(x) + triu(x, 1).transpose(-2, -1); }
///   };
///   nn::register_parametrization<Symmetric>(layer, "weight");
template <std::derived_from<Module> P, class... Args>
P& register_parametrization(Module& module, const std::string& name, const Args&... args) {
  const Tensor original = detail::own_parameter(module, name);
  Module& place = detail::parametrization_of(module, name);
  Tensor& kept = place.register_parameter("original", original);
  P& map = place.add<P>("0", args...);
  module.derive_parameter(
      name, [&map, &kept] { return map(kept); },
      [name, args...](Module& copy) { register_parametrization<P>(copy, name, args...); });
  return map;
}

/// Replaces a weight by g v / |v| with a magnitude g for each index of axis `dim` (Salimans and Kingma, "Weight
/// normalization", 2016): "parametrizations.weight.original0" is g and "original1" is v. Throws ValueError for a name
/// that is not a parameter's, and IndexError for a dim that it lacks.
void weight_norm(Module& module, const std::string& name = "weight", int64_t dim = 0);

/// Options of spectral_norm.
struct SpectralNormOptions {
  int64_t n_power_iterations = 1;  ///< of each call while training
  double eps = 1e-12;              ///< the norms by which the vectors are divided are at least this large
  int64_t dim = 0;                 ///< axis of the outputs: 1 for transposed convolutions
};

/// Divides a parameter by the largest singular value of the matrix (outputs, everything else), which power iteration
/// estimates (Miyato et al., "Spectral normalization for generative adversarial networks", 2018). A vector is divided
/// by its norm.
class SpectralNorm : public Module {
 public:
  /// Estimates the singular vectors of `weight` by 15 iterations. Throws ValueError for n_power_iterations below 1, and
  /// IndexError for a dim that the weight lacks.
  SpectralNorm(const Tensor& weight, const SpectralNormOptions& options);
  Tensor forward(const Tensor& weight) override;

 private:
  Tensor as_matrix(const Tensor& weight) const;
  void iterate(const Tensor& matrix, int64_t times);

  const SpectralNormOptions options_;
  Tensor u_, v_;  // left and right singular vectors: buffers _u and _v
};

/// Parametrizes `name` by a SpectralNorm, which it returns. Throws as register_parametrization and SpectralNorm.
SpectralNorm& spectral_norm(Module& module, const std::string& name = "weight",
                            const SpectralNormOptions& options = {});

}  // namespace levin::nn
