// Optimizer steps. A launch takes a list of tensors, which are cut into chunks of one block each, so that many small
// tensors cost no more than one large one. The kernels are memory-bound.

#include "kernels/cuda/elementwise/math.cuh"
#include "kernels/cuda/optim/chunks.cuh"

#include <levin/kernels/optim.h>

namespace levin::kernels::cuda {

void sgd_step(const SgdStepArgs& a, Stream& stream);
void adam_step(const AdamStepArgs& a, Stream& stream);

namespace optim {

struct Member {
  void* param;
  const void* grad;
  void *first, *second, *third;
  std::int64_t numel;
  double number;  ///< index of the step from 1, including skipped ones
  double* count;  ///< count on the device, used instead
  bool fresh, packed;
};

/// Factors of an update, computed from the tensor's step number.
template <class C>
struct Moment {
  C step, root, keep;  ///< lr, for Adam lr / (1 - beta1^number); sqrt(1 - beta2^number); 1 - lr * decay
  bool fresh;          ///< for SGD: the momentum is not initialised yet
};

template <class C>
struct Sgd {
  double lr;
  const double* lr_at;
  C momentum, take, decay;
  bool decays, remembers, nesterov, maximize;

  explicit Sgd(const SgdStepArgs& a)
      : lr(a.lr),
        lr_at(a.lr_at),
        momentum(static_cast<C>(a.momentum)),
        take(static_cast<C>(1.0 - a.dampening)),
        decay(static_cast<C>(a.weight_decay)),
        decays(a.weight_decay != 0.0),
        remembers(a.momentum != 0.0),
        nesterov(a.nesterov),
        maximize(a.maximize) {}

  __device__ Moment<C> moment(const Member& m, double number) const {
    return {static_cast<C>(lr_at ? *lr_at : lr), C(1), C(1), m.fresh || number == 1.0};
  }
  __device__ bool reads_first(const Moment<C>& now) const { return remembers && !now.fresh; }
  __device__ bool uses_first() const { return remembers; }
  __device__ bool uses_second() const { return false; }
  __device__ bool uses_third() const { return false; }

  __device__ void update(const Moment<C>& now, C& p, C g, C& first, C&, C&) const {
    if (maximize) g = -g;
    if (decays) g = math::fma(decay, p, g);
    if (remembers) {
      first = now.fresh ? g : math::fma(take, g, momentum * first);
      g = nesterov ? math::fma(momentum, first, g) : first;
    }
    p = math::fma(-now.step, g, p);
  }
};

template <class C>
struct Adam {
  double lr, beta1, beta2, weight_decay;
  const double* lr_at;
  C move1, keep2, take2, eps, decay;
  bool decays, decoupled, amsgrad, maximize;
  bool from_gradient;  ///< the lerp of the first moment begins at the gradient: with beta1 = 0 they are bit-equal

  explicit Adam(const AdamStepArgs& a)
      : lr(a.lr),
        beta1(a.beta1),
        beta2(a.beta2),
        weight_decay(a.weight_decay),
        lr_at(a.lr_at),
        move1(static_cast<C>(1.0 - a.beta1 >= 0.5 ? -a.beta1 : 1.0 - a.beta1)),
        keep2(static_cast<C>(a.beta2)),
        take2(static_cast<C>(1.0 - a.beta2)),
        eps(static_cast<C>(a.eps)),
        decay(static_cast<C>(a.weight_decay)),
        decays(a.weight_decay != 0.0),
        decoupled(a.decoupled),
        amsgrad(a.amsgrad),
        maximize(a.maximize),
        from_gradient(1.0 - a.beta1 >= 0.5) {}

  __device__ Moment<C> moment(const Member&, double number) const {
    const double rate = lr_at ? *lr_at : lr;
    return {static_cast<C>(rate / (1.0 - math::pow(beta1, number))),
            static_cast<C>(math::sqrt(1.0 - math::pow(beta2, number))),
            static_cast<C>(__dsub_rn(1.0, __dmul_rn(rate, weight_decay))), false};
  }
  __device__ bool reads_first(const Moment<C>&) const { return true; }
  __device__ bool uses_first() const { return true; }
  __device__ bool uses_second() const { return true; }
  __device__ bool uses_third() const { return amsgrad; }

