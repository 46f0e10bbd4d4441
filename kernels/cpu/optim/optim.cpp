// Optimizer steps: all tensors are split into chunks, which are the tasks of one parallel_for. Memory-bound.
#include "kernels/cpu/targets.h"
#include "kernels/src/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optim/optim.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/simd-inl.h"

#include <levin/core/parallel.h>
#include <levin/kernels/optim.h>

#include <algorithm>
#include <cmath>
#include <vector>

#ifndef LEVIN_KERNELS_CPU_OPTIM_CHUNK
#define LEVIN_KERNELS_CPU_OPTIM_CHUNK
namespace levin::kernels::cpu {

/// A contiguous range of one tensor.
template <class T>
struct OptimChunk {
  T* param;
  const T* grad;
  T *first, *second, *third;
  int64_t n;
  bool fresh;
  double correction1, correction2;
};

}  // namespace levin::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

/// Calls body(load, store) for whole vectors, then once for the remainder.
template <class T, class F>
HWY_INLINE void for_vectors(int64_t n, F&& body) {
  const Simd<T> d;
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>)
    body([&](const T* p) HWY_ATTR { return hn::LoadU(d, p + i); },
         [&](SimdVec<T> v, T* p) HWY_ATTR { hn::StoreU(v, d, p + i); });
  if (i < n)
    body([&](const T* p) HWY_ATTR { return load_part(p + i, n - i); },
         [&](SimdVec<T> v, T* p) HWY_ATTR { store_part(v, p + i, n - i); });
}

template <class T>
void sgd_chunk(const OptimChunk<T>& c, const SgdStepArgs& a) {
  const Simd<T> d;
  const auto set = [d](double v) HWY_ATTR { return hn::Set(d, static_cast<T>(v)); };
  const auto lr = set(a.lr), momentum = set(a.momentum), take = set(1.0 - a.dampening), decay = set(a.weight_decay);
  const bool decays = a.weight_decay != 0.0, remembers = a.momentum != 0.0;
  for_vectors<T>(c.n, [&](auto load, auto store) HWY_ATTR {
    const auto p = load(c.param);
    auto g = load(c.grad);
    if (a.maximize) g = hn::Neg(g);
    if (decays) g = hn::MulAdd(decay, p, g);
    if (remembers) {
      const auto buffer = c.fresh ? g : hn::MulAdd(take, g, hn::Mul(momentum, load(c.first)));
      store(buffer, c.first);
      g = a.nesterov ? hn::MulAdd(momentum, buffer, g) : buffer;
    }
    store(hn::NegMulAdd(lr, g, p), c.param);
  });
}

template <class T>
void adam_chunk(const OptimChunk<T>& c, const AdamStepArgs& a) {
  const Simd<T> d;
  const auto set = [d](double v) HWY_ATTR { return hn::Set(d, static_cast<T>(v)); };
  // Interpolates from the nearer end, as lerp does: with beta1 = 0 the first moment equals the gradient bitwise.
  const bool from_gradient = 1.0 - a.beta1 >= 0.5;
  const auto move1 = set(from_gradient ? -a.beta1 : 1.0 - a.beta1), keep2 = set(a.beta2), take2 = set(1.0 - a.beta2),
             eps = set(a.eps);
  const auto decay = set(a.decoupled ? 1.0 - a.lr * a.weight_decay : a.weight_decay);
  const auto step = set(a.lr / c.correction1), root = set(std::sqrt(c.correction2));
  const bool decays = a.weight_decay != 0.0;
  for_vectors<T>(c.n, [&](auto load, auto store) HWY_ATTR {
    auto p = load(c.param), g = load(c.grad);
    if (a.maximize) g = hn::Neg(g);
    if (decays && a.decoupled) p = hn::Mul(p, decay);
    if (decays && !a.decoupled) g = hn::MulAdd(decay, p, g);
    const auto m0 = load(c.first), m = hn::MulAdd(move1, hn::Sub(g, m0), from_gradient ? g : m0);
    const auto v = hn::MulAdd(take2, hn::Mul(g, g), hn::Mul(keep2, load(c.second)));
    store(m, c.first);
    store(v, c.second);
    auto w = v;
    if (a.amsgrad) {
      const auto most = load(c.third);  // Max keeps only a NaN of v
      w = hn::IfThenElse(hn::IsNaN(most), most, hn::Max(most, v));
      store(w, c.third);
    }
    const auto denominator = hn::Add(hn::Div(hn::Sqrt(w), root), eps);
    store(hn::NegMulAdd(step, hn::Div(m, denominator), p), c.param);
  });
}

