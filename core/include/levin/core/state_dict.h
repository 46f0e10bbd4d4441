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

  StateDict() = default;
  StateDict(std::initializer_list<Entry> entries) : entries_(entries) {}

  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Null when there is none.
  const Tensor* find(std::string_view name) const {
    for (const Entry& e : entries_)
      if (e.first == name) return &e.second;
    return nullptr;
  }
  /// Throws StateError when there is none.
  const Tensor& at(std::string_view name) const {
    if (const Tensor* t = find(name)) return *t;
    throw StateError("[state_dict] there is no entry \"" + std::string(name) + "\" among the " +
                     std::to_string(size()) + " of this dictionary.");
  }
  /// Adds or replaces.
  void set(const std::string& name, const Tensor& value) {
    for (Entry& e : entries_)
      if (e.first == name) {
        e.second = value;
        return;
      }
    entries_.emplace_back(name, value);
  }
  /// All of `other` under "prefix" + name.
  void merge(const std::string& prefix, const StateDict& other) {
    for (const auto& [name, value] : other) entries_.emplace_back(prefix + name, value);
  }
  /// The entries whose names begin with `prefix`, without it.
  StateDict sub(std::string_view prefix) const {
    StateDict result;
    for (const auto& [name, value] : entries_)
      if (name.starts_with(prefix)) result.entries_.emplace_back(name.substr(prefix.size()), value);
    return result;
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace levin
