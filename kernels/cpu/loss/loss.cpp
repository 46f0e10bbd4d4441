// Cross-entropy and binary cross-entropy, forward and backward.
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/loss/loss.h"
#include "kernels/cpu/scratch.h"
#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/loss.h>

#include <fmt/format.h>

#include <algorithm>

namespace levin::kernels {

namespace cpu {

namespace {

constexpr int64_t kLossGrain = 16384;  // minimum elements of a task
constexpr int64_t kSampleCost = 64;    // the fixed work of a sample, in elements

void check(const CheckLabelsArgs& a) {
  const int64_t* const labels = a.labels.data<int64_t>();
  const int64_t n = a.labels.numel();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t label = labels[i];
    if ((label < 0 || label >= a.classes) && label != a.ignore_index)
      label_out_of_range(a.op, label, i, a.classes, a.ignore_index);
  }
}

/// One sample's view of the arguments.
template <class T>
struct CrossEntropy {
  explicit CrossEntropy(const CrossEntropyArgs& args)
      : a(args), rows(loss_rows(T())), weight(args.weight.pointer ? args.weight.data<T>() : nullptr),
        labels(args.target.dtype == DType::i64 ? args.target.data<int64_t>() : nullptr), classes(args.classes),
        spread(args.smoothing / static_cast<double>(args.classes)) {
    for (int64_t c = 0; c < classes; ++c) weight_sum += weight_of(c);
  }

  double weight_of(int64_t c) const { return weight ? static_cast<double>(weight[c]) : 1.0; }
  bool ignored(int64_t i) const { return labels && labels[i] == a.ignore_index; }
  int64_t samples() const { return a.batch * a.spatial; }
  int64_t grain() const { return std::max<int64_t>(1, kLossGrain / (classes + kSampleCost)); }

  /// Returns the sample's values over the classes: its row, or a copy in `buffer` if they are not contiguous.
  const T* values(const TensorView& v, int64_t i, T* buffer) const {
    if (a.spatial == 1) return v.data<T>() + i * classes;
    const T* from = v.data<T>() + i / a.spatial * classes * a.spatial + i % a.spatial;
    for (int64_t c = 0; c < classes; ++c) buffer[c] = from[c * a.spatial];
    return buffer;
  }

  /// Returns the sum over c of q[c] (lse - x[c]).
  double loss(int64_t i, const T* x, ExactSum lse, T* buffer) const {
    const auto below = [&](int64_t c) { return (lse.value - static_cast<double>(x[c])) + lse.rest; };
    double result = 0.0;
    if (labels) {
      const int64_t t = labels[i];
      result = (1.0 - a.smoothing) * weight_of(t) * below(t);
      if (a.smoothing != 0.0)
        for (int64_t c = 0; c < classes; ++c) result += spread * weight_of(c) * below(c);
    } else {
      const T* const t = values(a.target, i, buffer);
      for (int64_t c = 0; c < classes; ++c) result += coefficient(t[c], c) * below(c);
    }
    return result;
  }
  double coefficient(T probability, int64_t c) const {
    return weight_of(c) * (static_cast<double>(probability) * (1.0 - a.smoothing) + spread);
  }

