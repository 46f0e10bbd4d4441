// Every argument check of the operations and layers has a test of its sentence: some string of the tests quotes enough
// of it. A sentence is a string "[op] ..." of the sources, whose {} stand for values.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "house/source_tree.h"

using levin::test::read_sources;
using levin::test::SourceFile;

namespace {

constexpr int kEnough = 16;         // characters of a sentence that a test quotes, or 3/5 of a shorter one
constexpr std::size_t kCommon = 8;  // characters in a row that make a pair of strings worth a comparison
constexpr char kValue = '\0';       // stands for {} in a sentence

/// Returns the strings of C++ source text; those beside each other are one.
std::vector<std::string> strings_of(const std::string& text) {
  std::vector<std::string> found;
  bool joins = false;  // only spaces since the last string
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size());
    } else if (text[i] == '\'' && (i == 0 || std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0)) {
      for (++i; i < text.size() && text[i] != '\'' && text[i] != '\n'; ++i) i += text[i] == '\\' ? 1 : 0;
      joins = false;
    } else if (text[i] == '"') {
      std::string value;
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i) {
        if (text[i] == '\\') ++i;
        value += text[i];
      }
      if (joins)
        found.back() += value;
      else
        found.push_back(value);
      joins = true;
    } else if (text[i] != ' ' && text[i] != '\n') {
      joins = false;
    }
  }
  return found;
}

std::set<std::string> strings_of(const std::vector<SourceFile>& files) {
  std::set<std::string> all;
  for (const auto& file : files) {
    std::string text;
    for (const auto& line : file.lines)
      if (!line.starts_with("#include")) text += line + '\n';
    for (auto& s : strings_of(text)) all.insert(std::move(s));
  }
  return all;
}

/// A sentence whose values are marked by kValue.
std::string sentence_of(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{') {
      i = std::min(text.find('}', i), text.size());
      out += kValue;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool is_sentence(const std::string& text) {
  const std::size_t close = text.find("] ");
  return text.starts_with('[') && close != std::string::npos && close + 2 < text.size();
}

/// Returns how many characters of the sentence `quote` repeats if it is a part of the sentence with values filled in,
/// else -1.
int quoted(std::string_view sentence, std::string_view quote) {
  // best[p]: the most characters that are equal so far if the quote goes on with position p of the sentence
  std::vector<int> best(sentence.size() + 1, -1);
  for (std::size_t p = 0; p < sentence.size(); ++p) best[p] = sentence[p] == kValue ? -1 : 0;
  std::vector<int> next;
  for (const char c : quote) {
    next.assign(best.size(), -1);
    for (std::size_t p = 0; p < sentence.size(); ++p) {
      if (best[p] < 0) continue;
      if (sentence[p] == kValue) {
        best[p + 1] = std::max(best[p + 1], best[p]);
        next[p] = std::max(next[p], best[p]);
      } else if (sentence[p] == c) {
        next[p + 1] = std::max(next[p + 1], best[p] + 1);
      }
    }
    best.swap(next);
  }
  return *std::max_element(best.begin(), best.end());
}

/// Returns the sentences of which no string of the tests quotes enough.
std::vector<std::string> untested(const std::set<std::string>& sources, const std::set<std::string>& tests) {
  struct Check {
    std::string text, sentence;
    int needed;
    bool tested = false;
  };
  std::vector<Check> checks;
  for (const auto& text : sources) {
    if (!is_sentence(text)) continue;
    const std::string sentence = sentence_of(text);
    const auto fixed =
        static_cast<int>(sentence.size() - static_cast<std::size_t>(std::ranges::count(sentence, kValue)));
    checks.push_back({text, sentence, std::min(kEnough, fixed * 3 / 5)});
  }
  std::unordered_map<std::string_view, std::vector<std::size_t>> having;  // which sentences have these characters
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const std::string_view sentence = checks[i].sentence;
    for (std::size_t at = 0; at + kCommon <= sentence.size(); ++at) having[sentence.substr(at, kCommon)].push_back(i);
  }
  for (const std::string_view quote : tests) {
    std::set<std::size_t> candidates;
    for (std::size_t at = 0; at + kCommon <= quote.size(); ++at) {
      const auto found = having.find(quote.substr(at, kCommon));
      if (found != having.end()) candidates.insert(found->second.begin(), found->second.end());
    }
    for (const std::size_t i : candidates) {
      const bool too_short = static_cast<int>(quote.size()) < checks[i].needed;
      if (!checks[i].tested && !too_short) checks[i].tested = quoted(checks[i].sentence, quote) >= checks[i].needed;
    }
  }
  std::vector<std::string> missing;
  for (const auto& check : checks)
    if (!check.tested) missing.push_back(check.text);
  return missing;
}

}  // namespace

TEST_CASE("every argument check of the operations and layers has a test of its sentence") {
  const auto sources = strings_of(read_sources({"autograd/src/ops", "nn/src"}));
  CHECK(std::ranges::count_if(sources, is_sentence) > 350);
  auto files = read_sources({"tests"});
  std::erase_if(files, [](const SourceFile& f) { return f.path.generic_string().starts_with("tests/house/"); });
  for (const auto& text : untested(sources, strings_of(files)))
    FAIL_CHECK("no test quotes \"" << text << "\"; see tests/ops/argument_checks_test.cpp");
}

TEST_CASE("the check of sentences finds planted ones") {
  const std::set<std::string> sources = {"[{}] x is {}, expected is a vector.", "[split] size {} is not positive.",
                                         "no sentence of a check"};
  CHECK(untested(sources, {}).size() == 2);
  CHECK(untested(sources, {"[split] size 0 is not positive"}) ==
        std::vector<std::string>{"[{}] x is {}, expected is a vector."});
  CHECK(untested(sources, {"x is (2, 3), expected is a vector"}).front().starts_with("[split]"));
  CHECK(
      untested(sources, {"[dot] x is (2, 3), expected is a matrix", "is not positive", "[roll] size 0 is not positive"})
          .size() == 2);
  CHECK(strings_of(std::string("f(\"a\"\n  \"b\", '\"', \"c\\\"\");  // \"d\"")) ==
        std::vector<std::string>{"ab", "c\""});
}
