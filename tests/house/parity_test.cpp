// tests/parity.txt names test cases and parts of the API that exist, and docs/parity.md has its rows and their count.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "support/paths.h"
#include "support/text/pattern.h"

using levin::test::Pattern;
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
  std::vector<std::string> tests, scripts;
  std::map<std::string, std::vector<std::string>> remarks;  // by field: note, lacks, refused, absent

  bool has(const std::string& field) const { return remarks.contains(field); }
  /// The name of the state on the page; empty for a row without a state or with several.
  std::string state() const {
    const bool tested = !tests.empty() || !scripts.empty();
    const int said = (has("lacks") ? 1 : 0) + (has("refused") ? 1 : 0) + (has("absent") ? 1 : 0);
    if (said > 1 || tested == has("absent")) return {};
    return has("lacks") ? "shown in part" : has("refused") ? "refused" : has("absent") ? "absent" : "shown";
  }
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
    } else if (field == "note" || field == "lacks" || field == "refused" || field == "absent") {
      table.rows.back().remarks[field].push_back(value);
    } else {
      CHECK_MESSAGE(field == "section", line);
    }
  }
  return table;
}

/// Returns the names of all test cases of the tree.
std::set<std::string> known_cases() {
  static const Pattern declaration(R"re(TEST_CASE(?:_TEMPLATE)?\s*\(\s*"((?:[^"\\]|\\.)*)")re"), quote(R"(\\")");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_dir() / "tests")) {
    if (entry.path().extension() != ".cpp") continue;
    for (const auto& m : declaration.find_all(read(entry.path()))) names.insert(quote.replace_all(m[1], "\""));
  }
  return names;
}

/// Number of cases with this name or, if there are none, of cases that begin with it.
std::ptrdiff_t count(const std::set<std::string>& cases, const std::string& beginning) {
  if (cases.count(beginning) == 1) return 1;
  return std::count_if(cases.begin(), cases.end(), [&](const auto& name) { return name.starts_with(beginning); });
}

/// Returns the words of public headers without comments, and of the tables of flags, strategies and precisions.
std::set<std::string> words_of_api() {
  static const Pattern comment(R"(//[^\n]*)"), word(R"([A-Za-z0-9_][A-Za-z0-9_-]*)");
  std::set<std::string> words;
  const auto take = [&](const std::filesystem::path& path) {
    for (const auto& m : word.find_all(comment.replace_all(read(path), ""))) words.insert(m[0]);
  };
  for (const auto& module : std::filesystem::directory_iterator(source_dir())) {
    const auto headers = module.path() / "include";
    if (!std::filesystem::is_directory(headers)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(headers))
      if (entry.path().extension() == ".h") take(entry.path());
  }
  for (const char* table : {"config/config_fields.cpp", "config/legacy_options.cpp", "precision/precision.cpp",
                            "strategies/strategies.cpp"})
    take(std::filesystem::path("trainer/src") / table);
  return words;
}

/// Returns the names in `code` of a text, without numbers.
std::vector<std::string> names_in_code(const std::string& text) {
  static const Pattern code("`([^`]*)`"), name(R"([A-Za-z0-9_][A-Za-z0-9_-]*)"), number(R"([0-9]+)");
  std::vector<std::string> names;
  for (const auto& inside : code.find_all(text))
    for (const auto& n : name.find_all(inside[1]))
      if (!number.matches(n[0])) names.push_back(n[0]);
  return names;
}

}  // namespace

TEST_CASE("every row of the table of parity has tests that exist, or a reason, and stands on its page") {
  const Table table = read_table();
  const auto cases = known_cases();
  const std::string page = read("docs/parity.md");
  CHECK(cases.size() > 900);
  CHECK(table.rows.size() > 250);
  std::set<std::string> names;
  std::map<std::string, int> counts;
  for (const Row& row : table.rows) {
    INFO(row.name);
    CHECK_FALSE(row.promise.empty());
    const std::string state = row.state();
    CHECK_FALSE(state.empty());
    ++counts[state];
    names.insert(row.name);
    for (const auto& test : row.tests) CHECK_MESSAGE(count(cases, test) == 1, test);
    for (const auto& script : row.scripts)
      CHECK(std::filesystem::exists(source_dir() / "tests/scripts" / (script + ".sh")));
    for (const auto& [field, remarks] : row.remarks)
      for (const auto& remark : remarks)  // a word that stands for a sentence, or a sentence
        CHECK_MESSAGE((table.reasons.count(remark) == 1 || remark.find(' ') != std::string::npos), remark);
    CHECK(page.find("| " + row.name + " | " + row.promise + " | " + state + " | ") != std::string::npos);
  }
  CHECK(names.size() == table.rows.size());
  std::ostringstream total;
  total << ": " << table.rows.size() << " rows, " << counts["shown"] << " shown by tests, " << counts["shown in part"]
        << " shown in part, " << counts["refused"] << " refused, " << counts["absent"] << " absent.";
  CHECK_MESSAGE(page.find(total.str()) != std::string::npos, total.str());
}

TEST_CASE("every name in code of the table of parity stands in a public header or a table of flags") {
  const auto words = words_of_api();
  CHECK(words.contains("find_unused_parameters"));
  CHECK_FALSE(words.contains("suggest_integrations"));
  int checked = 0;
  for (const Row& row : read_table().rows) {
    INFO(row.name);
    std::string text = row.name + " " + row.promise;
    for (const auto& [field, remarks] : row.remarks)
      for (const auto& remark : remarks) text += " " + remark;
    for (const std::string& name : names_in_code(text)) {
      CHECK_MESSAGE(words.contains(name), name);
      ++checked;
    }
  }
  CHECK(checked > 200);
}
