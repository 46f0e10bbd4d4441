#pragma once
// How an operation obeys autocast: it calls itself with its inputs in another type, autocast being off.
//
//   Tensor exp(const Tensor& x) {
//     if (autocast_enabled()) return in_single([](const Tensor& v) { return exp(v); }, x);

#include <levin/autograd/autocast.h>
#include <levin/autograd/ops/elementwise.h>

#include <algorithm>

namespace levin::ops {

/// Autocast off for a scope; the casts kept so far stay.
class AutocastOff {
 public:
  AutocastOff() : before_(detail::autocast_state.enabled) { detail::autocast_state.enabled = false; }
  ~AutocastOff() { detail::autocast_state.enabled = before_; }
  AutocastOff(const AutocastOff&) = delete;
  AutocastOff& operator=(const AutocastOff&) = delete;

 private:
  bool before_;
};

/// float32 and the 16-bit floats in autocast's type; others, and undefined tensors, as they are.
Tensor lowered(const Tensor& x);
/// 16-bit floats in float32; others as they are.
Tensor single(const Tensor& x);

template <class F, class... X>
auto in_lower(F&& f, const X&... x) {
  const AutocastOff off;
  return f(lowered(x)...);
}

template <class F, class... X>
auto in_single(F&& f, const X&... x) {
  const AutocastOff off;
  return f(single(x)...);
}

/// In float32 where one of the inputs is.
template <class F, class... X>
auto in_widest(F&& f, const X&... x) {
  const AutocastOff off;
  const bool wide = ((x.dtype() == kFloat32) || ...);
  return f(wide ? single(x) : x...);
}

}  // namespace levin::ops
