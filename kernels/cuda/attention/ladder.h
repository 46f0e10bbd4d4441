#pragma once
// The ladders of attention, for tests and benchmarks. All rungs compute the contract's results; in addition they take
// 16-bit floats, whose lse is float32.

#include <levin/kernels/attention.h>

#include <span>

namespace levin::kernels::cuda {

template <class Args>
struct AttentionLadderRung {
  const char* name;
  const char* idea;
  bool (*can)(const Args&);
  void (*run)(const Args&, Stream&);
};
using AttentionRung = AttentionLadderRung<AttentionArgs>;
using AttentionBackwardRung = AttentionLadderRung<AttentionBackwardArgs>;

std::span<const AttentionRung> attention_rungs();
std::span<const AttentionBackwardRung> attention_backward_rungs();

}  // namespace levin::kernels::cuda
