#pragma once
// Regular expressions without the time that compiling <regex> takes.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace levin::test {

/// A regular expression in ECMAScript's grammar. std::regex is included in pattern.cpp alone, because every file that
/// uses it costs a second of compiling.
class Pattern {
 public:
  explicit Pattern(const std::string& text);

  /// The groups of a match: element 0 is the whole match; a group that took no part is empty.
  using Match = std::vector<std::string>;

  /// Returns the groups if the whole text matches.
  std::optional<Match> match(const std::string& text) const;
  bool matches(const std::string& text) const;
  /// Returns the first match in the text.
  std::optional<Match> find(const std::string& text) const;
  bool found_in(const std::string& text) const;
  std::vector<Match> find_all(const std::string& text) const;
  /// Replaces all matches by `with`, in which $1 stands for a group and $& for the whole match.
  std::string replace_all(const std::string& text, const std::string& with) const;
  /// Replaces each match by the text that `with` makes of it.
  std::string replace_all(const std::string& text, const std::function<std::string(const Match&)>& with) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace levin::test
