#pragma once
// Files of torch.save (.pt, .pth, .ckpt): a zip archive of a pickle and of the tensors' bytes. The pickle is read
// as data: it may build tensors, dictionaries, lists, numbers and texts, and nothing in it is ever executed, as with
// torch.load(weights_only=True).

#include <levin/core/state_dict.h>

#include <cstdint>
#include <iosfwd>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace levin::interop {

namespace detail {
struct PickleDocument;
template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
}  // namespace detail

struct LoadTorchOptions;

/// A value of a file: a tensor, a dictionary, a list, a number, a text or None. Copies are cheap; each keeps the whole
/// file's values alive, while a Tensor or StateDict taken from it keeps only its own memory.
class TorchValue {
 public:
  /// Tuples, sets and torch.Size are lists; bytes, dtypes, devices and integers beyond 64 bits ("0x1f...") are texts.
  enum class Kind : std::uint8_t { none, boolean, integer, floating, text, tensor, list, dict };

  /// Returns what this value is.
  Kind kind() const;
  /// True for None.
  bool is_none() const { return kind() == Kind::none; }

  /// Returns the tensor. Throws StateError for another value.
  const Tensor& tensor() const;
  /// Returns all tensors of this dictionary or list by their dotted names: "fc.weight", "optimizer.state.0.exp_avg".
  /// Other values are left out. Throws StateError for another value, and when two tensors would have one name.
  StateDict state_dict() const;

  /// Returns the value of a key. Throws StateError that lists the keys if there is none, or if this is no dictionary.
  /// Keys that are numbers are named by their digits: file["optimizer"]["state"]["0"].
  TorchValue operator[](std::string_view key) const;
  /// Returns a list's item. Throws IndexError beyond its end, StateError for another value.
  TorchValue operator[](std::size_t index) const;
  bool contains(std::string_view key) const;  ///< false for a value that is no dictionary
  std::vector<std::string> keys() const;      ///< of a dictionary, in its order
  std::size_t size() const;                   ///< number of items of a list or dictionary

  /// Returns a number, bool, std::string, or a std::vector of them. Integers are converted to floating-point types.
  /// Throws StateError for another value or one out of T's range.
  template <class T>
  T get() const {
    if constexpr (detail::kIsVector<T>) {
      T out;
      out.reserve(list_size());
      for (std::size_t i = 0; i < list_size(); ++i) out.push_back((*this)[i].get<typename T::value_type>());
      return out;
    } else if constexpr (std::is_same_v<T, bool>) {
      return boolean();
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(integer(static_cast<std::int64_t>(std::numeric_limits<T>::lowest()),
                                    static_cast<std::uint64_t>(std::numeric_limits<T>::max())));
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(floating());
    } else {
      static_assert(std::is_same_v<T, std::string>, "get takes numbers, bool, std::string, and vectors of them");
      return text();
    }
  }

 private:
  friend TorchValue load_torch(const std::string& path, const LoadTorchOptions& options);
  friend std::string to_string(const TorchValue& value);
  TorchValue(std::shared_ptr<const detail::PickleDocument> document, std::uint32_t node, std::string path);

  std::size_t list_size() const;
  bool boolean() const;
  std::int64_t integer(std::int64_t least, std::uint64_t most) const;
  double floating() const;
  const std::string& text() const;
  std::string place() const;
  [[noreturn]] void refuse(const char* wanted) const;

  std::shared_ptr<const detail::PickleDocument> document_;
  std::uint32_t node_ = 0;
  std::string path_;  ///< "optimizer.param_groups.0.lr", empty for the whole file
};

/// Returns one line per value, to see what a file holds: `model.fc.weight: float32 (10, 784)`, `epoch: 3`.
std::string to_string(const TorchValue& value);
std::ostream& operator<<(std::ostream& out, const TorchValue& value);

/// Arguments of load_torch.
struct LoadTorchOptions {
  /// Maps the file into memory instead of reading it: pages are read on first use, and processes share them. Writes to
  /// such a tensor are private to the process, and checksums are not verified. The file must not be shortened while a
  /// tensor lives.
  bool mmap = false;
  /// The device of all tensors. Those that share memory in the file share it here too.
  Device map_location = kCpu;
  /// Reads objects of classes that are not allowed as dictionaries of their attributes, without running any of their
  /// code. By default one such object refuses the file, as weights_only does.
  bool any_class = false;
};

/// Reads a file of torch.save, as torch.load(path, weights_only=True) does:
/// `net.load_state_dict(load_torch(f).state_dict())`, or `load_torch(f)["state_dict"]` for a checkpoint. Tensors keep
/// their strides, those that shared memory share it again, and parameters require grad. Throws IoError for a missing or
/// damaged file, for the formats before PyTorch 1.6, for TorchScript, and for a class or function that is not allowed,
/// which it names.
TorchValue load_torch(const std::string& path, const LoadTorchOptions& options = {});

/// Writes a file that torch.load(path, weights_only=True) reads as a dictionary, atomically. Contiguous entries that
/// have the same elements, as tied weights do, share memory there too. Throws ValueError for an undefined tensor, a
/// name that occurs twice, and more than 4 GiB.
void save_torch(const std::string& path, const StateDict& tensors);

}  // namespace levin::interop
