#pragma once
// Cross-entropy as its kernels see it: x (B, C, S), a sample is the C logits at one place of B and S. A group (thread,
// warp or block) works on a sample.

#include "kernels/cuda/loss/sums.cuh"
#include "kernels/cuda/softmax/03_online.cuh"

namespace levin::kernels::cuda {

template <class T>
struct CrossEntropy {
  const T* x;
  const std::int64_t* labels;  ///< (B, S), or null
  const T* probabilities;      ///< (B, C, S), or null
  const T* weight;             ///< (C), or null
  double* lse;                 ///< (B, S)
  double* norm;
  T* out;
  const T* g;
  T* dx;
  std::int64_t samples, classes, spatial, ignore_index;
  double smoothing, spread;  ///< spread = smoothing / C
  LossReduction reduction;

  explicit CrossEntropy(const CrossEntropyArgs& a)
      : x(a.x.data<T>()),
        labels(a.target.dtype == DType::i64 ? a.target.data<std::int64_t>() : nullptr),
        probabilities(labels ? nullptr : a.target.data<T>()),
        weight(a.weight.pointer ? a.weight.data<T>() : nullptr),
        lse(a.lse.data<double>()),
        norm(a.norm.data<double>()),
        out(a.out.data<T>()),
        g(a.g.data<T>()),
        dx(a.dx.data<T>()),
        samples(a.batch * a.spatial),
        classes(a.classes),
        spatial(a.spatial),
        ignore_index(a.ignore_index),
        smoothing(a.smoothing),
        spread(a.smoothing / static_cast<double>(a.classes)),
        reduction(a.reduction) {}

  /// Place of the sample's class c, which is also the place of its probability.
  __device__ std::int64_t at(std::int64_t sample, std::int64_t c) const {
    return (sample / spatial * classes + c) * spatial + sample % spatial;
  }
  __device__ bool ignored(std::int64_t sample) const { return labels && labels[sample] == ignore_index; }
  __device__ double weight_of(std::int64_t c) const { return weight ? static_cast<double>(weight[c]) : 1.0; }
  /// Weight of the sample's label; NaN when that is out of range.
  __device__ double label_weight(std::int64_t sample) const {
    const std::int64_t label = labels[sample];
    return label >= 0 && label < classes ? weight_of(label) : std::numeric_limits<double>::quiet_NaN();
  }
  /// q[c] without the label's own part.
  __device__ double coefficient(std::int64_t sample, std::int64_t c) const {
    if (labels) return spread * weight_of(c);
    return weight_of(c) * (static_cast<double>(probabilities[at(sample, c)]) * (1.0 - smoothing) + spread);
  }
  /// Whether any of those differs from 0.
  __device__ bool spreads() const { return !labels || smoothing != 0.0; }
};

/// The sample's loss and weight, the same for all threads of the group; stores lse.
template <class Group, class T>
__device__ LossSums sample_loss(const CrossEntropy<T>& a, std::int64_t sample) {
  OnlineSum<T, double> own;
  for (std::int64_t c = Group::rank(); c < a.classes; c += Group::size()) own.add(a.x[a.at(sample, c)]);
  const OnlineSum<T, double> all = combine_online<Group>(own);
  const double lse = static_cast<double>(all.top) + ::log(all.sum);
  if (Group::rank() == 0) a.lse[sample] = lse;
  LossSums result{0.0, 1.0};
  if (a.spreads()) {
    double sum = 0.0;
    for (std::int64_t c = Group::rank(); c < a.classes; c += Group::size()) {
      sum += a.coefficient(sample, c) * (lse - static_cast<double>(a.x[a.at(sample, c)]));
    }
    result.loss = Group::reduce(sum, Plus{}, 0.0);
  }
  if (a.labels) {
    result.weight = a.label_weight(sample);
    const std::int64_t label = result.weight == result.weight ? a.labels[sample] : 0;
    result.loss += (1.0 - a.smoothing) * result.weight * (lse - static_cast<double>(a.x[a.at(sample, label)]));
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
      a.lse[i] = 0.0;
    }
    if (Group::rank() != 0) continue;
    if (a.reduction == LossReduction::none) a.out[i] = static_cast<T>(sample.loss);
    own.loss += sample.loss;
    own.weight += sample.weight;
  }
  leave_sums(own, partial);
}

/// dx = scale (softmax(x) sum(q) - q)
template <class Group, class T>
__global__ void cross_entropy_gradient(CrossEntropy<T> a) {
  const double divisor = a.reduction == LossReduction::mean ? *a.norm : 1.0;
  for (std::int64_t i = Group::number(); i < a.samples; i += Group::count()) {
    if (a.ignored(i)) {
      for (std::int64_t c = Group::rank(); c < a.classes; c += Group::size()) a.dx[a.at(i, c)] = T(0);
      continue;
    }
    const double scale = static_cast<double>(a.reduction == LossReduction::none ? a.g[i] : *a.g) / divisor;
    const double hit = a.labels ? (1.0 - a.smoothing) * a.label_weight(i) : 0.0;
    double total = hit;
    if (a.spreads()) {
      double sum = 0.0;
      for (std::int64_t c = Group::rank(); c < a.classes; c += Group::size()) sum += a.coefficient(i, c);
      total += Group::reduce(sum, Plus{}, 0.0);
    }
    const double lse = a.lse[i];
    const T head = static_cast<T>(lse), rest = static_cast<T>(lse - static_cast<double>(head));  // two keep its digits
    const T factor = static_cast<T>(scale * total);
    for (std::int64_t c = Group::rank(); c < a.classes; c += Group::size()) {
      const std::int64_t at = a.at(i, c);
      double q = a.spreads() ? a.coefficient(i, c) : 0.0;
      if (a.labels && a.labels[i] == c) q += hit;
      a.dx[at] = factor * exp_of(a.x[at] - head - rest) - static_cast<T>(scale * q);
    }
  }
}

}  // namespace levin::kernels::cuda
