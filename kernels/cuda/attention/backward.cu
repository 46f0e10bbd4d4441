// The launcher of attention's backward.

#include "kernels/cuda/attention/02_tiled.cuh"
#include "kernels/cuda/attention/06_warpgroup_backward.cuh"
#include "kernels/cuda/attention/rungs.h"
#include "kernels/cuda/matmul/choice.h"

namespace levin::kernels::cuda {

bool can_attention_flash(const AttentionBackwardArgs& a) {
  AttentionGradients<float> sizes;
  detail::set_common(a, sizes);
  const std::size_t shared =
      is_narrow(sizes) ? kFlashBackwardFloatShared<64> : kFlashBackwardFloatShared<128>;  // the 16-bit floats need less
  return a.mask.empty() && a.q.dtype != DType::f64 && flash_fits(sizes, a.scale) &&
         has_shared(Stream(a.q.device), shared);
}

void run_attention_tiled(const AttentionBackwardArgs& a, Stream& stream) {
  with_problem(a, stream, [&](const auto& p) { run_attention_backward_tiled(p, stream); });
}
void run_attention_flash(const AttentionBackwardArgs& a, Stream& stream) {
  with_problem(a, stream, [&]<class T>(const AttentionGradients<T>& p) {
    if constexpr (!std::is_same_v<T, double>) run_attention_backward_flash(p, stream);
  });
}

bool can_attention_warpgroups(const AttentionBackwardArgs& a) {
  return can_attention_flash(a) && fits_warpgroups(a.q.dtype, {a.q, a.k, a.v, a.g}, Stream(a.q.device));
}
void run_attention_warpgroups(const AttentionBackwardArgs& a, Stream& stream) {
  with_problem(a, stream, [&]<class T>(const AttentionGradients<T>& p) {
    if constexpr (sizeof(T) == 2) run_attention_backward_warpgroups(p, stream);
  });
}

void attention_backward(const AttentionBackwardArgs& a, Stream& stream) {
  if (is_long(a) && can_attention_warpgroups(a)) return run_attention_warpgroups(a, stream);
  if (can_attention_flash(a)) return run_attention_flash(a, stream);
  run_attention_tiled(a, stream);
}

}  // namespace levin::kernels::cuda