void sgd_f32(const OptimChunk<float>& c, const SgdStepArgs& a) { sgd_chunk(c, a); }
void sgd_f64(const OptimChunk<double>& c, const SgdStepArgs& a) { sgd_chunk(c, a); }
void adam_f32(const OptimChunk<float>& c, const AdamStepArgs& a) { adam_chunk(c, a); }
void adam_f64(const OptimChunk<double>& c, const AdamStepArgs& a) { adam_chunk(c, a); }

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels {

namespace cpu {

HWY_EXPORT(sgd_f32);
HWY_EXPORT(sgd_f64);
HWY_EXPORT(adam_f32);
HWY_EXPORT(adam_f64);

namespace {

constexpr int64_t kChunk = 16384;  // elements of a task
constexpr int64_t kPiece = 512;    // 16-bit elements converted at a time

void run(const OptimChunk<float>& c, const SgdStepArgs& a) { HWY_DYNAMIC_DISPATCH(sgd_f32)(c, a); }
void run(const OptimChunk<double>& c, const SgdStepArgs& a) { HWY_DYNAMIC_DISPATCH(sgd_f64)(c, a); }
void run(const OptimChunk<float>& c, const AdamStepArgs& a) { HWY_DYNAMIC_DISPATCH(adam_f32)(c, a); }
void run(const OptimChunk<double>& c, const AdamStepArgs& a) { HWY_DYNAMIC_DISPATCH(adam_f64)(c, a); }

/// Updates 16-bit tensors: pieces are widened, updated in f32 and rounded once.
template <class T, class Args>
void run_narrow(const OptimChunk<T>& c, const Args& a) {
  float wide[5][kPiece];
  for (int64_t begin = 0; begin < c.n; begin += kPiece) {
    const int64_t n = std::min(kPiece, c.n - begin);
    OptimChunk<float> piece{wide[0], wide[1], nullptr, nullptr, nullptr, n, c.fresh, c.correction1, c.correction2};
    const auto widen = [&](const T* from, float* to) {
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[begin + i]);
    };
    const auto narrow = [&](const float* from, T* to) {
      for (int64_t i = 0; i < n; ++i) to[begin + i] = T(from[i]);
    };
    widen(c.param, wide[0]);
    widen(c.grad, wide[1]);
    T* const states[] = {c.first, c.second, c.third};
    float** const places[] = {&piece.first, &piece.second, &piece.third};
    for (int s = 0; s < 3; ++s) {
      if (!states[s]) continue;
      *places[s] = wide[2 + s];
      widen(states[s], wide[2 + s]);
    }
    run(piece, a);
    narrow(wide[0], c.param);
    for (int s = 0; s < 3; ++s)
      if (states[s]) narrow(wide[2 + s], states[s]);
  }
}

/// Factors of an update that depend on the tensor's step number.
struct Moment {
  bool fresh = false;
  double correction1 = 1.0, correction2 = 1.0;
};
Moment moment_of(const SgdStepArgs&, double step) { return {.fresh = step == 1.0}; }
Moment moment_of(const AdamStepArgs& a, double step) {
  return {.correction1 = 1.0 - std::pow(a.beta1, step), .correction2 = 1.0 - std::pow(a.beta2, step)};
}

template <class T>
OptimChunk<T> cut(const OptimTensor& t, const Moment& m, int64_t begin, int64_t n) {
  const auto at = [begin](void* p) { return p ? static_cast<T*>(p) + begin : nullptr; };
  return {at(t.param),        static_cast<const T*>(t.grad) + begin,
          at(t.first),        at(t.second),
          at(t.third),        n,
          t.fresh || m.fresh, m.correction1,
          m.correction2};
}

template <class Args>
void step(const char* op, Args a) {
  if (a.guard.found_inf && *a.guard.found_inf != 0.0f) return;
  if (a.lr_at) a.lr = *a.lr_at;
  const double skipped = a.guard.skipped ? static_cast<double>(*a.guard.skipped) : 0.0;
  struct Task {
    const OptimTensor* tensor;
    Moment moment;
    int64_t begin;
  };
  std::vector<Task> tasks;
  for (const OptimTensor& t : a.tensors) {
    const Moment moment = moment_of(a, t.count ? ++*t.count : t.step - skipped);
    for (int64_t begin = 0; begin < t.numel; begin += kChunk) tasks.push_back({&t, moment, begin});
  }
  const auto run_tasks = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const Task& task = tasks[static_cast<std::size_t>(i)];
      const int64_t n = std::min(kChunk, task.tensor->numel - task.begin);
      dispatch_floating(task.tensor->dtype, op, [&]<class T>() {
        if constexpr (sizeof(T) >= 4) {
          run(cut<T>(*task.tensor, task.moment, task.begin, n), a);
        } else {
          run_narrow(cut<T>(*task.tensor, task.moment, task.begin, n), a);
        }
      });
    }
  };
  int64_t total = 0;
  for (const OptimTensor& t : a.tensors) total += t.numel;
  // Small networks have many small tensors: a chunk's worth of tasks is grouped together.
  const auto count = static_cast<int64_t>(tasks.size());
  const int64_t grain = total > 0 ? std::max<int64_t>(1, count * kChunk / std::max(total, kChunk)) : 1;
  parallel_for(0, count, grain, run_tasks);
}

void sgd_step(const SgdStepArgs& a, Stream&) { step("sgd_step", a); }
void adam_step(const AdamStepArgs& a, Stream&) { step("adam_step", a); }

}  // namespace
}  // namespace cpu

LEVIN_KERNEL(SgdStepArgs, sgd_step, cpu::sgd_step);
LEVIN_KERNEL(AdamStepArgs, adam_step, cpu::adam_step);

}  // namespace levin::kernels
#endif
