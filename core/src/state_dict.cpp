#include <levin/core/state_dict.h>

namespace levin {

StateDict::StateDict() = default;
StateDict::~StateDict() = default;
StateDict::StateDict(const StateDict&) = default;
StateDict::StateDict(StateDict&&) noexcept = default;
StateDict& StateDict::operator=(const StateDict&) = default;
StateDict& StateDict::operator=(StateDict&&) noexcept = default;
StateDict::StateDict(std::initializer_list<Entry> entries) : entries_(entries) {}

const Tensor* StateDict::find(std::string_view name) const {
  for (const Entry& e : entries_)
    if (e.first == name) return &e.second;
  return nullptr;
}

const Tensor& StateDict::at(std::string_view name) const {
  if (const Tensor* t = find(name)) return *t;
  throw StateError("[state_dict] there is no entry \"" + std::string(name) + "\" among the " + std::to_string(size()) +
                   " of this dictionary.");
}

void StateDict::set(const std::string& name, const Tensor& value) {
  for (Entry& e : entries_)
    if (e.first == name) {
      e.second = value;
      return;
    }
  entries_.emplace_back(name, value);
}

void StateDict::merge(const std::string& prefix, const StateDict& other) {
  for (const auto& [name, value] : other) entries_.emplace_back(prefix + name, value);
}

StateDict StateDict::sub(std::string_view prefix) const {
  StateDict result;
  for (const auto& [name, value] : entries_)
    if (name.starts_with(prefix)) result.entries_.emplace_back(name.substr(prefix.size()), value);
  return result;
}

}  // namespace levin
