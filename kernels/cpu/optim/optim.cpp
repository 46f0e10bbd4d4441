// Optimizer steps: all tensors are split into chunks, which are the tasks of one parallel_for. Memory-bound.
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/targets.h"
#include "kernels/src/optim_rows.h"
#include "kernels/src/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optim/optim.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/elementwise/number-inl.h"

#include <levin/core/parallel.h>

#include <algorithm>

#ifndef LEVIN_KERNELS_CPU_OPTIM_CHUNK
#define LEVIN_KERNELS_CPU_OPTIM_CHUNK
namespace levin::kernels::cpu {

/// A contiguous range of one tensor.
template <class T>
struct OptimChunk {
  T* param;
  const T* grad;
  T* slots[kOptimSlots];
  int64_t n;
};

/// A range of one tensor with the numbers of its step.
struct OptimTask {
  const OptimTensor* tensor;
  StepNumbers now;
  int64_t begin, n;
};

/// True if two tasks have the same constants.
inline bool like(const OptimTask& a, const OptimTask& b) {
  return a.tensor->dtype == b.tensor->dtype && a.now.lr == b.now.lr && a.now.number == b.now.number &&
         a.now.fresh == b.now.fresh;
}

constexpr int64_t kPiece = 512;  // 16-bit elements converted at a time

}  // namespace levin::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

#define LEVIN_FORMULA_FUNCTION HWY_INLINE
#include "kernels/src/optim_formulas.inc"
#undef LEVIN_FORMULA_FUNCTION

template <class T, class Args>
using UpdateOf = Update<Number<Simd<T>>, Args>;

/// Updates a range. `Used` is the set of slots in use, a template parameter so that the inner loop has no branches. The
/// function is not inlined, so that 16-bit types and float32 share one copy.
template <unsigned Used, class T, class Args>
HWY_NOINLINE void update_chunk(const OptimChunk<T>& c, const UpdateOf<T, Args>& update) {
  using C = Number<Simd<T>>;
  for_vectors<T>(c.n, [&](auto load, auto store) HWY_ATTR {
    C p(load(c.param)), slots[kOptimSlots] = {C(0.0), C(0.0), C(0.0)};
    unrolled<kOptimSlots>([&](auto i) HWY_ATTR {
      if constexpr (Used >> i & 1u) slots[i] = C(load(c.slots[i]));
    });
    update(p, C(load(c.grad)), slots);
    store(p.v, c.param);
    unrolled<kOptimSlots>([&](auto i) HWY_ATTR {
      if constexpr (Used >> i & 1u) store(slots[i].v, c.slots[i]);
    });
  });
}

template <class T>
HWY_NOINLINE void widen(const uint16_t* from, float* to, int64_t n) {
  const T* const values = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(values[i]);
}
template <class T>
HWY_NOINLINE void narrow(const float* from, uint16_t* to, int64_t n) {
  T* const values = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) values[i] = T(from[i]);
}

/// The conversions of a 16-bit type. Such types share the code that updates their values, which it sees as uint16_t.
struct Conversions {
  void (*widen)(const uint16_t* from, float* to, int64_t n);
  void (*narrow)(const float* from, uint16_t* to, int64_t n);
};

/// Updates 16-bit values: pieces are widened, updated in f32 and rounded once.
template <unsigned Used, class Args>
HWY_INLINE void update_narrow_chunk(const OptimChunk<uint16_t>& c, const Conversions& as,
                                    const UpdateOf<float, Args>& update) {
  float param[kPiece], grad[kPiece], slots[kOptimSlots][kPiece];
  for (int64_t begin = 0; begin < c.n; begin += kPiece) {
    const int64_t n = std::min(kPiece, c.n - begin);
    as.widen(c.param + begin, param, n);
    as.widen(c.grad + begin, grad, n);
    for (int i = 0; i < kOptimSlots; ++i)
      if (Used >> i & 1u) as.widen(c.slots[i] + begin, slots[i], n);
    update_chunk<Used, float, Args>({param, grad, {slots[0], slots[1], slots[2]}, n}, update);
    as.narrow(param, c.param + begin, n);
    for (int i = 0; i < kOptimSlots; ++i)
      if (Used >> i & 1u) as.narrow(slots[i], c.slots[i] + begin, n);
  }
}

