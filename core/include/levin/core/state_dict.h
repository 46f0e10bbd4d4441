#pragma once
// Tensors by name: parameters, and what is saved and loaded.

#include <levin/core/tensor.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace levin {

/// A parameter's handle together with its name ("fc1.weight"); usable wherever a Tensor is.
struct Parameter : Tensor {
  Parameter(std::string name_, const Tensor& tensor) : Tensor(tensor), name(std::move(name_)) {}
  std::string name;
};

/// An ordered dictionary of tensors. Values are handles: changing a tensor in place is seen by who gave it.
class StateDict {
 public:
  using Entry = std::pair<std::string, Tensor>;

  StateDict();
  ~StateDict();
  StateDict(const StateDict&);
  StateDict(StateDict&&) noexcept;
  StateDict& operator=(const StateDict&);
  StateDict& operator=(StateDict&&) noexcept;
  StateDict(std::initializer_list<Entry> entries);

  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Null when there is none.
  const Tensor* find(std::string_view name) const;
  /// Throws StateError when there is none.
  const Tensor& at(std::string_view name) const;
  /// Adds or replaces.
  void set(const std::string& name, const Tensor& value);
  /// All of `other` under "prefix" + name.
  void merge(const std::string& prefix, const StateDict& other);
  /// The entries whose names begin with `prefix`, without it.
  StateDict sub(std::string_view prefix) const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace levin
