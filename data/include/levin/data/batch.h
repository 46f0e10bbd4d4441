#pragma once
// The batches of a data loader: tensors that belong together, as a list, a dictionary, or lists and dictionaries nested
// in one another.

#include <levin/core/tensor.h>

#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace levin {

struct Batch;

/// An entry of a list or dictionary: how its tensors are grouped.
struct BatchEntry {
  std::string key{};                  ///< empty in a list
  int end = 0;                        ///< end of its tensors, counted from the first tensor of the group that holds it
  bool is_tensor = true;              ///< one tensor; otherwise a list or dictionary
  std::vector<BatchEntry> entries{};  ///< those of the list or dictionary; empty for a list of tensors
};

/// A value for Batch::dict and Batch::list: a tensor, a list of tensors, or a batch with a structure of its own.
struct BatchValue {
  BatchValue(Tensor tensor);                          // NOLINT: implicit, like the others
  BatchValue(std::initializer_list<Tensor> tensors);  // NOLINT
  BatchValue(const Batch& batch);                     // NOLINT
  std::vector<Tensor> tensors;                        ///< its tensors, depth first
  BatchEntry entry;                                   ///< how they are grouped; `key` and `end` are not set
};

/// The tensors of one batch, each with the samples along axis 0. Two unpack by `auto& [x, y] = batch`, more by as<N>().
/// A dictionary is read by key, and `batch.part("meta")["id"]` reads one inside of another.
struct Batch {
  Batch() = default;
  /// `Sample{image, label}`: a list of tensors. `groups` are its entries, see below.
  Batch(std::initializer_list<Tensor> list) : tensors(list) {}          // NOLINT: implicit, as is the next
  Batch(std::vector<Tensor> list, std::vector<BatchEntry> groups = {})  // NOLINT
      : tensors(std::move(list)), entries(std::move(groups)) {}

  std::vector<Tensor> tensors{};      ///< the tensors of all entries, depth first
  std::vector<BatchEntry> entries{};  ///< how they are grouped; empty for a list of tensors
  int64_t samples = -1;               ///< number of samples if it is not that of the first tensor's rows, else -1
  int dataloader_idx = 0;             ///< index of the loader that made it, for loaders read in sequence

  /// Returns a dictionary: `Sample::dict({{"image", image}, {"boxes", {corners, classes}}})`. Throws ValueError for a
  /// key that is empty or given twice.
  static Batch dict(const std::vector<std::pair<std::string, BatchValue>>& values);
  /// Returns a list, of which values may be lists and dictionaries themselves. `Batch{x, y}` is a list of tensors.
  static Batch list(const std::vector<BatchValue>& values);

  /// Returns `tensors[i]`; throws IndexError with the number of tensors.
  const Tensor& operator[](int i) const;
  Tensor& operator[](int i);
  /// Returns the tensor under a key of a dictionary. Throws IndexError with the keys that there are, and ValueError if
  /// the key's value is not one tensor.
  const Tensor& operator[](std::string_view key) const;
  Tensor& operator[](std::string_view key);
  /// True for a dictionary with this key.
  bool contains(std::string_view key) const;
  /// Keys of a dictionary, in the order in which they were given; empty for a list.
  std::vector<std::string> keys() const;
  /// Returns the first N tensors: `auto [x, y, z] = batch.as<3>();`. Throws ValueError unless there are N, and for a
  /// dictionary.
  template <std::size_t N>
  std::array<Tensor, N> as() const {
    check_unpacks(N);
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::array<Tensor, N>{tensors[I]...}; }
    (std::make_index_sequence<N>());
  }
  /// Throws ValueError unless this is a list of `count` tensors.
  void check_unpacks(std::size_t count) const;

  /// Number of samples: rows of the first defined tensor, 0 if there is none, 1 for a tensor without dimensions.
  int64_t size() const;
  /// Number of entries of a dictionary or of a list that holds lists or dictionaries; a list of tensors is one part.
  int parts() const;
  /// The tensors of one entry; throws IndexError.
  Batch part(int i) const;
  /// The same by the key of a dictionary.
  Batch part(std::string_view key) const;
  /// Returns the tensors on another device. A page-locked batch is copied to a CUDA device on a separate stream, beside
  /// the work queued before; work queued later on this thread's stream waits for the copy. Until it is done the source
  /// must not be written to.
  Batch to(Device device) const;

 private:
  std::size_t index_of(std::string_view key) const;
  int begin_of(std::size_t entry) const { return entry == 0 ? 0 : entries[entry - 1].end; }
};

/// One sample: the tensors of a batch without their axis 0.
using Sample = Batch;

/// Returns tensor I of a batch of two, for structured bindings. Throws ValueError for other numbers of tensors and for
/// a dictionary.
template <std::size_t I>
const Tensor& get(const Batch& b) {
  b.check_unpacks(2);
  return b.tensors[I];
}
template <std::size_t I>
Tensor& get(Batch& b) {
  b.check_unpacks(2);
  return b.tensors[I];
}
template <std::size_t I>
Tensor&& get(Batch&& b) {
  b.check_unpacks(2);
  return std::move(b.tensors[I]);
}

namespace data {
using levin::Batch;
using levin::Sample;

/// Stacks the samples' tensors along a new axis 0, which gives a batch of the samples' structure. All samples must have
/// the same keys (in any order) and as long lists, and the same shapes and types (ShapeError, DTypeError).
Batch default_collate(std::span<const Sample> samples);
}  // namespace data

}  // namespace levin

/// A batch of two tensors unpacks by `auto& [x, y] = batch`.
template <>
struct std::tuple_size<levin::Batch> : std::integral_constant<std::size_t, 2> {};
/// Both parts are tensors.
template <std::size_t I>
struct std::tuple_element<I, levin::Batch> {
  using type = levin::Tensor;  ///< of part I
};