  void forward() const {
    const int64_t n = samples(), each = grain(), chunks = (n + each - 1) / each;
    double* const partial = scratch<double>(Slot::loss, 2 * std::max<int64_t>(1, chunks));  // (chunks, loss and weight)
    double* const lse = a.lse.data<double>();
    T* const out = a.reduction == LossReduction::none ? a.out.data<T>() : nullptr;
    if (labels) check({a.target, classes, a.ignore_index, "cross_entropy"});
    parallel_for(0, n, each, [&](int64_t b, int64_t e) {
      T* const buffer = scratch<T>(Slot::norm, 2 * classes);
      double loss_sum = 0.0, weights = 0.0;
      if (a.spatial == 1) rows.log_sum_exp(a.x.data<T>() + b * classes, e - b, classes, lse + b, lse + n + b);
      for (int64_t i = b; i < e; ++i) {
        double value = 0.0;
        if (!ignored(i)) {
          const T* const x = values(a.x, i, buffer);
          if (a.spatial > 1) rows.log_sum_exp(x, 1, classes, lse + i, lse + n + i);
          value = loss(i, x, {lse[i], lse[n + i]}, buffer + classes);
          weights += labels ? weight_of(labels[i]) : 1.0;
        } else {
          lse[i] = lse[n + i] = 0.0;
        }
        loss_sum += value;
        if (out) out[i] = static_cast<T>(value);
      }
      partial[b / each * 2] = loss_sum;
      partial[b / each * 2 + 1] = weights;
    });
    double loss_sum = 0.0, weights = 0.0;
    for (int64_t k = 0; k < chunks; ++k) loss_sum += partial[2 * k], weights += partial[2 * k + 1];
    *a.norm.data<double>() = weights;
    if (!out) *a.out.data<T>() = static_cast<T>(a.reduction == LossReduction::mean ? loss_sum / weights : loss_sum);
  }

  void backward() const {
    const T* const g = a.g.data<T>();
    const bool each_own = a.reduction == LossReduction::none;
    const double divisor = a.reduction == LossReduction::mean ? *a.norm.data<double>() : 1.0;
    parallel_for(0, samples(), grain(), [&](int64_t b, int64_t e) {
      T* const buffer = scratch<T>(Slot::norm, 3 * classes);
      for (int64_t i = b; i < e; ++i) {
        T* const dx = a.spatial == 1 ? a.dx.data<T>() + i * classes : buffer + 2 * classes;
        if (ignored(i)) {
          std::fill(dx, dx + classes, T(0));
        } else {
          gradient(i, values(a.x, i, buffer), static_cast<double>(each_own ? g[i] : *g) / divisor, buffer + classes,
                   dx);
        }
        if (a.spatial == 1) continue;
        T* const to = a.dx.data<T>() + i / a.spatial * classes * a.spatial + i % a.spatial;
        for (int64_t c = 0; c < classes; ++c) to[c * a.spatial] = dx[c];
      }
    });
  }

  /// Computes dx = scale (softmax(x) sum(q) - q).
  void gradient(int64_t i, const T* x, double scale, T* buffer, T* dx) const {
    const double* const sums = a.lse.data<double>();  // (2, samples)
    const ExactSum lse{sums[i], sums[samples() + i]};
    if (labels) {
      const double hit = (1.0 - a.smoothing) * weight_of(labels[i]);
      rows.scaled_softmax(x, lse, static_cast<T>(scale * (hit + spread * weight_sum)), dx, classes);
      dx[labels[i]] -= static_cast<T>(scale * hit);
      if (a.smoothing != 0.0)
        for (int64_t c = 0; c < classes; ++c) dx[c] -= static_cast<T>(scale * spread * weight_of(c));
    } else {
      const T* const t = values(a.target, i, buffer);
      double sum = 0.0;
      for (int64_t c = 0; c < classes; ++c) sum += coefficient(t[c], c);
      rows.scaled_softmax(x, lse, static_cast<T>(scale * sum), dx, classes);
      for (int64_t c = 0; c < classes; ++c) dx[c] -= static_cast<T>(scale * coefficient(t[c], c));
    }
  }

