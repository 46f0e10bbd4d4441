// The launcher of attention's backward and its ladder.

#include "kernels/cuda/attention/01_naive.cuh"
#include "kernels/cuda/attention/02_tiled.cuh"
#include "kernels/cuda/attention/04_flash_backward.cuh"
#include "kernels/cuda/attention/ladder.h"
#include "kernels/cuda/matmul/choice.h"

namespace levin::kernels::cuda {

namespace {

bool always(const AttentionBackwardArgs&) { return true; }

bool can_flash(const AttentionBackwardArgs& a) {
  AttentionGradients<float> sizes;
  detail::set_common(a, sizes);
  const std::size_t shared =
      is_narrow(sizes) ? kFlashBackwardFloatShared<64> : kFlashBackwardFloatShared<128>;  // the 16-bit floats need less
  return a.q.dtype != DType::f64 && flash_fits(sizes, a.scale) && has_shared(Stream(a.q.device), shared);
}

void set_zero(const TensorView& x, Stream& stream) {
  const std::int64_t bytes = x.numel() * size_of(x.dtype);
  if (bytes > 0)
    check(cudaMemsetAsync(x.pointer, 0, static_cast<std::size_t>(bytes), stream_of(stream)), "cudaMemsetAsync");
}

/// Calls f(problem) with the device type.
template <class F>
void with_problem(const AttentionBackwardArgs& a, Stream& stream, F&& f) {
  dispatch_floating(a.q.dtype, "attention_backward", [&]<class Element>() {
    const auto p = attention_problem<DeviceType<Element>>(a);
    if (!p.empty()) return f(p);
    set_zero(a.dk, stream);
    set_zero(a.dv, stream);
  });
}

void run_naive(const AttentionBackwardArgs& a, Stream& stream) {
  with_problem(a, stream, [&](const auto& p) { run_attention_backward_naive(p, stream); });
}
void run_tiled(const AttentionBackwardArgs& a, Stream& stream) {
  with_problem(a, stream, [&](const auto& p) { run_attention_backward_tiled(p, stream); });
}
void run_flash(const AttentionBackwardArgs& a, Stream& stream) {
  with_problem(a, stream, [&]<class T>(const AttentionGradients<T>& p) {
    if constexpr (!std::is_same_v<T, double>) run_attention_backward_flash(p, stream);
  });
}

constexpr AttentionBackwardRung kRungs[] = {
    {"naive", "one thread a result", always, run_naive},
    {"tiled", "tiles in shared memory", always, run_tiled},
    {"flash", "scores computed again, every sum has one owner", can_flash, run_flash},
};

}  // namespace

std::span<const AttentionBackwardRung> attention_backward_rungs() { return kRungs; }

void attention_backward(const AttentionBackwardArgs& a, Stream& stream) {
  if (can_flash(a)) return run_flash(a, stream);
  run_tiled(a, stream);
}

}  // namespace levin::kernels::cuda
