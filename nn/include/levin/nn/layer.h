#pragma once
// The base class of modules whose forward has other arguments or results than one tensor, and of layers that know their
// constructor's arguments.

#include <levin/nn/forward.h>
#include <levin/nn/module.h>

#include <concepts>
#include <memory>

namespace levin::nn {

namespace detail {

template <std::size_t... I, class M>
bool forward_with(std::index_sequence<I...>, M& module, const std::vector<Tensor>& inputs,
                  std::vector<Tensor>& outputs) {
  using S = ForwardOf<M>;
  if constexpr ((std::is_same_v<Argument<S, I>, const Tensor&> && ...)) {
    if (inputs.size() != sizeof...(I)) return false;
    append_tensors(module.forward(inputs[I]...), outputs);
    return true;
  } else if constexpr ((Fillable<Argument<S, I>> && ...)) {
    std::tuple<std::remove_cvref_t<Argument<S, I>>...> arguments;
    std::size_t used = 0;
    fill(arguments, inputs, used);
    if (used != inputs.size()) return false;
    append_tensors(module.forward(static_cast<Argument<S, I>&&>(std::get<I>(arguments))...), outputs);
    return true;
  } else {
    return false;
  }
}

/// Passes the tensors as the first n arguments, or fewer; false if forward takes another number of them.
template <std::size_t n, class M>
bool forward_first(M& module, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  if (forward_with(std::make_index_sequence<n>(), module, inputs, outputs)) return true;
  if constexpr (n > 0)
    if constexpr (Takes<M, ForwardOf<M>, n - 1>) return forward_first<n - 1>(module, inputs, outputs);
  return false;
}

/// Runs forward with these tensors as its arguments, without hooks, and returns the tensors of its result.
template <class M>
std::vector<Tensor> forward_list(Module& module, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> outputs;
  if constexpr (HasFewParameters<M>) {
    if (forward_first<ForwardOf<M>::Arguments::size>(static_cast<M&>(module), inputs, outputs)) return outputs;
  }
  refuse_inputs(module, inputs.size());
}

template <class M, class S, std::size_t... I, class... P>
typename S::Result run_at(std::index_sequence<I...>, Module& module, P&... arguments) {
  using Result = typename S::Result;
  auto& self = static_cast<M&>(module);
  if (!module.has_hooks()) return self.forward(static_cast<Argument<S, I>&&>(arguments)...);
  std::tuple<Kept<Argument<S, I>>...> kept(static_cast<Argument<S, I>&&>(arguments)...);
  Module::HookedCall call(module);
  append_tensors(kept, call.inputs);
  std::optional<Result> result;
  if (call.before()) {
    replace_tensors(kept, call.inputs);
    result.emplace(self.forward(static_cast<Argument<S, I>&&>(std::get<I>(kept))...));
    append_tensors(*result, call.outputs);
  } else {
    std::size_t used = 0;
    if constexpr (std::default_initializable<Result>) fill(result.emplace(), call.outputs, used);
    if (!result || used != call.outputs.size()) refuse_outputs(module, call.outputs.size());
  }
  call.after();
  replace_tensors(*result, call.outputs);
  return std::move(*result);
}

/// Runs forward, between the hooks if there are any.
template <class M, class S, class... P>
typename S::Result run(Module& module, P&... arguments) {
  try {
    return run_at<M, S>(std::index_sequence_for<P...>(), module, arguments...);
  } catch (Error& e) {
    add_origin(e, module);
    throw;
  }
}

}  // namespace detail

/// Base of the module `Derived`, which gives it a call operator with the arguments of its forward, and fresh().
///
///   struct Denoiser : nn::Layer<Denoiser> {
///     Tensor forward(const Tensor& x, const Tensor& t) { ... }
///   };
///   Denoiser net;  Tensor y = net(x, t);
///
/// forward takes any arguments and returns any value: a pair or tuple, a vector of tensors, a struct. Arguments may be
/// in braces, `attention(q, k, v, {.attn_mask = mask})`, and may have defaults. Hooks see the tensors that
/// for_each_tensor finds in the arguments and in the result. A module that returns something else for one tensor takes
/// it by value, `std::pair<Tensor, Tensor> forward(Tensor x)`, since `const Tensor&` would override Module::forward. A
/// forward that is a template, has overloads, or has more than six parameters takes no braces.
///
/// A layer whose constructor takes arguments passes them on, so that nn::clone and replicas can construct it; others
/// need nothing:
///
///   class Dropout : public Layer<Dropout> {
///    public:
///     explicit Dropout(double p = 0.5);
///     auto with_arguments(auto construct) const { return construct(p); }
///
/// A layer that extends another one names it as `Base` and may inherit its arguments.
template <class Derived, std::derived_from<Module> Base = Module>
class Layer : public Base {
 public:
  using Base::Base;
  using Base::forward;

