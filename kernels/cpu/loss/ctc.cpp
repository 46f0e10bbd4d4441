// Connectionist temporal classification: neighbouring states are the lanes, and a task computes one sample.
#include "kernels/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/loss/ctc.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/loss/loss.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/scratch.h"
#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/loss.h>

#include <algorithm>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr float kNever = -1e30f;  // the logarithm of 0, finite, so that no difference is NaN

/// A sample's rows of states in scratch memory: `front` elements that no path reaches, the states, and as many again
/// as a shifted vector may read.
class CtcRows {
 public:
  CtcRows(const CtcSample& sample, float* memory)
      : g(sample), width(2 * front + (g.states + kLanes<float> - 1) / kLanes<float> * kLanes<float>),
        alpha_(memory), emitted(row(g.steps)), skip(row(g.steps + 1)), beta(row(g.steps + 2)) {
    std::fill(memory, memory + (g.steps + 3) * width, kNever);
    std::fill(emitted - front, emitted - front + width, 2 * kNever);
    for (int64_t s = 0; s < g.states; ++s) skip[s] = g.skips[s] ? 0.0f : kNever;
  }

  /// Returns the number of elements that a sample needs.
  static int64_t size(const CtcSample& g) { return (g.steps + 3) * (2 * front + g.states + kLanes<float>); }

  /// Computes the loss, and alpha of all steps: the logarithms of the sums over the paths that lead to a state, each
  /// row less its largest, which `tops` sums up, so that long inputs lose no digits.
  double forward() {
    emit(0);
    row(0)[0] = emitted[0];
    if (g.states > 1) row(0)[1] = emitted[1];
    double top = settle(row(0));
    for (int64_t t = 1; t < g.steps; ++t) {
      emit(t);
      const float* const from = row(t - 1);
      for_states(row(t), [&](int64_t s, auto d) HWY_ATTR {
        const auto leap = hn::Add(hn::LoadU(d, from + s - 2), hn::LoadU(d, skip + s));
        return hn::Add(log_sum(d, hn::LoadU(d, from + s), hn::LoadU(d, from + s - 1), leap),
                       hn::LoadU(d, emitted + s));
      });
      top += settle(row(t));
    }
    const float* const end = row(g.steps - 1) + g.states - 1;
    const double a = static_cast<double>(end[0]), b = static_cast<double>(end[-1]);
    return -(top + (a > b ? a : b) + std::log1p(std::exp(-std::abs(a - b))));
  }

  /// Subtracts the probability of each state and step, given the labels, from the gradient of its class.
  void backward(double loss) {
    const double total = -loss;
    double top = 0;  // the sum that rows of alpha up to t lack
    for (int64_t t = 0; t < g.steps; ++t) top += tops(t);
    double beta_top = 0;
    beta[g.states - 1] = 0.0f;
    if (g.states > 1) beta[g.states - 2] = 0.0f;
    for (int64_t t = g.steps - 1; t >= 0; --t) {
      emit(t);
      const float* const alpha = row(t);
      float* const dx = g.dx + t * g.step;
      const auto level = hn::Set(Simd<float>(), static_cast<float>(top + beta_top - total));
      HWY_ALIGN float share[kLanes<float>];
      for (int64_t s = 0; s < g.states; s += kLanes<float>) {
        const Simd<float> d;
        const auto both = hn::Add(hn::LoadU(d, alpha + s), hn::LoadU(d, beta + s));
        hn::Store(exp_of_low(d, hn::Add(both, level)), d, share);
        const int64_t count = std::min(kLanes<float>, g.states - s);
        for (int64_t i = 0; i < count; ++i) dx[g.classes[s + i]] -= share[i];
      }
      top -= tops(t);
      for_states(beta, [&](int64_t s, auto d) HWY_ATTR {
        return hn::Add(hn::LoadU(d, beta + s), hn::LoadU(d, emitted + s));
      });
      // Rising states read only states that are not yet overwritten.
      for_states(beta, [&](int64_t s, auto d) HWY_ATTR {
        const auto leap = hn::Add(hn::LoadU(d, beta + s + 2), hn::LoadU(d, skip + s + 2));
        return log_sum(d, hn::LoadU(d, beta + s), hn::LoadU(d, beta + s + 1), leap);
      });
      beta_top += settle(beta);
    }
  }

