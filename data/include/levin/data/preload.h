#pragma once
// Datasets kept in memory: of this process, or shared by all processes of the machine.

#include <levin/data/dataset.h>

#include <filesystem>
#include <optional>
#include <string>

namespace levin::data {

/// All samples of a dataset, read once. What the dataset draws from its generator is drawn once, too: put augmentations
/// behind it, with TransformedDataset. Samples of one shape and type lie in one tensor each.
class InMemoryDataset final : public Dataset {
 public:
  /// Reads with `num_workers` threads (0: in the caller). Throws what the dataset throws.
  explicit InMemoryDataset(DatasetPtr dataset, int num_workers = 0);
  template <IsDataset D>
  explicit InMemoryDataset(D&& dataset, int num_workers = 0)
      : InMemoryDataset(share(std::forward<D>(dataset)), num_workers) {}
  int64_t size() const override { return size_; }
  Sample get(int64_t index, Generator& rng) const override;
  Batch get_batch(std::span<const int64_t> indices, const Generator& epoch_rng) const override;
  const std::optional<TensorDataset>& rows() const { return rows_; }  ///< nothing when the samples differ in shape

 private:
  void read(const DatasetPtr& dataset, int num_workers);
  int64_t size_;
  std::optional<TensorDataset> rows_;
  std::vector<Sample> samples_;  // else
};

/// A dataset in files that are mapped into memory: a folder with 0.npy, 1.npy, ..., one for each tensor of a sample,
/// which NumPy reads as well. Processes that map the same files share one copy; in /dev/shm it never touches a disk.
class MmapDataset final : public Dataset {
 public:
  /// Throws IoError for a missing or damaged file, and when the files have different numbers of rows.
  explicit MmapDataset(const std::filesystem::path& folder);
  int64_t size() const override { return rows_.size(); }
  Sample get(int64_t index, Generator& rng) const override { return rows_.get(index, rng); }
  Batch get_batch(std::span<const int64_t> indices, const Generator& epoch_rng) const override {
    return rows_.get_batch(indices, epoch_rng);
  }

  /// Writes a dataset's samples as such a folder, whole or not at all. Throws ShapeError when samples differ in shape,
  /// IoError when the disk is full.
  static void write(const std::filesystem::path& folder, const DatasetPtr& dataset, int num_workers = 0);

 private:
  TensorDataset rows_;
};

/// The dataset in shared memory, /dev/shm/levin-<user>-<name>: the first process reads and writes it, others wait and
/// map what is there, provided that it has as many samples; else it is written anew.
MmapDataset preload_shared(const std::string& name, const DatasetPtr& dataset, int num_workers = 0);
/// Removes it; processes that have mapped it keep it until they end.
void remove_shared(const std::string& name);

}  // namespace levin::data
