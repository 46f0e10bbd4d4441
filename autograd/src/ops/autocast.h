#pragma once
// How an operation follows autocast:
//
//   Tensor softmax(const Tensor& x, int64_t axis) {
//     LEVIN_AUTOCAST(float32, softmax, x, axis);

#include <levin/autograd/autocast.h>
#include <levin/autograd/ops/elementwise.h>

#include <type_traits>

namespace levin::ops {

/// Turns autocast off for a scope; casts that are already cached stay.
class AutocastOff {
 public:
  AutocastOff() : before_(detail::autocast_state.enabled) { detail::autocast_state.enabled = false; }
  ~AutocastOff() { detail::autocast_state.enabled = before_; }
  AutocastOff(const AutocastOff&) = delete;
  AutocastOff& operator=(const AutocastOff&) = delete;

 private:
  bool before_;
};

/// Converts float32 and 16-bit floats to autocast's type; returns others, and undefined tensors, unchanged.
Tensor lowered(const Tensor& x);
/// Converts 16-bit floats to float32; returns others unchanged.
Tensor single(const Tensor& x);

/// The type in which an operation computes: autocast's, float32, or the widest type of its inputs.
enum class AutocastPolicy { lower, float32, widest };

/// Converts a tensor argument as the policy requires; returns other arguments unchanged.
template <class X>
decltype(auto) under(AutocastPolicy policy, bool any_float32, const X& x) {
  if constexpr (std::is_same_v<X, Tensor>) {
    if (policy == AutocastPolicy::lower) return lowered(x);
    return policy == AutocastPolicy::float32 || any_float32 ? single(x) : Tensor(x);
  } else {
    return x;
  }
}

template <class X>
bool is_float32(const X& x) {
  if constexpr (std::is_same_v<X, Tensor>) {
    return x.defined() && x.dtype() == kFloat32;
  } else {
    return false;
  }
}

template <class F, class... X>
Tensor call_under(AutocastPolicy policy, F&& f, const X&... x) {
  const AutocastOff off;
  const bool any_float32 = (is_float32(x) || ...);
  return f(under(policy, any_float32, x)...);
}

}  // namespace levin::ops

/// First line of an operation that follows autocast: under autocast, the operation calls itself with autocast off and
/// its tensors converted to the type that the policy requires.
#define LEVIN_AUTOCAST(policy, op, ...)                                     \
  if (autocast_enabled()) [[unlikely]]                                      \
  return call_under(                                                        \
      AutocastPolicy::policy,                                               \
      [](const auto&... op_arguments) { return op(op_arguments...); }, __VA_ARGS__)
