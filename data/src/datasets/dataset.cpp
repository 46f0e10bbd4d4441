#include <levin/core/parallel.h>
#include <levin/data/dataset.h>
#include <levin/data/sampler.h>

#include "../loader/load_job.h"
#include "check_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace levin::data {

namespace {

constexpr int kByteValues = 256;

/// Returns row `index` of a contiguous tensor as a view.
Tensor row(const Tensor& t, int64_t index) {
  Shape sizes = t.sizes();
  sizes.erase(0);
  return alias(t, sizes, contiguous_strides(sizes), t.storage_offset() + index * sizes.numel());
}

/// Copies rows of a contiguous tensor into a new one.
Tensor gather_rows(const Tensor& t, std::span<const int64_t> indices) {
  Shape sizes = t.sizes();
  sizes[0] = static_cast<int64_t>(indices.size());
  Tensor out = empty(sizes, {.dtype = t.dtype()});
  const int64_t rows = t.size(0), bytes = t.numel() / std::max<int64_t>(rows, 1) * size_of(t.dtype());
  const auto* from = static_cast<const std::byte*>(t.raw_data());
  auto* to = static_cast<std::byte*>(out.raw_data());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    detail::check_index(indices[i], rows);
    std::memcpy(to + static_cast<int64_t>(i) * bytes, from + indices[i] * bytes, static_cast<std::size_t>(bytes));
  }
  return out;
}

}  // namespace

Batch Dataset::get_batch(std::span<const int64_t> indices, const Generator& epoch_rng) const {
  return default_collate(detail::load_samples(*this, indices, epoch_rng));
}

Batch Dataset::all() const {
  std::vector<int64_t> indices(static_cast<std::size_t>(size()));
  std::iota(indices.begin(), indices.end(), 0);
  return get_batch(indices, Generator(0));
}

TensorDataset::TensorDataset(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  if (tensors_.empty()) throw ValueError("[tensor_dataset] no tensors were given; give at least one.");
  for (Tensor& t : tensors_) {
    if (t.dim() == 0 || t.size(0) != tensors_[0].size(0)) {
      throw ShapeError(
          fmt::format("[tensor_dataset] the tensors need the same number of rows: one is {}, the first {}.",
                      to_string(t.sizes()), to_string(tensors_[0].sizes())));
    }
    if (!t.is_contiguous()) t = t.contiguous();
  }
}

Sample TensorDataset::get(int64_t index, Generator&) const {
  detail::check_index(index, size());
  Sample sample;
  for (const Tensor& t : tensors_) sample.tensors.push_back(row(t, index));
  return sample;
}

Batch TensorDataset::get_batch(std::span<const int64_t> indices, const Generator&) const {
  Batch batch;
  for (const Tensor& t : tensors_) batch.tensors.push_back(gather_rows(t, indices));
  return batch;
}

Subset::Subset(DatasetPtr dataset, std::vector<int64_t> indices)
    : dataset_(std::move(dataset)), indices_(std::move(indices)) {
  for (const int64_t i : indices_) detail::check_index(i, dataset_->size());
}

Sample Subset::get(int64_t index, Generator& rng) const {
  detail::check_index(index, size());
  return dataset_->get(indices_[static_cast<std::size_t>(index)], rng);
}

Batch Subset::get_batch(std::span<const int64_t> indices, const Generator& epoch_rng) const {
  std::vector<int64_t> inner;
  inner.reserve(indices.size());
  for (const int64_t i : indices) {
    detail::check_index(i, size());
    inner.push_back(indices_[static_cast<std::size_t>(i)]);
  }
  return dataset_->get_batch(inner, epoch_rng);
}

ConcatDataset::ConcatDataset(std::vector<DatasetPtr> datasets) : datasets_(std::move(datasets)) {
  if (datasets_.empty()) throw ValueError("[concat_dataset] no datasets were given; give at least one.");
  for (const DatasetPtr& d : datasets_) ends_.push_back((ends_.empty() ? 0 : ends_.back()) + d->size());
}

Sample ConcatDataset::get(int64_t index, Generator& rng) const {
  detail::check_index(index, size());
  const auto which = static_cast<std::size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
  return datasets_[which]->get(index - (which == 0 ? 0 : ends_[which - 1]), rng);
}

StackDataset::StackDataset(std::vector<DatasetPtr> datasets) : datasets_(std::move(datasets)) {
  if (datasets_.empty()) throw ValueError("[stack_dataset] no datasets were given; give at least one.");
  for (const DatasetPtr& d : datasets_)
    if (d->size() != datasets_[0]->size())
      throw ValueError(fmt::format("[stack_dataset] the datasets have {} and {} samples; they need the same number.",
                                   datasets_[0]->size(), d->size()));
}

Sample StackDataset::get(int64_t index, Generator& rng) const {
  detail::check_index(index, size());
  Sample whole;
  for (const DatasetPtr& d : datasets_)
    for (Tensor& t : d->get(index, rng).tensors) whole.tensors.push_back(std::move(t));
  return whole;
}

Sample TransformedDataset::get(int64_t index, Generator& rng) const {
  return transform_(dataset_->get(index, rng), rng);
}

