#pragma once
// Reads the parameters of a module's forward, and finds the tensors among its arguments and results.

#include <levin/core/tensor.h>

#include <concepts>
#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace levin::nn {

namespace detail {

template <class T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};
template <class T>
concept HasFields = requires(T& value) {
  value.fields();
};

template <class T>
constexpr bool holds_tensors();
template <class T, std::size_t... I>
constexpr bool parts_hold_tensors(std::index_sequence<I...>) {
  return (holds_tensors<std::remove_cvref_t<std::tuple_element_t<I, T>>>() || ...);
}
template <class T>
constexpr bool holds_tensors() {
  if constexpr (std::derived_from<T, Tensor> || HasFields<T>)
    return true;
  else if constexpr (TupleLike<T>)
    return parts_hold_tensors<T>(std::make_index_sequence<std::tuple_size_v<T>>());
  else if constexpr (requires { typename T::value_type; })  // a container, or std::optional
    return holds_tensors<typename T::value_type>();
  else
    return false;
}

}  // namespace detail

/// Calls f(tensor) for every tensor in `value`, in order, also for undefined ones. It finds a Tensor itself, those of
/// pairs, tuples, arrays, vectors, maps and optionals, which may contain each other, and those of a struct with a
/// member function `auto fields() { return std::tie(mean, variance); }`.
template <class T, class F>
void for_each_tensor(T& value, const F& f) {
  if constexpr (!detail::holds_tensors<T>()) {
  } else if constexpr (std::derived_from<T, Tensor>) {
    f(static_cast<Tensor&>(value));
  } else if constexpr (detail::HasFields<T>) {
    auto fields = value.fields();
    for_each_tensor(fields, f);
  } else if constexpr (detail::TupleLike<T>) {
    std::apply([&](auto&... part) { (for_each_tensor(part, f), ...); }, value);
  } else if constexpr (requires { value.has_value(); }) {
    if (value) for_each_tensor(*value, f);
  } else {
    for (auto& part : value) for_each_tensor(part, f);
  }
}

namespace detail {

template <class... A>
struct Types {
  static constexpr std::size_t size = sizeof...(A);
};
struct Missing;
template <std::size_t i, class List>
struct TypeAt {
  using Type = Missing;
};
template <class First, class... Rest>
struct TypeAt<0, Types<First, Rest...>> {
  using Type = First;
};
template <std::size_t i, class First, class... Rest>
requires(i > 0) struct TypeAt<i, Types<First, Rest...>> : TypeAt<i - 1, Types<Rest...>> {
};

template <class F>
struct Signature;
template <class R, class C, class... A>
struct Signature<R (C::*)(A...)> {
  using Result = std::remove_cvref_t<R>;
  using Arguments = Types<A...>;
};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R (C::*)(A...)> {};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...) noexcept> : Signature<R (C::*)(A...)> {};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...) const noexcept> : Signature<R (C::*)(A...)> {};

/// The signature of the module's forward; there is none for a template, or for several overloads.
template <class M>
using ForwardOf = Signature<decltype(&M::forward)>;
template <class S, std::size_t i>
using Argument = typename TypeAt<i, typename S::Arguments>::Type;

template <class C>
void overrides_forward(Tensor (C::*)(const Tensor&));
/// Modules that override `Tensor forward(const Tensor&)` of Module.
template <class M>
concept OneTensor = requires {
  overrides_forward(&M::forward);
};

template <class M, class S, std::size_t... I>
constexpr bool takes(std::index_sequence<I...>) {
  if constexpr (sizeof...(I) >= S::Arguments::size)
    return sizeof...(I) == S::Arguments::size;
  else
    return requires(M & m) { m.forward(std::declval<Argument<S, I>>()...); };  // the others have default arguments
}
/// Whether forward can be called with its first n arguments.
template <class M, class S, std::size_t n>
concept Takes = takes<M, S>(std::make_index_sequence<n>());

template <class M>
concept HasFewParameters = requires {
  requires ForwardOf<M>::Arguments::size <= 6;
};

/// Keeps an argument while hooks may replace its tensors; others are passed on as they are.
template <class A>
using Kept = std::conditional_t<holds_tensors<std::remove_cvref_t<A>>() &&
                                    !(std::is_lvalue_reference_v<A> && !std::is_const_v<std::remove_reference_t<A>>),
                                std::remove_cvref_t<A>, A&&>;
template <class A>
concept Fillable = holds_tensors<std::remove_cvref_t<A>>() && std::default_initializable<std::remove_cvref_t<A>>;

template <class T>
void append_tensors(T&& value, std::vector<Tensor>& list) {
  if constexpr (std::is_same_v<std::remove_cvref_t<T>, Tensor>)
    list.push_back(value);
  else
    for_each_tensor(value, [&](const Tensor& t) { list.push_back(t); });
}
template <class T>
void replace_tensors(T& value, const std::vector<Tensor>& tensors) {
  std::size_t i = 0;
  for_each_tensor(value, [&](Tensor& t) { t = tensors[i++]; });
}

/// Sets a default-constructed value's tensors from the list, of which `used` are used already. A vector takes the rest.
/// Counts on where the list is too short.
template <class T>
void fill(T& value, const std::vector<Tensor>& list, std::size_t& used) {
  if constexpr (TupleLike<T>) {
    std::apply([&](auto&... part) { (fill(part, list, used), ...); }, value);
  } else if constexpr (requires {
                         value.emplace();
                         value.has_value();
                       }) {
    if (used < list.size()) fill(value.emplace(), list, used);
  } else if constexpr (requires(const Tensor& t) { value.push_back(t); }) {
    while (used < list.size()) value.push_back(list[used++]);
  } else {
    for_each_tensor(value, [&](Tensor& t) {
      if (used < list.size()) t = list[used];
      ++used;
    });
  }
}

}  // namespace detail

}  // namespace levin::nn
