#pragma once
// Datasets in memory, of one process or shared by all processes of the machine.

#include <levin/data/dataset.h>

#include <optional>
#include <string>

namespace levin::data {

/// All samples of a dataset, read once. Random numbers of the dataset are drawn once, too, so apply augmentations after
/// it, with TransformedDataset. Samples of equal shapes and types are stored as rows of one tensor each. All samples
/// must have the same structure (ShapeError).
class InMemoryDataset final : public Dataset {
 public:
  /// Reads with `num_workers` threads (0: in the caller). Exceptions of the dataset pass through.
  explicit InMemoryDataset(DatasetPtr dataset, int num_workers = 0);
  template <IsDataset D>
  explicit InMemoryDataset(D&& dataset, int num_workers = 0)
      : InMemoryDataset(share(std::forward<D>(dataset)), num_workers) {}
  int64_t size() const override { return size_; }
  Sample get(int64_t index, Generator& rng) const override;
  Batch get_batch(std::span<const int64_t> indices, const Generator& epoch_rng) const override;
  const std::optional<TensorDataset>& rows() const { return rows_; }  ///< empty if the samples differ in shape
  const std::vector<BatchEntry>& entries() const { return entries_; }  ///< structure of a sample

 private:
  void read(const DatasetPtr& dataset, int num_workers);
  int64_t size_;
  std::vector<BatchEntry> entries_;
  std::optional<TensorDataset> rows_;
  std::vector<Sample> samples_;  // if they differ in shape
};

/// A dataset in memory-mapped files: a folder with 0.npy, 1.npy, ..., one for each tensor of a sample, which NumPy can
/// read. Processes that map the same files share one copy, which in /dev/shm never touches a disk.
class MmapDataset final : public Dataset {
 public:
  /// Throws IoError for a missing or damaged file, and if the files have different numbers of rows.
  explicit MmapDataset(const std::string& folder);
  int64_t size() const override { return rows_.size(); }
  Sample get(int64_t index, Generator& rng) const override { return rows_.get(index, rng); }
  Batch get_batch(std::span<const int64_t> indices, const Generator& epoch_rng) const override {
    return rows_.get_batch(indices, epoch_rng);
  }

  /// Writes a dataset as such a folder, atomically. Throws ShapeError if samples differ in shape, ValueError if they
  /// are dictionaries or nested lists, and IoError if the disk is full.
  static void write(const std::string& folder, const DatasetPtr& dataset, int num_workers = 0);

 private:
  TensorDataset rows_;
};

/// Keeps the dataset in shared memory, /dev/shm/levin-<user>-<name>: the first process reads and writes it, the others
/// wait and map it. A folder with another number of samples is written again.
MmapDataset preload_shared(const std::string& name, const DatasetPtr& dataset, int num_workers = 0);
/// Removes the shared dataset; processes that have mapped it keep it until they end.
void remove_shared(const std::string& name);

}  // namespace levin::data