  __device__ void update(const Moment<C>& now, C& p, C g, C& first, C& second, C& third) const {
    if (maximize) g = -g;
    if (decays && decoupled) p *= now.keep;
    if (decays && !decoupled) g = math::fma(decay, p, g);
    first = math::fma(move1, g - first, from_gradient ? g : first);
    second = math::fma(take2, g * g, keep2 * second);
    if (amsgrad) third = third > second || third != third ? third : second;  // a NaN of either stays
    const C denominator = math::sqrt(amsgrad ? third : second) / now.root + eps;
    p = math::fma(-now.step, first / denominator, p);
  }
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

template <class T, class Step>
__global__ void __launch_bounds__(kThreads)
    optim_step(const __grid_constant__ List<Member, kTensors> list, Step step, StepGuard guard) {
  constexpr int width = 16 / static_cast<int>(sizeof(T));
  using C = ComputeType<T>;
  LEVIN_SHARED(Moment<C>, moment, 1);
  if (guard.found_inf && *guard.found_inf != 0.0f) return;
  const int index = list.find(blockIdx.x);
  const Member& m = list.members[index];
  // Powers in double are slow: one thread computes them for its block.
  if (threadIdx.x == 0) {
    const double skipped = guard.skipped ? static_cast<double>(*guard.skipped) : 0.0;
    moment[0] = step.moment(m, m.count ? *m.count + 1.0 : m.number - skipped);
  }
  __syncthreads();
  const Moment<C> now = moment[0];
  const std::int64_t begin = list.begin(index, blockIdx.x);
  const int size = chunk_size(m.numel - begin);
  for (int i = static_cast<int>(threadIdx.x) * width; i < size; i += kThreads * width) {
    const std::int64_t at = begin + i;
    const int left = size - i;
    C p[width], g[width], first[width] = {}, second[width] = {}, third[width] = {};
    load<T>(p, m.param, at, left, m.packed);
    load<T>(g, m.grad, at, left, m.packed);
    if (step.reads_first(now)) load<T>(first, m.first, at, left, m.packed);
    if (step.uses_second()) load<T>(second, m.second, at, left, m.packed);
    if (step.uses_third()) load<T>(third, m.third, at, left, m.packed);
    LEVIN_PRAGMA_UNROLL
    for (int j = 0; j < width; ++j) step.update(now, p[j], g[j], first[j], second[j], third[j]);
    store<T>(p, m.param, at, left, m.packed);
    if (step.uses_first()) store<T>(first, m.first, at, left, m.packed);
    if (step.uses_second()) store<T>(second, m.second, at, left, m.packed);
    if (step.uses_third()) store<T>(third, m.third, at, left, m.packed);
  }
}

/// Steps all tensors of one type, as many per launch as a list holds.
template <class T, class Step, class Args>
void run(DType dtype, const Args& a, const Stream& stream) {
  const Step step(a);
  List<Member, kTensors> list;
  Counts counts{};
  const auto flush = [&] {
    launch(optim_step<T, Step>, {.grid = list.blocks(), .block = kThreads, .stream = stream}, list, step, a.guard);
    if (counts.n > 0) launch(count_steps, {.block = 64, .stream = stream}, counts, a.guard);
    list.clear();
    counts.n = 0;
  };
  for (const OptimTensor& t : a.tensors) {
    if (t.dtype != dtype) continue;
    const bool packed = aligned({t.param, t.grad, t.first, t.second, t.third});
    list.add({t.param, t.grad, t.first, t.second, t.third, t.numel, t.step, t.count, t.fresh, packed}, t.numel);
    if (t.count) counts.at[counts.n++] = t.count;
    if (list.full()) flush();
  }
  flush();
}

template <template <class> class Step, class Args>
void run_all(const char* op, const Args& a, const Stream& stream) {
  for_each_dtype(op, a.tensors, [&]<class T>(DType dtype) { run<T, Step<ComputeType<T>>>(dtype, a, stream); });
}

}  // namespace optim

void sgd_step(const SgdStepArgs& a, Stream& stream) { optim::run_all<optim::Sgd>("sgd_step", a, stream); }
void adam_step(const AdamStepArgs& a, Stream& stream) { optim::run_all<optim::Adam>("adam_step", a, stream); }

}  // namespace levin::kernels::cuda
