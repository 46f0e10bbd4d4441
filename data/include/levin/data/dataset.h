#pragma once
// Datasets whose samples are found by index.

#include <levin/core/generator.h>
#include <levin/data/batch.h>
#include <levin/data/order_seed.h>
#include <levin/data/transforms.h>

#include <concepts>
#include <memory>
#include <span>
#include <vector>

namespace levin::data {

/// A map from [0, size()) to samples. Several threads of a DataLoader read one dataset at the same time.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Number of samples.
  virtual int64_t size() const = 0;
  /// Returns sample `index`; throws IndexError outside of [0, size()). `rng` belongs to this sample in this epoch, so
  /// that augmentations depend neither on the number of workers nor on the order of the batches.
  virtual Sample get(int64_t index, Generator& rng) const = 0;
  /// Returns these samples as one batch. `epoch_rng.fork(index)` is a sample's generator. Override it if a gather is
  /// faster than stacking.
  virtual Batch get_batch(std::span<const int64_t> indices, const Generator& epoch_rng) const;
  /// Returns the whole dataset as one batch.
  Batch all() const;
};

/// A dataset that several loaders and datasets may hold.
using DatasetPtr = std::shared_ptr<const Dataset>;

template <class D>
concept IsDataset = std::derived_from<std::remove_cvref_t<D>, Dataset>;

/// Moves or copies a dataset into a shared pointer; a copy is cheap, since tensors are handles.
template <IsDataset D>
DatasetPtr share(D&& dataset) {
  return std::make_shared<const std::remove_cvref_t<D>>(std::forward<D>(dataset));
}

/// Tensors with the same number of rows; sample i is row i of each.
class TensorDataset final : public Dataset {
 public:
  /// Tensors of one dimension or more. Throws ValueError without tensors, ShapeError when the rows differ.
  explicit TensorDataset(std::vector<Tensor> tensors);
  int64_t size() const override { return tensors_[0].size(0); }
  Sample get(int64_t index, Generator& rng) const override;
  Batch get_batch(std::span<const int64_t> indices, const Generator& epoch_rng) const override;
  /// Returns the tensors, contiguous.
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

/// Some samples of another dataset, in the order given.
class Subset final : public Dataset {
 public:
  /// Throws IndexError for an index outside of the dataset.
  Subset(DatasetPtr dataset, std::vector<int64_t> indices);
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  Sample get(int64_t index, Generator& rng) const override;
  Batch get_batch(std::span<const int64_t> indices, const Generator& epoch_rng) const override;
  /// Returns the indices of its samples in the other dataset.
  const std::vector<int64_t>& indices() const { return indices_; }

 private:
  DatasetPtr dataset_;
  std::vector<int64_t> indices_;
};

/// The samples of several datasets, one dataset after the other.
class ConcatDataset final : public Dataset {
 public:
  /// Throws ValueError without datasets.
  explicit ConcatDataset(std::vector<DatasetPtr> datasets);
  template <IsDataset... D>
  requires(sizeof...(D) > 1) explicit ConcatDataset(D&&... datasets)
      : ConcatDataset(std::vector<DatasetPtr>{share(std::forward<D>(datasets))...}) {}
  int64_t size() const override { return ends_.back(); }
  Sample get(int64_t index, Generator& rng) const override;

 private:
  std::vector<DatasetPtr> datasets_;
  std::vector<int64_t> ends_;  // where each dataset ends
};

/// Datasets of the same size side by side: a sample is a list of the tensors of all, in order.
class StackDataset final : public Dataset {
 public:
  /// Throws ValueError without datasets, and when their sizes differ.
  explicit StackDataset(std::vector<DatasetPtr> datasets);
  template <IsDataset... D>
  requires(sizeof...(D) > 1) explicit StackDataset(D&&... datasets)
      : StackDataset(std::vector<DatasetPtr>{share(std::forward<D>(datasets))...}) {}
  int64_t size() const override { return datasets_[0]->size(); }
  Sample get(int64_t index, Generator& rng) const override;

 private:
  std::vector<DatasetPtr> datasets_;
};

/// Another dataset with `transform` applied to each sample. A transform of images is applied to the first tensor
/// ("image" in a dictionary); one that moves pixels moves boxes and masks as well, see GeometricTransform.
class TransformedDataset final : public Dataset {
 public:
  /// The transform runs in the thread that loads the sample, with the sample's generator.
  TransformedDataset(DatasetPtr dataset, SampleTransform transform);
  template <IsDataset D>
  TransformedDataset(D&& dataset, SampleTransform transform)
      : TransformedDataset(share(std::forward<D>(dataset)), std::move(transform)) {}
  int64_t size() const override { return dataset_->size(); }
  Sample get(int64_t index, Generator& rng) const override;

 private:
  DatasetPtr dataset_;
  SampleTransform transform_;
};

/// How ImageDataset converts bytes to numbers.
struct ImageOptions {
  std::vector<float> mean{};  ///< one per channel, or one for all; empty means 0
  std::vector<float> std{};   ///< as `mean`; empty means 1
  Transform augment{};        ///< applied to the (C, H, W) bytes before the conversion
};

/// Images stored as bytes and returned as f32 (B, C, H, W) with (byte / 255 - mean) / std, with labels int64 (B).
class ImageDataset : public Dataset {
 public:
  /// `images` is uint8 (N, H, W) or (N, C, H, W), `labels` int64 (N). Throws ShapeError for others, and ValueError for
  /// means and stds that do not fit.
  ImageDataset(Tensor images, Tensor labels, ImageOptions options = {});
  int64_t size() const override { return images_.size(0); }
  Sample get(int64_t index, Generator& rng) const override;
  Batch get_batch(std::span<const int64_t> indices, const Generator& epoch_rng) const override;
  const Tensor& images() const { return images_; }  ///< uint8 (N, C, H, W)
  const Tensor& labels() const { return labels_; }  ///< int64 (N)

 private:
  Tensor bytes_of(int64_t index, Generator& rng) const;
  void convert(const std::uint8_t* from, float* to, int64_t pixels) const;

  Tensor images_, labels_;
  std::vector<float> table_;  // (C, 256): the number of each byte value
  Transform augment_;
};

/// Splits a dataset into disjoint random parts of these sizes. Without `rng` a seed is drawn from the default generator
/// (see draw_seed). Throws ValueError unless the sizes add up to the dataset's.
std::vector<Subset> random_split(DatasetPtr dataset, std::span<const int64_t> sizes,
                                 Generator rng = Generator(draw_seed()));
template <IsDataset D>
std::vector<Subset> random_split(D&& dataset, std::initializer_list<int64_t> sizes,
                                 Generator rng = Generator(draw_seed())) {
  return random_split(share(std::forward<D>(dataset)), std::span(sizes.begin(), sizes.size()), rng);
}
std::vector<Subset> random_split(DatasetPtr dataset, std::initializer_list<int64_t> sizes,
                                 Generator rng = Generator(draw_seed()));

}  // namespace levin::data
