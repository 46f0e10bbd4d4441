// The launcher of attention.

#include "kernels/cuda/attention/02_tiled.cuh"
#include "kernels/cuda/attention/05_warpgroup_forward.cuh"
#include "kernels/cuda/attention/rungs.h"
#include "kernels/cuda/matmul/choice.h"

namespace levin::kernels::cuda {

bool can_attention_flash(const AttentionArgs& a) {
  AttentionProblem<float> sizes;
  detail::set_common(a, sizes);
  const std::size_t shared =
      is_narrow(sizes) ? kFlashFloatShared<64> : kFlashFloatShared<128>;  // the 16-bit floats need less
  return a.mask.empty() && a.q.dtype != DType::f64 && flash_fits(sizes, a.scale) &&
         has_shared(Stream(a.q.device), shared);
}

void run_attention_tiled(const AttentionArgs& a, Stream& stream) {
  with_problem(a, stream, [&](const auto& p) { run_attention_tiled(p, stream); });
}
void run_attention_flash(const AttentionArgs& a, Stream& stream) {
  with_problem(a, stream, [&]<class T>(const AttentionProblem<T>& p) {
    if constexpr (!std::is_same_v<T, double>) run_attention_flash(p, stream);
  });
}

bool can_attention_warpgroups(const AttentionArgs& a) {
  return can_attention_flash(a) && fits_warpgroups(a.q.dtype, {a.q, a.k, a.v}, Stream(a.q.device));
}
void run_attention_warpgroups(const AttentionArgs& a, Stream& stream) {
  with_problem(a, stream, [&]<class T>(const AttentionProblem<T>& p) {
    if constexpr (sizeof(T) == 2) run_attention_warpgroups(p, stream);
  });
}

void attention(const AttentionArgs& a, Stream& stream) {
  if (is_long(a) && can_attention_warpgroups(a)) return run_attention_warpgroups(a, stream);
  if (can_attention_flash(a)) return run_attention_flash(a, stream);
  run_attention_tiled(a, stream);
}

}  // namespace levin::kernels::cuda
