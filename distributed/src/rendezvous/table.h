#pragma once
// The table operations that both stores share.

#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace levin::distributed {

using KeyTable = std::map<std::string, std::string>;

/// Parses a decimal number; returns 0 for other text.
inline std::int64_t to_number(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

inline std::string add_to(KeyTable& table, const std::string& key, std::int64_t amount) {
  std::string& entry = table[key];
  return entry = std::to_string(to_number(entry) + amount);
}

inline std::string compare_set_in(KeyTable& table, const std::string& key, const std::string& expected,
                                  const std::string& desired) {
  const auto entry = table.find(key);
  if (entry == table.end() ? expected.empty() : entry->second == expected) return table[key] = desired;
  return entry == table.end() ? std::string() : entry->second;
}

inline std::vector<std::string> keys_of(const KeyTable& table, const std::string& prefix) {
  std::vector<std::string> names;
  for (auto e = table.lower_bound(prefix); e != table.end() && e->first.starts_with(prefix); ++e) {
    names.push_back(e->first);
  }
  return names;
}

inline std::vector<std::string> missing_from(const KeyTable& table, const std::vector<std::string>& keys) {
  std::vector<std::string> missing;
  for (const std::string& key : keys) {
    if (!table.contains(key)) missing.push_back(key);
  }
  return missing;
}

}  // namespace levin::distributed