ImageDataset::ImageDataset(Tensor images, Tensor labels, ImageOptions options)
    : images_(std::move(images)), labels_(std::move(labels)), augment_(std::move(options.augment)) {
  if (images_.dtype() != kUInt8 || (images_.dim() != 3 && images_.dim() != 4)) {
    throw ShapeError(fmt::format("[image_dataset] images are uint8 (N, H, W) or (N, C, H, W), not {} {}.",
                                 name_of(images_.dtype()), to_string(images_.sizes())));
  }
  if (labels_.dtype() != kInt64 || labels_.dim() != 1 || labels_.size(0) != images_.size(0)) {
    throw ShapeError(fmt::format("[image_dataset] {} images need as many int64 labels, not {} {}.", images_.size(0),
                                 name_of(labels_.dtype()), to_string(labels_.sizes())));
  }
  if (!images_.is_contiguous()) images_ = images_.contiguous();
  if (!labels_.is_contiguous()) labels_ = labels_.contiguous();
  if (images_.dim() == 3) {
    const Shape sizes{images_.size(0), 1, images_.size(1), images_.size(2)};
    images_ = alias(images_, sizes, contiguous_strides(sizes), images_.storage_offset());
  }
  if (options.mean.empty()) options.mean = {0.f};
  if (options.std.empty()) options.std = {1.f};

  // The two transforms that would be applied to a batch, tabulated with one row per channel.
  const int64_t channels = images_.size(1);
  Tensor bytes = empty({channels, 1, kByteValues}, {.dtype = kUInt8});
  for (int64_t i = 0; i < bytes.numel(); ++i)
    bytes.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i % kByteValues);
  Generator unused;
  table_ = Normalize(options.mean, options.std)(ToFloat{}(bytes, unused), unused).to_vector<float>();
}

Tensor ImageDataset::bytes_of(int64_t index, Generator& rng) const {
  detail::check_index(index, size());
  Tensor image = row(images_, index);
  if (!augment_) return image;
  image = augment_(image, rng);
  if (image.dtype() != kUInt8 || image.dim() != 3 || image.size(0) != images_.size(1)) {
    throw ShapeError(fmt::format("[image_dataset] augment returned {} {}; it must return uint8 with {} channels.",
                                 name_of(image.dtype()), to_string(image.sizes()), images_.size(1)));
  }
  return image.is_contiguous() ? image : image.contiguous();
}

void ImageDataset::convert(const std::uint8_t* from, float* to, int64_t pixels) const {
  for (int64_t c = 0; c < images_.size(1); ++c) {
    const float* table = table_.data() + c * kByteValues;
    for (int64_t i = 0; i < pixels; ++i) *to++ = table[*from++];
  }
}

Sample ImageDataset::get(int64_t index, Generator& rng) const {
  const Tensor bytes = bytes_of(index, rng);
  Tensor image = empty(bytes.sizes(), {.dtype = kFloat32});  // (C, H, W)
  convert(bytes.data<std::uint8_t>(), image.data<float>(), bytes.size(1) * bytes.size(2));
  return {image, row(labels_, index)};
}

Batch ImageDataset::get_batch(std::span<const int64_t> indices, const Generator& epoch_rng) const {
  if (augment_) return Dataset::get_batch(indices, epoch_rng);
  Tensor labels = gather_rows(labels_, indices);
  Shape sizes = images_.sizes();
  sizes[0] = static_cast<int64_t>(indices.size());
  Tensor batch = empty(sizes, {.dtype = kFloat32});  // (B, C, H, W)
  const int64_t pixels = sizes[2] * sizes[3], numbers = sizes[1] * pixels;
  const auto* bytes = images_.data<std::uint8_t>();
  auto* out = batch.data<float>();
  constexpr int64_t grain = 32;  // images per chunk, so that a chunk is worth a thread
  parallel_for(0, sizes[0], grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      convert(bytes + indices[static_cast<std::size_t>(i)] * numbers, out + i * numbers, pixels);
    }
  });
  return {std::move(batch), std::move(labels)};
}

std::vector<Subset> random_split(DatasetPtr dataset, std::span<const int64_t> sizes, Generator rng) {
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  if (total != dataset->size() || std::any_of(sizes.begin(), sizes.end(), [](int64_t s) { return s < 0; })) {
    throw ValueError(
        fmt::format("[random_split] the parts {} have {} samples, the dataset has {}. Give sizes of 0 or more "
                    "with that sum.",
                    fmt::join(sizes, " + "), total, dataset->size()));
  }
  const std::vector<int64_t> order = permutation(total, rng);
  std::vector<Subset> parts;
  auto from = order.begin();
  for (const int64_t size : sizes) {
    parts.emplace_back(dataset, std::vector<int64_t>(from, from + size));
    from += size;
  }
  return parts;
}

std::vector<Subset> random_split(DatasetPtr dataset, std::initializer_list<int64_t> sizes, Generator rng) {
  return random_split(std::move(dataset), std::span(sizes.begin(), sizes.size()), rng);
}

TransformedDataset::TransformedDataset(DatasetPtr dataset, SampleTransform transform)
    : dataset_(std::move(dataset)), transform_(std::move(transform)) {}

}  // namespace levin::data
