#pragma once
// The base class of layers that know their constructor's arguments.

#include <levin/nn/module.h>

#include <concepts>
#include <memory>

namespace levin::nn {

/// Base of the layer `Derived`, which gives it fresh(), and with it nn::clone and replicas. A layer whose constructor
/// takes arguments passes them on; others need nothing:
///
///   class Dropout : public Layer<Dropout> {
///    public:
///     explicit Dropout(double p = 0.5);
///     template <class F>
///     auto with_arguments(F construct) const {
///       return construct(p);
///     }
///
/// A layer that extends another one names it as `Base` and may inherit its arguments.
template <class Derived, std::derived_from<Module> Base = Module>
class Layer : public Base {
 public:
  using Base::Base;

  std::unique_ptr<Module> fresh() const override {
    const auto& layer = static_cast<const Derived&>(*this);
    const auto construct = [](const auto&... a) { return std::unique_ptr<Module>(new Derived(a...)); };
    if constexpr (requires { layer.with_arguments(construct); }) {
      return layer.with_arguments(construct);
    } else {
      return construct();
    }
  }
};

}  // namespace levin::nn
