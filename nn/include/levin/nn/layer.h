#pragma once
// The base class of layers that know their constructor's arguments.

#include <levin/nn/module.h>

#include <memory>
#include <tuple>

namespace levin::nn {

/// Base of the layer `Derived`, which gives it fresh(), and with it nn::clone and replicas. A layer whose constructor
/// takes arguments returns them as a tuple; others need nothing:
///
///   class Dropout : public Layer<Dropout> {
///    public:
///     explicit Dropout(double p = 0.5);
///     auto arguments() const { return std::tuple(p); }
///
/// A layer that extends another one names it as `Base` and may inherit its arguments.
template <class Derived, std::derived_from<Module> Base = Module>
class Layer : public Base {
 public:
  using Base::Base;

  std::unique_ptr<Module> fresh() const override {
    const auto& layer = static_cast<const Derived&>(*this);
    if constexpr (requires { layer.arguments(); }) {
      return std::apply([](const auto&... a) { return std::make_unique<Derived>(a...); }, layer.arguments());
    } else {
      return std::make_unique<Derived>();
    }
  }
};

}  // namespace levin::nn
