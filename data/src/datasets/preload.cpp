#include <levin/core/io.h>
#include <levin/data/collate.h>
#include <levin/data/npy.h>
#include <levin/data/preload.h>

#include "../loader/batch_structure.h"
#include "check_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace levin::data {

namespace fs = std::filesystem;

namespace {

bool same_kind(const Sample& a, const Sample& b) {
  return std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(),
                    [](const Tensor& x, const Tensor& y) { return x.sizes() == y.sizes() && x.dtype() == y.dtype(); });
}

/// Allocates tensors (n, *) for samples like this one.
std::vector<Tensor> room_for(const Sample& sample, int64_t n) {
  std::vector<Tensor> rows;
  for (const Tensor& t : sample.tensors) {
    Shape sizes = t.sizes();
    sizes.insert(0, n);
    rows.push_back(empty(sizes, {.dtype = t.dtype()}));
  }
  return rows;
}

Sample row_of(const std::vector<Tensor>& rows, int64_t index) {
  Sample sample;
  for (const Tensor& t : rows) sample.tensors.push_back(t.select(0, index).clone());
  return sample;
}

/// Returns the sample with its dictionaries in the order of `first`; throws ShapeError for another structure.
Sample arranged_as(const Sample& first, const Sample& sample) {
  std::vector<Sample> copies;
  return detail::arranged(std::vector{first, sample}, copies)[1];
}

/// Locks out other processes; closing the file descriptor releases the lock.
class FileLock {
 public:
  explicit FileLock(const fs::path& path) : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    int status = -1;
    do {
      if (fd_ >= 0) status = flock(fd_, LOCK_EX);
    } while (fd_ >= 0 && status != 0 && errno == EINTR);
    if (status == 0) return;
    const std::string why = std::strerror(errno);
    if (fd_ >= 0) close(fd_);
    throw IoError(fmt::format("[preload] {} could not be locked: {}. Is shared memory mounted?", path.string(), why));
  }
  ~FileLock() { close(fd_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

fs::path shared_folder(const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos) {
    throw ValueError(fmt::format("[preload] \"{}\" cannot name shared data; use a word without slashes.", name));
  }
  return fmt::format("/dev/shm/levin-{}-{}", getuid(), name);
}

std::vector<Tensor> map_rows(const fs::path& folder) {
  std::vector<Tensor> rows;
  for (int i = 0; fs::exists(folder / fmt::format("{}.npy", i)); ++i) {
    const fs::path file = folder / fmt::format("{}.npy", i);
    rows.push_back(load_npy(file, {.mmap = true}));
    if (rows.back().dim() > 0 && rows.back().size(0) == rows[0].size(0)) continue;
    throw IoError(fmt::format("[mmap_dataset] {} is {}, but 0.npy has {} rows. Write the folder again.", file.string(),
                              to_string(rows.back().sizes()), rows[0].dim() > 0 ? rows[0].size(0) : 0));
  }
  if (rows.empty()) {
    throw IoError(fmt::format("[mmap_dataset] {} was not found. Write the folder with MmapDataset::write.",
                              (folder / "0.npy").string()));
  }
  return rows;
}

}  // namespace

InMemoryDataset::InMemoryDataset(DatasetPtr dataset, int num_workers) : size_(dataset->size()) {
  if (size_ > 0) read(dataset, num_workers);
}

void InMemoryDataset::read(const DatasetPtr& dataset, int num_workers) {
  constexpr int64_t batch_size = 64;
  const auto collate = [listed = list_collate()](std::span<const Sample> samples) {
    Batch batch = listed(samples);
    batch.entries = samples[0].entries;  // of one sample, to be kept
    return batch;
  };
  DataLoader loader(dataset, {.batch_size = batch_size, .num_workers = num_workers, .collate = collate, .seed = 0});
  std::vector<Tensor> rows;
  Sample first;
  int64_t read = 0;
  for (const Batch& batch : loader) {
    const auto count = static_cast<std::size_t>(batch.size());
    for (std::size_t i = 0; i < count; ++i, ++read) {
      Sample sample({}, batch.entries);
      for (std::size_t at = i; at < batch.tensors.size(); at += count) sample.tensors.push_back(batch.tensors[at]);
      if (read > 0 && !(entries_.empty() && batch.entries.empty())) sample = arranged_as(first, sample);
      if (read == 0) {
        first = sample;
        entries_ = sample.entries;
        rows = room_for(sample, size_);
      }
      if (!samples_.empty() || !same_kind(first, sample)) {
        for (int64_t r = static_cast<int64_t>(samples_.size()); r < read; ++r) {
          samples_.push_back(row_of(rows, r));
          samples_.back().entries = entries_;
        }
        samples_.push_back(std::move(sample));
        continue;
      }
      for (std::size_t place = 0; place < rows.size(); ++place)
        rows[place].select(0, read).copy_(sample.tensors[place].detach());
    }
  }
  if (samples_.empty()) rows_.emplace(std::move(rows));
}

Sample InMemoryDataset::get(int64_t index, Generator& rng) const {
  if (rows_) {
    Sample sample = rows_->get(index, rng);
    sample.entries = entries_;
    return sample;
  }
  detail::check_index(index, size_);
  return samples_[static_cast<std::size_t>(index)];
}

Batch InMemoryDataset::get_batch(std::span<const int64_t> indices, const Generator& epoch_rng) const {
  if (!rows_) return Dataset::get_batch(indices, epoch_rng);
  Batch batch = rows_->get_batch(indices, epoch_rng);
  batch.entries = entries_;
  return batch;
}

MmapDataset::MmapDataset(const std::string& folder) : rows_(map_rows(folder)) {}

void MmapDataset::write(const std::string& folder, const DatasetPtr& dataset, int num_workers) {
  const InMemoryDataset all(dataset, num_workers);
  if (!all.entries().empty()) {
    throw ValueError(
        "[mmap_dataset] the samples are dictionaries or nested lists, and the folder holds a list of tensors. Keep "
        "them in memory, by InMemoryDataset.");
  }
  if (!all.rows()) {
    throw ShapeError(
        "[mmap_dataset] the samples differ in shape or type, so they make no rows. Crop or pad them first, or use "
        "InMemoryDataset.");
  }
  io::write_folder(folder, [&](const fs::path& to) {
    const std::vector<Tensor>& rows = all.rows()->tensors();
    for (std::size_t i = 0; i < rows.size(); ++i) save_npy(to / fmt::format("{}.npy", i), rows[i]);
  });
}

MmapDataset preload_shared(const std::string& name, const DatasetPtr& dataset, int num_workers) {
  const fs::path folder = shared_folder(name);
  const FileLock lock(folder.string() + ".lock");
  if (fs::exists(folder)) {
    MmapDataset there(folder);
    if (there.size() == dataset->size()) return there;
  }
  MmapDataset::write(folder, dataset, num_workers);
  return MmapDataset(folder);
}

void remove_shared(const std::string& name) {
  const fs::path folder = shared_folder(name);
  fs::remove_all(folder);
  fs::remove(folder.string() + ".lock");
}

}  // namespace levin::data