 private:
  static constexpr int64_t front = std::max<int64_t>(kLanes<float>, 4);

  float* row(int64_t t) { return alpha_ + t * width + front; }
  float& tops(int64_t t) { return row(t)[-front]; }  // in the place of an element that nothing reads

  template <class F>
  HWY_INLINE void for_states(float* to, F&& f) {
    const Simd<float> d;
    for (int64_t s = 0; s < g.states; s += kLanes<float>) hn::StoreU(f(s, d), d, to + s);
  }

  template <class D, class V>
  static HWY_INLINE V log_sum(D d, V a, V b, V c) {
    const V top = hn::Max(a, hn::Max(b, c));
    const V sum = hn::Add(exp_of_low(d, hn::Sub(a, top)), exp_of_low(d, hn::Sub(b, top)));
    return hn::Add(top, log_v(d, hn::Add(sum, exp_of_low(d, hn::Sub(c, top)))));
  }

  void emit(int64_t t) {
    const float* const x = g.x + t * g.step;
    for (int64_t s = 0; s < g.states; ++s) {
      const float v = x[g.classes[s]];
      emitted[s] = v < 2 * kNever ? 2 * kNever : v;  // NaN stays
    }
  }

  /// Subtracts the largest of the states from all of them, notes and returns it.
  double settle(float* states) {
    const Simd<float> d;
    float top = states[0];
    for (int64_t s = 1; s < g.states; ++s) top = states[s] > top ? states[s] : top;
    const auto all = hn::Set(d, top);
    for_states(states, [&](int64_t s, auto tag) HWY_ATTR { return hn::Sub(hn::LoadU(tag, states + s), all); });
    states[-front] = top;
    return static_cast<double>(top);
  }

  const CtcSample& g;
  const int64_t width;
  float* const alpha_;    // (steps, width)
  float *emitted, *skip;  // (width)
  float* beta;            // (width)
};

double ctc_sample(const CtcSample& g) {
  CtcRows rows(g, scratch<float>(Slot::loss, CtcRows::size(g)));
  const double loss = rows.forward();
  if (g.dx && !(loss > kCtcNoPath)) rows.backward(loss);
  return loss;
}

}  // namespace
}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels {
namespace cpu {

HWY_EXPORT(ctc_sample);

static void ctc(const CtcArgs& a, Stream&) {
  const int64_t steps = a.x.size(0), batch = a.x.size(1), classes = a.x.size(2), states = a.states.size(1);
  float* const dx = a.dx.pointer ? a.dx.data<float>() : nullptr;
  parallel_for(0, batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const CtcSample sample{.x = a.x.data<float>() + b * classes,
                             .step = batch * classes,
                             .classes = a.states.data<int64_t>() + b * states,
                             .skips = a.skips.data<bool>() + b * states,
                             .steps = a.input_lengths.data<int64_t>()[b],
                             .states = 2 * a.target_lengths.data<int64_t>()[b] + 1,
                             .dx = dx ? dx + b * classes : nullptr};
      if (dx)
        for (int64_t t = 0; t < steps; ++t) std::fill_n(sample.dx + t * sample.step, classes, 0.0f);
      const double without_input = sample.states == 1 ? 0.0 : 2 * kCtcNoPath;
      a.loss.data<float>()[b] =
          static_cast<float>(sample.steps > 0 ? HWY_DYNAMIC_DISPATCH(ctc_sample)(sample) : without_input);
    }
  });
}

}  // namespace cpu

LEVIN_HOST_ONLY(CtcArgs, ctc, cpu::ctc, "on CUDA the steps are composed of elementwise operations");

}  // namespace levin::kernels
#endif
