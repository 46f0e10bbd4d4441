#include "support/text/pattern.h"

#include <regex>

namespace levin::test {

struct Pattern::Compiled {
  std::regex regex;
};

namespace {

Pattern::Match groups_of(const std::smatch& found) { return {found.begin(), found.end()}; }

}  // namespace

Pattern::Pattern(const std::string& text) : compiled_(std::make_shared<Compiled>(Compiled{std::regex(text)})) {}

std::optional<Pattern::Match> Pattern::match(const std::string& text) const {
  std::smatch found;
  if (!std::regex_match(text, found, compiled_->regex)) return std::nullopt;
  return groups_of(found);
}

bool Pattern::matches(const std::string& text) const { return std::regex_match(text, compiled_->regex); }

std::optional<Pattern::Match> Pattern::find(const std::string& text) const {
  std::smatch found;
  if (!std::regex_search(text, found, compiled_->regex)) return std::nullopt;
  return groups_of(found);
}

bool Pattern::found_in(const std::string& text) const { return std::regex_search(text, compiled_->regex); }

std::vector<Pattern::Match> Pattern::find_all(const std::string& text) const {
  std::vector<Match> all;
  for (std::sregex_iterator i(text.begin(), text.end(), compiled_->regex), end; i != end; ++i)
    all.push_back(groups_of(*i));
  return all;
}

std::string Pattern::replace_all(const std::string& text, const std::string& with) const {
  return std::regex_replace(text, compiled_->regex, with);
}

std::string Pattern::replace_all(const std::string& text, const std::function<std::string(const Match&)>& with) const {
  std::string result;
  auto rest = text.begin();
  for (std::sregex_iterator i(text.begin(), text.end(), compiled_->regex), end; i != end; ++i) {
    result.append(rest, (*i)[0].first);
    result += with(groups_of(*i));
    rest = (*i)[0].second;
  }
  return result.append(rest, text.end());
}

}  // namespace levin::test