/// Runs tasks of one type, step number and rate; `Used` is the set of slots in use, T is uint16_t for 16-bit types.
template <class T, unsigned Used, class Args>
HWY_INLINE void update_slots(const Args& a, const Conversions& as, const OptimTask* task, const OptimTask* end) {
  using Computed = std::conditional_t<std::is_same_v<T, uint16_t>, float, T>;
  const auto update = UpdateOf<Computed, Args>::at(a, task->now);
  for (; task != end; ++task) {
    const auto at = [task](void* slot) { return slot ? static_cast<T*>(slot) + task->begin : nullptr; };
    const OptimTensor& t = *task->tensor;
    const OptimChunk<T> c{
        at(t.param), static_cast<const T*>(t.grad) + task->begin, {at(t.first), at(t.second), at(t.third)}, task->n};
    if constexpr (std::is_same_v<T, uint16_t>) {
      update_narrow_chunk<Used, Args>(c, as, update);
    } else {
      update_chunk<Used, T, Args>(c, update);
    }
  }
}

/// Chooses the code by the set of slots in use.
template <class T, class Args>
HWY_NOINLINE void update_like(const Args& a, const Conversions& as, const OptimTask* task, const OptimTask* end) {
  unrolled<std::size(Args::kSlotSets)>([&](auto i) HWY_ATTR {
    constexpr unsigned used = Args::kSlotSets[i];
    if (a.slots() == used) update_slots<T, used>(a, as, task, end);
  });
}

/// Runs tasks. Those with equal numbers share the constants of a step, whose powers cost more than a small tensor.
template <class Args>
HWY_INLINE void update_tasks(const char* op, const Args& a, const OptimTask* task, const OptimTask* end) {
  for (const OptimTask* next = task; task != end; task = next) {
    while (next != end && like(*task, *next)) ++next;
    dispatch_floating(task->tensor->dtype, op, [&]<class T>() HWY_ATTR {
      if constexpr (sizeof(T) >= 4) {
        update_like<T>(a, {}, task, next);
      } else {
        update_like<uint16_t>(a, {widen<T>, narrow<T>}, task, next);
      }
    });
  }
}

#define LEVIN_OPTIMIZER_ON_TARGET(name, Args)                                            \
  void name##_tasks(const Args& a, const OptimTask* begin, const OptimTask* end) {       \
    update_tasks(#name, a, begin, end);                                                  \
  }
LEVIN_OPTIMIZER_ROWS(LEVIN_OPTIMIZER_ON_TARGET)
#undef LEVIN_OPTIMIZER_ON_TARGET

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels {

namespace cpu {
namespace {

constexpr int64_t kChunk = 16384;  // elements of a task

template <class Args>
using UpdateTasks = void (*)(const Args&, const OptimTask* begin, const OptimTask* end);

template <class Args>
void step(UpdateTasks<Args> update_tasks, const Args& a) {
  if (a.guard.found_inf && *a.guard.found_inf != 0.0f) return;
  const double skipped = a.guard.skipped ? static_cast<double>(*a.guard.skipped) : 0.0;
  int64_t count = 0, total = 0;
  for (const OptimTensor& t : a.tensors) {
    count += (t.numel + kChunk - 1) / kChunk;
    total += t.numel;
  }
  OptimTask* const tasks = scratch<OptimTask>(Slot::optim, count);
  OptimTask* next = tasks;
  for (const OptimTensor& t : a.tensors) {
    const StepNumbers now{a.lr_at ? *a.lr_at : a.lr, t.count ? ++*t.count : t.step - skipped, t.fresh};
    for (int64_t begin = 0; begin < t.numel; begin += kChunk)
      *next++ = {&t, now, begin, std::min(kChunk, t.numel - begin)};
  }
  // Small networks have many small tensors: a chunk's worth of tasks is grouped together.
  const int64_t grain = total > 0 ? std::max<int64_t>(1, count * kChunk / std::max(total, kChunk)) : 1;
  parallel_for(0, count, grain, [&](int64_t first, int64_t last) { update_tasks(a, tasks + first, tasks + last); });
}

}  // namespace
}  // namespace cpu

#define LEVIN_OPTIMIZER_TABLE(name, Args)                                                          \
  namespace cpu {                                                                                  \
  HWY_EXPORT(name##_tasks);                                                                        \
  static void name(const Args& a, Stream&) { step<Args>(&HWY_DYNAMIC_DISPATCH(name##_tasks), a); } \
  }                                                                                                \
  LEVIN_KERNEL(Args, name, cpu::name);
LEVIN_OPTIMIZER_ROWS(LEVIN_OPTIMIZER_TABLE)
#undef LEVIN_OPTIMIZER_TABLE

}  // namespace levin::kernels
#endif
