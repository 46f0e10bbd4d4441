// Each rung as a complete attention, forward and backward.
#include "kernels/cuda/attention/ladder.h"

#include "kernels/cuda/attention/01_naive.cuh"
#include "kernels/cuda/attention/rungs.h"

namespace levin::kernels::cuda {

namespace {

template <class Args>
bool always(const Args&) {
  return true;
}

template <class Args>
bool without_mask(const Args& a) {
  return a.mask.empty();
}

void run_naive(const AttentionArgs& a, Stream& stream) {
  with_problem(a, stream, [&](const auto& p) { run_attention_naive(p, stream); });
}
void run_naive_backward(const AttentionBackwardArgs& a, Stream& stream) {
  with_problem(a, stream, [&](const auto& p) { run_attention_backward_naive(p, stream); });
}

constexpr AttentionRung kRungs[] = {
    {"naive", "one thread a result", without_mask, run_naive},
    {"tiled", "tiles in shared memory", always, run_attention_tiled},
    {"flash", "running softmax, scores stay on chip", can_attention_flash, run_attention_flash},
    {"warpgroups", "wgmma, products beside the softmax", can_attention_warpgroups, run_attention_warpgroups},
};
constexpr AttentionBackwardRung kBackwardRungs[] = {
    {"naive", "one thread a result", without_mask, run_naive_backward},
    {"tiled", "tiles in shared memory", always, run_attention_tiled},
    {"flash", "scores computed again, every sum has one owner", can_attention_flash, run_attention_flash},
    {"warpgroups", "wgmma, products beside the exponentials", can_attention_warpgroups, run_attention_warpgroups},
};

}  // namespace

std::span<const AttentionRung> attention_rungs() { return kRungs; }
std::span<const AttentionBackwardRung> attention_backward_rungs() { return kBackwardRungs; }

}  // namespace levin::kernels::cuda
