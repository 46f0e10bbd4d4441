#pragma once
// Named tensors: parameters, and the tensors that are saved and loaded.

#include <levin/core/tensor.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace levin {

/// A parameter's handle together with its name ("fc1.weight"); usable wherever a Tensor is.
struct Parameter : Tensor {
  /// Names a tensor, which it shares.
  Parameter(std::string name_, const Tensor& tensor) : Tensor(tensor), name(std::move(name_)) {}
  std::string name;  ///< path of the parameter in its module: "fc1.weight"
};

/// An ordered dictionary of tensors. Values are handles, so that changing a tensor in place also changes the original.
/// Entries keep the order in which they were added; looking up a name takes time in proportion to their number.
class StateDict {
 public:
  using Entry = std::pair<std::string, Tensor>;  ///< name and tensor

  StateDict();
  ~StateDict();
  StateDict(const StateDict&);
  StateDict(StateDict&&) noexcept;
  StateDict& operator=(const StateDict&);
  StateDict& operator=(StateDict&&) noexcept;
  /// Lists entries, whose names have to differ: `StateDict{{"weight", w}, {"bias", b}}`.
  StateDict(std::initializer_list<Entry> entries);

  /// Number of entries, and whether there are none.
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

  /// True if there is an entry of this name.
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Returns the tensor of this name, or null when there is none.
  const Tensor* find(std::string_view name) const;
  /// Returns the tensor of this name; throws StateError when there is none.
  const Tensor& at(std::string_view name) const;
  /// Adds or replaces an entry.
  void set(const std::string& name, const Tensor& value);
  /// Appends all entries of `other` as `prefix` + name, without a search: these names must not be in use yet.
  void merge(const std::string& prefix, const StateDict& other);
  /// Returns the entries whose names begin with `prefix`, with the prefix removed.
  StateDict sub(std::string_view prefix) const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace levin
