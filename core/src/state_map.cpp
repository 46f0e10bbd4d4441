#include <levin/core/state_map.h>

namespace levin {

StateMap::StateMap() = default;
StateMap::~StateMap() = default;
StateMap::StateMap(const StateMap&) = default;
StateMap::StateMap(StateMap&&) noexcept = default;
StateMap& StateMap::operator=(const StateMap&) = default;
StateMap& StateMap::operator=(StateMap&&) noexcept = default;
StateMap::StateMap(std::initializer_list<std::pair<const std::string, StateValue>> values) : values_(values) {}

void StateMap::set(const std::string& key, StateValue value) { values_[key] = std::move(value); }
bool StateMap::has(const std::string& key) const { return values_.contains(key); }
bool operator==(const StateMap& a, const StateMap& b) { return a.values_ == b.values_; }

void StateMap::put(const std::string& prefix, const StateMap& other) {
  for (const auto& [key, value] : other.values_) values_[prefix + "/" + key] = value;
}

StateMap StateMap::part(const std::string& prefix) const {
  StateMap out;
  const std::string start = prefix + "/";
  for (auto it = values_.lower_bound(start); it != values_.end() && it->first.starts_with(start); ++it)
    out.values_[it->first.substr(start.size())] = it->second;
  return out;
}

const StateValue& StateMap::at(const std::string& key) const {
  const auto it = values_.find(key);
  if (it == values_.end())
    throw StateError("[state] the saved state has no \"" + key + "\". It was made by another program or version.");
  return it->second;
}

bool StateMap::is_empty_list(const StateValue& v) {
  return std::visit([](const auto& x) {
    if constexpr (requires { x.empty(); }) return x.empty();
    return false;
  }, v);
}

void StateMap::wrong_type(const std::string& key) {
  throw StateError("[state] the saved \"" + key + "\" has another type. It was made by another program or version.");
}

}  // namespace levin