  const CrossEntropyArgs& a;
  const LossRows<T>& rows;
  const T* weight;
  const int64_t* labels;
  int64_t classes;
  double spread;  ///< smoothing / C
  double weight_sum = 0.0;
};

void check_labels(const CheckLabelsArgs& a, Stream&) { check(a); }

void cross_entropy(const CrossEntropyArgs& a, Stream&) {
  dispatch_wide(a.x.dtype, "cross_entropy", [&]<class T>() { CrossEntropy<T>(a).forward(); });
}
void cross_entropy_backward(const CrossEntropyArgs& a, Stream&) {
  dispatch_wide(a.x.dtype, "cross_entropy_backward", [&]<class T>() { CrossEntropy<T>(a).backward(); });
}

/// Calls sum(begin, end) for chunks of n elements and returns the sum of all, in their order.
template <class F>
double sum_of_chunks(int64_t n, F&& sum) {
  const int64_t chunks = (n + kLossGrain - 1) / kLossGrain;
  double* const partial = scratch<double>(Slot::loss, std::max<int64_t>(1, chunks));
  parallel_for(0, n, kLossGrain, [&](int64_t b, int64_t e) { partial[b / kLossGrain] = sum(b, e); });
  double all = 0.0;
  for (int64_t k = 0; k < chunks; ++k) all += partial[k];
  return all;
}

void huber_sum(const HuberSumArgs& a, Stream&) {
  dispatch_wide(a.x.dtype, "huber_sum", [&]<class T>() {
    const T *const x = a.x.data<T>(), *const target = a.target.data<T>();
    const double sum = sum_of_chunks(a.x.numel(), [&](int64_t b, int64_t e) {
      return loss_rows(T()).huber(x + b, target + b, static_cast<T>(a.limit), e - b);
    });
    *a.out.data<T>() = static_cast<T>(a.scale * sum);
  });
}

void bce_with_logits(const BceArgs& a, Stream&) {
  dispatch_wide(a.x.dtype, "bce_with_logits", [&]<class T>() {
    const LossRows<T>& rows = loss_rows(T());
    const T *const x = a.x.data<T>(), *const target = a.target.data<T>();
    const int64_t n = a.x.numel(), step = a.target.is_number() ? 0 : 1;
    const bool none = a.reduction == LossReduction::none;
    T* const out = none ? a.out.data<T>() : nullptr;
    const double sum = sum_of_chunks(n, [&](int64_t b, int64_t e) {
      return rows.bce(x + b, target + b * step, step, out ? out + b : nullptr, e - b);
    });
    if (none) return;
    *a.out.data<T>() = static_cast<T>(a.reduction == LossReduction::mean ? sum / static_cast<double>(n) : sum);
  });
}

void bce_with_logits_backward(const BceArgs& a, Stream&) {
  dispatch_wide(a.x.dtype, "bce_with_logits_backward", [&]<class T>() {
    const LossRows<T>& rows = loss_rows(T());
    const T *const x = a.x.data<T>(), *const target = a.target.data<T>(), *const g = a.g.data<T>();
    T* const dx = a.dx.data<T>();
    const int64_t n = a.x.numel(), step = a.target.is_number() ? 0 : 1;
    const int64_t g_step = a.reduction == LossReduction::none ? 1 : 0;
    const T scale = a.reduction == LossReduction::mean ? static_cast<T>(1.0 / static_cast<double>(n)) : T(1);
    parallel_for(0, n, kLossGrain, [&](int64_t b, int64_t e) {
      rows.bce_backward(x + b, target + b * step, step, g + b * g_step, g_step, scale, dx + b, e - b);
    });
  });
}

}  // namespace

}  // namespace cpu

LEVIN_KERNEL(CheckLabelsArgs, check_labels, cpu::check_labels);
LEVIN_KERNEL_OF(CrossEntropyArgs, cross_entropy, cpu::cross_entropy, kNot16BitFloats);
LEVIN_KERNEL_OF(CrossEntropyArgs, cross_entropy_backward, cpu::cross_entropy_backward, kNot16BitFloats);
LEVIN_KERNEL_OF(BceArgs, bce_with_logits, cpu::bce_with_logits, kNot16BitFloats);
LEVIN_KERNEL_OF(BceArgs, bce_with_logits_backward, cpu::bce_with_logits_backward, kNot16BitFloats);
LEVIN_HOST_ONLY(HuberSumArgs, huber_sum, cpu::huber_sum, "on CUDA these losses are composed of a row and a sum");

}  // namespace levin::kernels
