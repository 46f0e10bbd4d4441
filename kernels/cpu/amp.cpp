// Loss scaling: unscaling with a check for infinity and NaN, and the update of the scale.
#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/amp.h>

#include <atomic>
#include <cmath>

namespace levin::kernels {

namespace cpu {

namespace {

constexpr int64_t kAmpGrain = 32768;  // elements of a task

/// Multiplies the values; returns true if all are finite before and after.
template <class T>
bool multiply(T* values, int64_t n, float factor) {
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  Wide rest = 0;  // 0 times a finite number is 0, otherwise NaN: one sum that vectorises
  for (int64_t i = 0; i < n; ++i) {
    const Wide before = static_cast<Wide>(values[i]);
    const T after = T(before * static_cast<Wide>(factor));
    rest += before * 0 + static_cast<Wide>(after) * 0;
    values[i] = after;
  }
  return rest == 0;
}

}  // namespace

void amp_unscale(const UnscaleArgs& a, Stream&) {
  const auto factor = static_cast<float>(1.0 / static_cast<double>(*a.scale));
  std::atomic<bool> finite{true};
  for (const AmpTensor& t : a.tensors) {
    dispatch_floating(t.dtype, "amp_unscale", [&]<class T>() {
      T* const values = static_cast<T*>(t.values);
      parallel_for(0, t.numel, kAmpGrain, [&](int64_t begin, int64_t end) {
        if (!multiply(values + begin, end - begin, factor)) finite.store(false, std::memory_order_relaxed);
      });
    });
  }
  if (!finite.load()) *a.found_inf = 1.0f;
}

void amp_update_scale(const UpdateScaleArgs& a, Stream&) {
  if (*a.found_inf != 0.0f) {
    *a.scale = std::max(*a.scale * a.backoff, a.min_scale);
    *a.tracker = 0.0f;
    *a.skips += 1.0f;
    return;
  }
  *a.skips = 0.0f;
  *a.tracker += 1.0f;
  if (*a.tracker < static_cast<float>(a.growth_interval)) return;
  const float grown = *a.scale * a.growth;
  if (std::isfinite(grown)) *a.scale = grown;
  *a.tracker = 0.0f;
}

}  // namespace cpu

LEVIN_KERNEL(UnscaleArgs, amp_unscale, cpu::amp_unscale);
LEVIN_KERNEL(UpdateScaleArgs, amp_update_scale, cpu::amp_update_scale);

}  // namespace levin::kernels