  /// Calls forward with its arguments, between the hooks if there are any. An Error that leaves it says in which
  /// descendant it arose.
  template <class D = Derived>
  requires detail::OneTensor<D> Tensor operator()(const Tensor& x) { return Module::operator()(x); }
  // One operator per number of arguments, with the types of forward's parameters, so that arguments may be in braces.
  template <class D = Derived, class S = detail::ForwardOf<D>>
  requires detail::Takes<D, S, 0>
  typename S::Result operator()() { return detail::run<D, S>(*this); }
  template <class D = Derived, class S = detail::ForwardOf<D>>
  requires(detail::Takes<D, S, 1> && !detail::OneTensor<D>) typename S::Result operator()(detail::Argument<S, 0> a) {
    return detail::run<D, S>(*this, a);
  }
  template <class D = Derived, class S = detail::ForwardOf<D>>
  requires detail::Takes<D, S, 2>
  typename S::Result operator()(detail::Argument<S, 0> a, detail::Argument<S, 1> b) {
    return detail::run<D, S>(*this, a, b);
  }
  template <class D = Derived, class S = detail::ForwardOf<D>>
  requires detail::Takes<D, S, 3>
  typename S::Result operator()(detail::Argument<S, 0> a, detail::Argument<S, 1> b, detail::Argument<S, 2> c) {
    return detail::run<D, S>(*this, a, b, c);
  }
  template <class D = Derived, class S = detail::ForwardOf<D>>
  requires detail::Takes<D, S, 4>
  typename S::Result operator()(detail::Argument<S, 0> a, detail::Argument<S, 1> b, detail::Argument<S, 2> c,
                                detail::Argument<S, 3> d) {
    return detail::run<D, S>(*this, a, b, c, d);
  }
  template <class D = Derived, class S = detail::ForwardOf<D>>
  requires detail::Takes<D, S, 5>
  typename S::Result operator()(detail::Argument<S, 0> a, detail::Argument<S, 1> b, detail::Argument<S, 2> c,
                                detail::Argument<S, 3> d, detail::Argument<S, 4> e) {
    return detail::run<D, S>(*this, a, b, c, d, e);
  }
  template <class D = Derived, class S = detail::ForwardOf<D>>
  requires detail::Takes<D, S, 6>
  typename S::Result operator()(detail::Argument<S, 0> a, detail::Argument<S, 1> b, detail::Argument<S, 2> c,
                                detail::Argument<S, 3> d, detail::Argument<S, 4> e, detail::Argument<S, 5> f) {
    return detail::run<D, S>(*this, a, b, c, d, e, f);
  }
  template <class D = Derived, class... A>
  requires(!detail::HasFewParameters<D> && requires(D & d, A&&... a) { d.forward(std::forward<A>(a)...); }) auto
  operator()(A&&... a) {
    using Result = decltype(std::declval<D&>().forward(std::forward<A>(a)...));
    return detail::run<D, detail::Signature<Result (D::*)(A && ...)>>(*this, a...);
  }

  std::unique_ptr<Module> fresh() const override {
    if constexpr (std::is_abstract_v<Derived>) {
      return nullptr;
    } else {
      const auto& layer = static_cast<const Derived&>(*this);
      const auto construct = [](const auto&... a) { return std::unique_ptr<Module>(new Derived(a...)); };
      if constexpr (requires { layer.with_arguments(construct); }) {
        return layer.with_arguments(construct);
      } else if (auto again = Module::fresh()) {
        return again;
      } else if constexpr (std::default_initializable<Derived>) {
        return construct();
      } else {
        return nullptr;
      }
    }
  }

 protected:
  Module::ListForward list_forward() const override {
    if constexpr (detail::OneTensor<Derived>)
      return nullptr;
    else
      return detail::forward_list<Derived>;
  }

 private:
  // Compilers that look for overloads hidden by the forward of Derived end their search here.
  void forward(detail::Missing&) = delete;
};

}  // namespace levin::nn
