#pragma once
// Cross-entropy as its kernels see it: x (B, C, S), a sample is the C logits at one index of B and S. A group (thread,
// warp or block) computes a sample.

#include "kernels/cuda/indexing/guard.cuh"
#include "kernels/cuda/loss/sums.cuh"
#include "kernels/cuda/reduce/dispatch.h"
#include "kernels/cuda/softmax/03_online.cuh"

namespace levin::kernels::cuda {

template <class T>
struct CrossEntropy {
  using C = ComputeType<T>;
  const T* x;
  const std::int64_t* labels;  ///< (B, S) or null
  const T* probabilities;      ///< (B, C, S) or null
  const T* weight;             ///< (C) or null
  double* lse;                 ///< (2, B, S)
  double* norm;
  T* out;
  const T* g;
  T* dx;
  std::int64_t samples, classes, spatial, ignore_index;
  double smoothing, spread;  ///< spread = smoothing / C
  LossReduction reduction;
  IndexGuard guard;  ///< for the labels

  CrossEntropy(const CrossEntropyArgs& a, const Stream& stream)
      : x(elements<const T>(a.x)),
        labels(a.target.dtype == DType::i64 ? elements<const std::int64_t>(a.target) : nullptr),
        probabilities(labels ? nullptr : elements<const T>(a.target)),
        weight(elements<const T>(a.weight)),
        lse(elements<double>(a.lse)),
        norm(elements<double>(a.norm)),
        out(elements<T>(a.out)),
        g(elements<const T>(a.g)),
        dx(elements<T>(a.dx)),
        samples(a.batch * a.spatial),
        classes(a.classes),
        spatial(a.spatial),
        ignore_index(a.ignore_index),
        smoothing(a.smoothing),
        spread(a.smoothing / static_cast<double>(a.classes)),
        reduction(a.reduction),
        guard(label_guard("cross_entropy", a.target.sizes, a.classes, a.ignore_index, stream)) {}

