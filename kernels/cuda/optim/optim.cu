// Optimizer steps. A launch takes a list of tensors, which are cut into chunks of one block each, so that many small
// tensors cost no more than one large one. The kernels are memory-bound.

#include "kernels/cuda/elementwise/math.cuh"
#include "kernels/cuda/optim/chunks.cuh"
#include "kernels/src/optim_rows.h"

namespace levin::kernels::cuda {

#define LEVIN_OPTIMIZER_DECLARED(name, Args) void name(const Args& a, Stream& stream);
LEVIN_OPTIMIZER_ROWS(LEVIN_OPTIMIZER_DECLARED)
#undef LEVIN_OPTIMIZER_DECLARED

namespace optim {

#define LEVIN_FORMULA_FUNCTION __device__ inline
#include "kernels/src/optim_formulas.inc"
#undef LEVIN_FORMULA_FUNCTION

struct Member {
  void* param;
  const void* grad;
  void* slots[kOptimSlots];  ///< those that the step uses, others are null
  std::int64_t numel;
  double number;  ///< index of the step from 1, including skipped ones
  double* count;  ///< count on the device, used instead
  bool fresh, packed;
};

inline constexpr int kTensors = 48;

/// The step counts of a list's tensors, if they lie on the device.
struct Counts {
  double* at[kTensors];
  int n;
};

/// Runs after the step, which reads the counts.
__global__ void count_steps(const __grid_constant__ Counts counts, StepGuard guard) {
  const bool stepped = !guard.found_inf || *guard.found_inf == 0.0f;
  const int i = static_cast<int>(threadIdx.x);
  if (i < counts.n && stepped) *counts.at[i] += 1.0;
}

template <class T, class Args>
__global__ void __launch_bounds__(kThreads)
    optim_step(const __grid_constant__ List<Member, kTensors> list, const __grid_constant__ Args a) {
  constexpr int width = 16 / static_cast<int>(sizeof(T));
  using C = ComputeType<T>;
  using UpdateOf = Update<C, Args>;
  LEVIN_SHARED(UpdateOf, update_of_block, 1);
  if (a.guard.found_inf && *a.guard.found_inf != 0.0f) return;
  const int index = list.find(blockIdx.x);
  const Member& m = list.members[index];
  // Powers in double are slow: one thread computes the constants for its block.
  if (threadIdx.x == 0) {
    const double skipped = a.guard.skipped ? static_cast<double>(*a.guard.skipped) : 0.0;
    const double number = m.count ? *m.count + 1.0 : m.number - skipped;
    update_of_block[0] = UpdateOf::at(a, {a.lr_at ? *a.lr_at : a.lr, number, m.fresh});
  }
  __syncthreads();
  const UpdateOf update = update_of_block[0];
  const auto uses = [&m](int slot) { return (kAllSlots<Args> >> slot & 1u) && m.slots[slot]; };
  const std::int64_t begin = list.begin(index, blockIdx.x);
  const int size = chunk_size(m.numel - begin);
  for (int i = static_cast<int>(threadIdx.x) * width; i < size; i += kThreads * width) {
    const std::int64_t at = begin + i;
    const int left = size - i;
    C p[width], g[width], slots[kOptimSlots][width] = {};
    load<T>(p, m.param, at, left, m.packed);
    load<T>(g, m.grad, at, left, m.packed);
    LEVIN_PRAGMA_UNROLL
    for (int k = 0; k < kOptimSlots; ++k)
      if (uses(k)) load<T>(slots[k], m.slots[k], at, left, m.packed);
    LEVIN_PRAGMA_UNROLL
    for (int j = 0; j < width; ++j) {
      C of_element[kOptimSlots] = {slots[0][j], slots[1][j], slots[2][j]};
      update(p[j], g[j], of_element);
      LEVIN_PRAGMA_UNROLL
      for (int k = 0; k < kOptimSlots; ++k) slots[k][j] = of_element[k];
    }
    store<T>(p, m.param, at, left, m.packed);
    LEVIN_PRAGMA_UNROLL
    for (int k = 0; k < kOptimSlots; ++k)
      if (uses(k)) store<T>(slots[k], m.slots[k], at, left, m.packed);
  }
}

/// Steps all tensors of one type, as many per launch as a list holds.
template <class T, class Args>
void run(DType dtype, const Args& a, const Stream& stream) {
  List<Member, kTensors> list;
  Counts counts{};
  const auto flush = [&] {
    launch(optim_step<T, Args>, {.grid = list.blocks(), .block = kThreads, .stream = stream}, list, a);
    if (counts.n > 0) launch(count_steps, {.block = 64, .stream = stream}, counts, a.guard);
    list.clear();
    counts.n = 0;
  };
  const auto used = [&a](int slot, void* memory) { return a.slots() >> slot & 1u ? memory : nullptr; };
  for (const OptimTensor& t : a.tensors) {
    if (t.dtype != dtype) continue;
    const Member m{t.param, t.grad,  {used(0, t.first), used(1, t.second), used(2, t.third)}, t.numel, t.step,
                   t.count, t.fresh, aligned({t.param, t.grad, t.first, t.second, t.third})};
    list.add(m, t.numel);
    if (t.count) counts.at[counts.n++] = t.count;
    if (list.full()) flush();
  }
  flush();
}

}  // namespace optim

#define LEVIN_OPTIMIZER_ON_CUDA(name, Args)                                                                        \
  void name(const Args& a, Stream& stream) {                                                                       \
    optim::for_each_dtype(#name, a.tensors, [&]<class T>(DType dtype) { optim::run<T, Args>(dtype, a, stream); }); \
  }
LEVIN_OPTIMIZER_ROWS(LEVIN_OPTIMIZER_ON_CUDA)
#undef LEVIN_OPTIMIZER_ON_CUDA

}  // namespace levin::kernels::cuda
