#include <doctest/doctest.h>

#include "support/paths.h"
#include "support/text/pattern.h"

#include <fstream>
#include <set>
#include <sstream>

using levin::test::Pattern;

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Returns the text in double quotes from `at` on.
std::string quoted(const std::string& text, std::size_t at) {
  return text.substr(at + 1, text.find('"', at + 1) - at - 1);
}

/// Returns the names of all test cases.
std::set<std::string> test_names() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(levin::test::source_dir() / "tests")) {
    if (!entry.path().string().ends_with("_test.cpp")) continue;
    const std::string text = read(entry.path()), open = "TEST_CASE(";
    for (std::size_t at = 0; (at = text.find(open, at)) != std::string::npos;) {
      at = text.find_first_not_of(" \n", at + open.size());
      if (text[at] == '"') names.insert(quoted(text, at));
    }
  }
  return names;
}

}  // namespace

TEST_CASE("the page on adding an operation names files that hold what it says") {
  const std::filesystem::path root = levin::test::source_dir();
  std::istringstream page(read(root / "docs/adding_an_operation.md"));
  const Pattern row(R"(\| ([^|`]+) \| `([^`]+)` \| `([^`]+)` \|)");
  int rows = 0;
  for (std::string line; std::getline(page, line);) {
    const auto m = row.match(line);
    if (!m) continue;
    ++rows;
    const std::string &file = m->at(2), &held = m->at(3);
    CAPTURE(file);
    CAPTURE(held);
    CHECK(read(root / file).find(held) != std::string::npos);
  }
  CHECK(rows == 11);
}

TEST_CASE("the README's table has every verb of ./run") {
  const std::filesystem::path root = levin::test::source_dir();
  const std::string page = read(root / "README.md");
  int verbs = 0;
  const auto check = [&](const std::string& verb) {
    ++verbs;
    CHECK_MESSAGE(Pattern("\n\\| `\\./run " + verb + "[ `]").found_in(page), verb);
  };
  for (const auto& entry : std::filesystem::directory_iterator(root / "tools/verbs"))
    check(entry.path().stem().string());
  for (const auto& entry : std::filesystem::directory_iterator(root / "examples"))
    if (entry.is_directory() && entry.path().filename() != "minimal") check(entry.path().filename().string());
  CHECK(verbs > 8);
}

TEST_CASE("the page on faults has tests for each, which exist") {
  const auto names = test_names();
  std::istringstream page(read(levin::test::source_dir() / "docs/faults.md"));
  int rows = 0;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| ") || line.starts_with("| fault |")) continue;
    ++rows;
    int tests = 0;
    for (std::size_t at = line.rfind("| ", line.size() - 3); (at = line.find('"', at)) != std::string::npos;) {
      const std::string name = quoted(line, at);
      CHECK_MESSAGE(names.contains(name), name);
      at += name.size() + 2;
      ++tests;
    }
    CHECK_MESSAGE(tests > 0, line);
  }
  CHECK(rows == 34);
}
