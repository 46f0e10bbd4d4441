#pragma once
// Contracts of loss scaling. The state stays on the device, and the host never waits for it.

#include <levin/kernels/kernel.h>

#include <span>

namespace levin::kernels {

/// The gradient of one tensor: `numel` contiguous `values` of a real floating dtype, on the stream's device.
struct AmpTensor {
  void* values = nullptr;
  int64_t numel = 0;
  DType dtype = DType::f32;
};

/// Multiplies the values of all `tensors` by 1 / scale, where the reciprocal is computed in double and rounded to
/// float; sets found_inf to 1 if a value is infinite or NaN before or after. `scale` and `found_inf` are one float each
/// on the device. Bytes: values twice.
struct UnscaleArgs {
  std::span<const AmpTensor> tensors;
  const float* scale = nullptr;
  float* found_inf = nullptr;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    Work w;
    for (const auto& t : tensors) {
      w.bytes += 2.0 * static_cast<double>(t.numel) * static_cast<double>(size_of(t.dtype));
      w.flops += static_cast<double>(t.numel);
      w.dtype = t.dtype;
    }
    return w;
  }
  /// Copies the list for a capture.
  void own_lists() { own_list(tensors); }
};
extern constinit Kernel<void(const UnscaleArgs&, Stream&)> amp_unscale;

/// Updates the scale after a step. If found_inf is not 0, scale = max(scale * backoff, min_scale) and tracker = 0.
/// Otherwise tracker is incremented; when it reaches growth_interval, scale *= growth if the result is finite, and
/// tracker = 0. `skips` counts consecutive skipped steps. All are one float each on the device.
struct UpdateScaleArgs {
  float* scale = nullptr;
  float* tracker = nullptr;
  float* skips = nullptr;
  const float* found_inf = nullptr;
  float growth = 2.0f, backoff = 0.5f, min_scale = 1.0f;
  int growth_interval = 2000;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {7 * sizeof(float), 4, DType::f32}; }
};
extern constinit Kernel<void(const UpdateScaleArgs&, Stream&)> amp_update_scale;

}  // namespace levin::kernels
