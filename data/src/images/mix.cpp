#include <levin/autograd/ops.h>
#include <levin/data/mix.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace levin::data {

namespace {

void check_options(const MixOptions& o, const char* op) {
  if (!(o.alpha > 0)) throw ValueError(fmt::format("[{}] alpha is {}; give a number above 0.", op, o.alpha));
  if (o.num_classes < 0) throw ValueError(fmt::format("[{}] num_classes is {}; give 1 or more.", op, o.num_classes));
}

void check_batch(const Batch& batch, int64_t axes, const char* op) {
  const bool fits = batch.tensors.size() >= 2 && batch.tensors[0].is_floating() && batch.tensors[0].dim() >= axes &&
                    batch.tensors[1].dim() >= 1 && batch.tensors[1].size(0) == batch.tensors[0].size(0);
  if (fits) return;
  std::string given;
  for (const Tensor& t : batch.tensors) given += fmt::format(" {} {}", name_of(t.dtype()), to_string(t.sizes()));
  throw ShapeError(fmt::format("[{}] a batch is floating inputs with {} axes or more and as many labels, not{}.", op,
                               axes, given.empty() ? " empty" : given));
}

/// The share of a sample in itself: Beta(alpha, alpha).
double draw_part(double alpha, Generator& rng) {
  const Tensor gammas = standard_gamma(full({2}, alpha, {.dtype = kFloat64}), &rng);
  const auto g = gammas.to_vector<double>();
  return g[0] + g[1] > 0 ? g[0] / (g[0] + g[1]) : 0.5;
}

Tensor mixed(const Tensor& x, double part) { return x * part + roll(x, {1}, {0}) * (1 - part); }

Tensor mixed_labels(const Tensor& labels, double part, const MixOptions& o, const char* op) {
  if (labels.is_floating()) return mixed(labels, part);
  if (o.num_classes == 0 || labels.dim() != 1)
    throw ValueError(fmt::format("[{}] labels are {} {}; give num_classes for classes (B), or probabilities.", op,
                                 name_of(labels.dtype()), to_string(labels.sizes())));
  return mixed(one_hot(labels, o.num_classes).to(kFloat32), part);
}

}  // namespace

MixUp::MixUp(const MixOptions& options) : options_(options) { check_options(options, "mixup"); }

Batch MixUp::operator()(const Batch& batch, Generator& rng) const {
  check_batch(batch, 1, "mixup");
  const double part = draw_part(options_.alpha, rng);
  Batch out = batch;
  out.tensors[0] = mixed(batch.tensors[0], part);
  out.tensors[1] = mixed_labels(batch.tensors[1], part, options_, "mixup");
  return out;
}

CutMix::CutMix(const MixOptions& options) : options_(options) { check_options(options, "cutmix"); }

Batch CutMix::operator()(const Batch& batch, Generator& rng) const {
  check_batch(batch, 4, "cutmix");
  const Tensor& images = batch.tensors[0];
  const int64_t height = images.size(-2), width = images.size(-1);
  if (height < 1 || width < 1)
    throw ShapeError(fmt::format("[cutmix] images of {} have no pixels.", to_string(images.sizes())));
  const double side = 0.5 * std::sqrt(1 - draw_part(options_.alpha, rng));
  // A rectangle around a random centre, cut at the edges of the image.
  const auto interval = [&](int64_t size) {
    const auto centre = static_cast<int64_t>(rng.below(static_cast<std::uint64_t>(size)));
    const auto half = static_cast<int64_t>(side * static_cast<double>(size));
    return std::pair(std::max<int64_t>(0, centre - half), std::min(size, centre + half));
  };
  const auto [left, right] = interval(width);
  const auto [top, bottom] = interval(height);
  Batch out = batch;
  out.tensors[0] = images.clone();
  const auto rectangle = [&, left = left, right = right, top = top, bottom = bottom](const Tensor& t) {
    return t.narrow(-2, top, bottom - top).narrow(-1, left, right - left);
  };
  rectangle(out.tensors[0]).copy_(rectangle(roll(images, {1}, {0})));
  const double replaced = static_cast<double>((bottom - top) * (right - left)) / static_cast<double>(height * width);
  out.tensors[1] = mixed_labels(batch.tensors[1], 1 - replaced, options_, "cutmix");
  return out;
}

}  // namespace levin::data
