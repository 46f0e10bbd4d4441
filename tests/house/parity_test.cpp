// tests/parity.txt names test cases that exist, and docs/parity.md has its rows.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "support/paths.h"

using levin::test::source_dir;

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(source_dir() / path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Row {
  std::string name, promise;
  std::vector<std::string> tests, scripts, reasons;
};

struct Table {
  std::vector<Row> rows;
  std::set<std::string> reasons;
};

Table read_table() {
  Table table;
  std::istringstream lines(read("tests/parity.txt"));
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with('#') || colon == std::string::npos) continue;
    const std::string field = line.substr(0, colon), value = line.substr(colon + 2);
    const auto equals = value.find(" = ");
    if (field == "reason") {
      table.reasons.insert(value.substr(0, equals));
    } else if (field == "row") {
      REQUIRE_MESSAGE(equals != std::string::npos, line);
      table.rows.push_back({value.substr(0, equals), value.substr(equals + 3), {}, {}, {}});
    } else if (field == "test") {
      table.rows.back().tests.push_back(value);
    } else if (field == "script") {
      table.rows.back().scripts.push_back(value);
    } else if (field == "why") {
      table.rows.back().reasons.push_back(value);
    } else {
      CHECK_MESSAGE(field == "section", line);
    }
  }
  return table;
}

/// The names of all test cases of the tree.
std::set<std::string> known_cases() {
  static const std::regex declaration(R"re(TEST_CASE(?:_TEMPLATE)?\s*\(\s*"((?:[^"\\]|\\.)*)")re");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_dir() / "tests")) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = read(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it)
      names.insert(std::regex_replace((*it)[1].str(), std::regex(R"(\\")"), "\""));
  }
  return names;
}

/// How many cases have this name, or begin with it where none has it.
std::ptrdiff_t count(const std::set<std::string>& cases, const std::string& beginning) {
  if (cases.count(beginning) == 1) return 1;
  return std::count_if(cases.begin(), cases.end(), [&](const auto& name) { return name.starts_with(beginning); });
}

}  // namespace

TEST_CASE("every row of the table of parity has tests that exist, or a reason, and stands on its page") {
  const Table table = read_table();
  const auto cases = known_cases();
  const std::string page = read("docs/parity.md");
  CHECK(cases.size() > 900);
  CHECK(table.rows.size() > 250);
  std::set<std::string> names;
  for (const Row& row : table.rows) {
    INFO(row.name);
    CHECK_FALSE(row.promise.empty());
    CHECK(row.tests.size() + row.scripts.size() + row.reasons.size() > 0);
    names.insert(row.name);
    for (const auto& test : row.tests) CHECK_MESSAGE(count(cases, test) == 1, test);
    for (const auto& script : row.scripts)
      CHECK(std::filesystem::exists(source_dir() / "tests/scripts" / (script + ".sh")));
    for (const auto& reason : row.reasons)  // a word that stands for a sentence, or a sentence
      CHECK_MESSAGE((table.reasons.count(reason) == 1 || reason.find(' ') != std::string::npos), reason);
    CHECK(page.find("| " + row.name + " | " + row.promise + " |") != std::string::npos);
  }
  CHECK(names.size() == table.rows.size());
}
