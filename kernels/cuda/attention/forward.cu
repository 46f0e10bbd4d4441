// The launcher of attention and its ladder.

#include "kernels/cuda/attention/01_naive.cuh"
#include "kernels/cuda/attention/02_tiled.cuh"
#include "kernels/cuda/attention/03_flash_forward.cuh"
#include "kernels/cuda/attention/ladder.h"
#include "kernels/cuda/matmul/choice.h"

namespace levin::kernels::cuda {

namespace {

bool always(const AttentionArgs&) { return true; }

bool can_flash(const AttentionArgs& a) {
  AttentionProblem<float> sizes;
  detail::set_common(a, sizes);
  const std::size_t shared =
      is_narrow(sizes) ? kFlashFloatShared<64> : kFlashFloatShared<128>;  // the 16-bit floats need less
  return a.q.dtype != DType::f64 && flash_fits(sizes, a.scale) && has_shared(Stream(a.q.device), shared);
}

/// Calls f(problem) with the device type.
template <class F>
void with_problem(const AttentionArgs& a, F&& f) {
  dispatch_floating(a.q.dtype, "attention", [&]<class Element>() {
    const auto p = attention_problem<DeviceType<Element>>(a);
    if (!p.empty()) f(p);
  });
}

void run_naive(const AttentionArgs& a, Stream& stream) {
  with_problem(a, [&](const auto& p) { run_attention_naive(p, stream); });
}
void run_tiled(const AttentionArgs& a, Stream& stream) {
  with_problem(a, [&](const auto& p) { run_attention_tiled(p, stream); });
}
void run_flash(const AttentionArgs& a, Stream& stream) {
  with_problem(a, [&]<class T>(const AttentionProblem<T>& p) {
    if constexpr (!std::is_same_v<T, double>) run_attention_flash(p, stream);
  });
}

constexpr AttentionRung kRungs[] = {
    {"naive", "one thread a result", always, run_naive},
    {"tiled", "tiles in shared memory", always, run_tiled},
    {"flash", "running softmax, scores stay on chip", can_flash, run_flash},
};

}  // namespace

std::span<const AttentionRung> attention_rungs() { return kRungs; }

void attention(const AttentionArgs& a, Stream& stream) {
  if (can_flash(a)) return run_flash(a, stream);
  run_tiled(a, stream);
}

}  // namespace levin::kernels::cuda
