// Every edit listed under tools/mutants still applies: its file exists and holds the old text exactly once.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "support/paths.h"

using levin::test::source_dir;

namespace {

using Mutant = std::map<std::string, std::string>;  // field -> text

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<Mutant> read_table(const std::filesystem::path& path) {
  std::vector<Mutant> mutants(1);
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.find_first_not_of(" \t") == std::string::npos) {
      if (!mutants.back().empty()) mutants.emplace_back();
    } else if (!line.starts_with('#')) {
      const auto colon = line.find(':');
      auto value = line.substr(colon == std::string::npos ? line.size() : colon + 1);
      if (value.starts_with(' ')) value.erase(0, 1);
      mutants.back()[line.substr(0, colon)] = value;
    }
  }
  if (mutants.back().empty()) mutants.pop_back();
  return mutants;
}

int occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("every mutant applies to exactly one place, under a name of its own") {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "tools/mutants")) {
    if (entry.path().extension() != ".txt") continue;
    for (auto& mutant : read_table(entry.path())) {
      INFO(entry.path().filename().string(), ": ", mutant["name"]);
      CHECK(names.insert(mutant["name"]).second);
      CHECK(occurrences(read_text(source_dir() / mutant["file"]), mutant["old"]) == 1);
      CHECK(mutant["old"] != mutant["new"]);
    }
  }
}
