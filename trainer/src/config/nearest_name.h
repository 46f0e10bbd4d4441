#pragma once
// Suggests an existing name for a misspelt one.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace levin {

/// Edit distance: the number of letters to change, add or remove.
inline std::size_t letters_apart(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] != b[j - 1] ? 1 : 0);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row.back();
}

/// Returns the name nearest to `word` if the edit distance is at most three; else empty.
inline std::string nearest_name(std::string_view word, const std::vector<std::string>& names) {
  const auto nearest = std::ranges::min_element(names, {}, [&](const auto& name) { return letters_apart(word, name); });
  return nearest != names.end() && letters_apart(word, *nearest) <= 3 ? *nearest : std::string();
}

}  // namespace levin