  /// Returns the offset of the sample's class c, which is also the offset of its probability.
  __device__ std::int64_t at(std::int64_t sample, std::int64_t c) const {
    return (sample / spatial * classes + c) * spatial + sample % spatial;
  }
  __device__ bool ignored(std::int64_t sample) const { return labels && labels[sample] == ignore_index; }
  __device__ double weight_of(std::int64_t c) const { return weight ? convert<double>(weight[c]) : 1.0; }
  __device__ C logit(std::int64_t sample, std::int64_t c) const { return convert<C>(x[at(sample, c)]); }
  /// Returns the weight of the sample's label; NaN if the label is out of range.
  __device__ double label_weight(std::int64_t sample) const {
    const std::int64_t label = labels[sample];
    return label >= 0 && label < classes ? weight_of(label) : std::numeric_limits<double>::quiet_NaN();
  }
  /// Returns q[c] without the label's own part.
  __device__ double coefficient(std::int64_t sample, std::int64_t c) const {
    if (labels) return spread * weight_of(c);
    return weight_of(c) * (convert<double>(probabilities[at(sample, c)]) * (1.0 - smoothing) + spread);
  }
  /// True if any of those differs from 0.
  __device__ bool spreads() const { return !labels || smoothing != 0.0; }
};

/// A sum of two doubles: value is the nearest double, rest the rounding error.
struct ExactSum {
  double value, rest;
  __device__ double minus(double x) const { return (value - x) + rest; }
};

/// Computes Knuth's two-sum; the intrinsics keep the compiler from fusing or reordering.
__device__ inline ExactSum exact_sum(double a, double b) {
  const double sum = __dadd_rn(a, b), of_b = __dsub_rn(sum, a), of_a = __dsub_rn(sum, of_b);
  return {sum, __dadd_rn(__dsub_rn(a, of_a), __dsub_rn(b, of_b))};
}

/// Returns the sample's loss and weight to all threads of the group; stores lse.
template <class Group, class T>
__device__ LossSums sample_loss(const CrossEntropy<T>& a, std::int64_t sample) {
  using C = ComputeType<T>;
  OnlineSum<C, double> own;
  for (std::int64_t c = Group::rank(); c < a.classes; c += Group::size()) own.add(a.logit(sample, c));
  const OnlineSum<C, double> all = combine_online<Group>(own);
  const ExactSum lse = exact_sum(static_cast<double>(all.top), ::log(all.sum));
  if (Group::rank() == 0) {
    a.lse[sample] = lse.value;
    a.lse[a.samples + sample] = lse.rest;
  }
  LossSums result{0.0, 1.0};
  if (a.spreads()) {
    double sum = 0.0;
    for (std::int64_t c = Group::rank(); c < a.classes; c += Group::size()) {
      sum += a.coefficient(sample, c) * lse.minus(static_cast<double>(a.logit(sample, c)));
    }
    result.loss = Group::reduce(sum, Plus{}, 0.0);
  }
  if (a.labels) {
    result.weight = a.label_weight(sample);
    const std::int64_t given = a.labels[sample], label = is_index(given, a.classes) ? given : 0;
    if (Group::rank() == 0) admits(a.guard, given, sample);
    result.loss += (1.0 - a.smoothing) * result.weight * lse.minus(static_cast<double>(a.logit(sample, label)));
  }
  return result;
}

template <class Group, class T>
__global__ void cross_entropy_forward(CrossEntropy<T> a, LossSums* partial) {
  LossSums own;
  for (std::int64_t i = Group::number(); i < a.samples; i += Group::count()) {
    LossSums sample;
    if (!a.ignored(i)) {
      sample = sample_loss<Group>(a, i);
    } else if (Group::rank() == 0) {
      a.lse[i] = a.lse[a.samples + i] = 0.0;
    }
    if (Group::rank() != 0) continue;
    if (a.reduction == LossReduction::none) a.out[i] = convert<T>(static_cast<ComputeType<T>>(sample.loss));
    own.loss += sample.loss;
    own.weight += sample.weight;
  }
  leave_sums(own, partial);
}

/// dx = scale (softmax(x) sum(q) - q)
template <class Group, class T>
__global__ void cross_entropy_gradient(CrossEntropy<T> a) {
  using C = ComputeType<T>;
  const double divisor = a.reduction == LossReduction::mean ? *a.norm : 1.0;
  for (std::int64_t i = Group::number(); i < a.samples; i += Group::count()) {
    if (a.ignored(i)) {
      for (std::int64_t c = Group::rank(); c < a.classes; c += Group::size()) a.dx[a.at(i, c)] = convert<T>(C(0));
      continue;
    }
    const double scale = convert<double>(a.reduction == LossReduction::none ? a.g[i] : *a.g) / divisor;
    const double hit = a.labels ? (1.0 - a.smoothing) * a.label_weight(i) : 0.0;
    double total = hit;
    if (a.spreads()) {
      double sum = 0.0;
      for (std::int64_t c = Group::rank(); c < a.classes; c += Group::size()) sum += a.coefficient(i, c);
      total += Group::reduce(sum, Plus{}, 0.0);
    }
    const ExactSum lse{a.lse[i], a.lse[a.samples + i]};
    const C head = static_cast<C>(lse.value);  // two steps keep lse's digits
    const C rest = static_cast<C>((lse.value - static_cast<double>(head)) + lse.rest);
    const C factor = static_cast<C>(scale * total);
    for (std::int64_t c = Group::rank(); c < a.classes; c += Group::size()) {
      const std::int64_t at = a.at(i, c);
      double q = a.spreads() ? a.coefficient(i, c) : 0.0;
      if (a.labels && a.labels[i] == c) q += hit;
      a.dx[at] = convert<T>(factor * exp_of(convert<C>(a.x[at]) - head - rest) - static_cast<C>(scale * q));
    }
  }
}

}  // namespace levin::kernels::cuda
