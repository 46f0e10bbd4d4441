#include "load_job.h"

#include "current_index.h"

#include <fmt/format.h>

#include <algorithm>

namespace levin::data::detail {

namespace {

/// Tries the types from the most special to the most general.
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
    std::throw_with_nested(Error(where + "an exception that is no std::exception"));
  }
}

std::string place_of_failure(int64_t batch) {
  const int64_t index = std::exchange(current_index, -1);
  return index >= 0 ? fmt::format("index {}", index) : fmt::format("batch {}", batch);
}

std::span<const int64_t> LoadJob::indices_of(int64_t batch) const {
  const int64_t begin = batch * batch_size;
  const int64_t count = std::min(batch_size, static_cast<int64_t>(order.size()) - begin);
  return std::span(order).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count));
}

Batch LoadJob::load(int64_t batch) const {
  current_index = -1;
  const auto indices = indices_of(batch);
  if (!collate) return dataset->get_batch(indices, epoch_rng);
  std::vector<Sample> samples;
  samples.reserve(indices.size());
  for (const int64_t index : indices) {
    current_index = index;
    Generator rng = epoch_rng.fork(static_cast<std::uint64_t>(index));
    samples.push_back(dataset->get(index, rng));
  }
  current_index = -1;
  return collate(samples);
}

}  // namespace levin::data::detail
