#include "autocast.h"

#include "../errors.h"
#include "values.h"

#include <levin/autograd/modes.h>
#include <levin/core/capture/recording.h>

#include <unordered_map>

namespace levin {

namespace {

/// The cast of a leaf, and the leaf itself, which keeps its address from being reused.
struct Cast {
  Tensor leaf, cast;
  std::uint32_t version;
};

std::unordered_map<const TensorImpl*, Cast>& casts() {
  static thread_local std::unordered_map<const TensorImpl*, Cast> map;
  return map;
}

}  // namespace

autocast::autocast(DType dtype, bool enabled, bool cache_enabled) : before_(detail::autocast_state) {
  if (dtype != kHalf && dtype != kBFloat16)
    fail<DTypeError>("[autocast] {} is no type to cast to; use float16 or bfloat16.", dtype);
  detail::autocast_state = {dtype, enabled, cache_enabled, before_.depth + 1};
}

autocast::~autocast() {
  detail::autocast_state = before_;
  if (before_.depth == 0) casts().clear();
}

namespace ops {

Tensor lowered(const Tensor& x) {
  const DType t = detail::autocast_state.dtype;
  if (!x.defined() || x.dtype() == t || !(x.dtype() == kFloat32 || is_16_bit(x))) return x;
  // A cast made while nothing is recorded would cut the weight off from later gradients.
  const bool keep = detail::autocast_state.cache && grad_enabled() && x.requires_grad() && x.is_leaf();
  // A cast made during graph capture must not be used outside of the graph, nor the other way round: replays have to
  // cast the weights as they are then.
  if (!keep || recording(current_stream(x.device()))) return to(x, t);
  const auto version = static_cast<std::uint32_t>(x.version());
  const auto found = casts().find(x.impl_ptr().get());
  if (found != casts().end() && found->second.version == version && found->second.cast.dtype() == t)
    return found->second.cast;
  return casts().insert_or_assign(x.impl_ptr().get(), Cast{x, to(x, t), version}).first->second.cast;
}

Tensor single(const Tensor& x) { return widened(x); }

}  // namespace ops
}  // namespace levin
