#include "load_job.h"

#include "current_index.h"

#include <levin/kernels/cuda.h>

#include <fmt/format.h>

#include <utility>

namespace levin::data::detail {

namespace {

/// Tries the types from the most derived to the most general.
template <class... E>
struct Rethrow {
  static void as(const std::string&) {}
};
template <class First, class... Rest>
struct Rethrow<First, Rest...> {
  static void as(const std::string& where) {
    try {
      throw;
    } catch (const First& e) {
      throw First(where + e.what());
    } catch (...) {
      Rethrow<Rest...>::as(where);
    }
  }
};

}  // namespace

void rethrow_from(const std::string& where) {
  using Known = Rethrow<ShapeError, DTypeError, DeviceError, IndexError, ValueError, GradError, IoError, OutOfMemory,
                        StateError, UsageError, Error>;
  Known::as(where);
  try {
    throw;
  } catch (const std::exception& e) {
    std::throw_with_nested(Error(where + e.what()));
  } catch (...) {
    std::throw_with_nested(Error(where + "an exception that is not a std::exception"));
  }
}

std::string place_of_failure(int64_t turn) {
  const int64_t index = std::exchange(current_index, -1), shard = std::exchange(current_shard, -1);
  if (shard >= 0) return fmt::format("sample {} of shard {}", index, shard);
  return index >= 0 ? fmt::format("index {}", index) : fmt::format("batch {}", turn);
}

std::optional<Batch> LoadJob::run(int64_t turn) const {
  current_index = current_shard = -1;
  std::optional<Batch> batch = load(turn);
  if (pin_memory && batch) {
    for (Tensor& t : batch->tensors) {
      if (t.defined()) t = cuda::pin_memory(t);
    }
  }
  return batch;
}

std::span<const int64_t> MapJob::indices_of(int64_t turn) const {
  const int64_t begin = starts[static_cast<std::size_t>(turn)], end = starts[static_cast<std::size_t>(turn) + 1];
  return std::span(order).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

std::string MapJob::describe(int64_t turn) const {
  return fmt::format("batch {} (from index {})", turn, indices_of(turn)[0]);
}

std::optional<Batch> MapJob::load(int64_t turn) const {
  const auto indices = indices_of(turn);
  return collate ? collate(load_samples(*dataset, indices, epoch_rng)) : dataset->get_batch(indices, epoch_rng);
}

std::vector<Sample> load_samples(const Dataset& dataset, std::span<const int64_t> indices, const Generator& epoch_rng) {
  std::vector<Sample> samples;
  samples.reserve(indices.size());
  for (const int64_t index : indices) {
    current_index = index;
    Generator rng = epoch_rng.fork(static_cast<std::uint64_t>(index));
    samples.push_back(dataset.get(index, rng));
  }
  current_index = -1;
  return samples;
}

}  // namespace levin::data::detail
