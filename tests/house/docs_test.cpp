#include <doctest/doctest.h>

#include "support/paths.h"

#include <fstream>
#include <regex>
#include <sstream>

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("the page on adding an operation names files that hold what it says") {
  const std::filesystem::path root = levin::test::source_dir();
  std::istringstream page(read(root / "docs/adding_an_operation.md"));
  const std::regex row(R"(\| ([^|]+) \| `([^`]+)` \| `([^`]+)` \|)");
  int rows = 0;
  for (std::string line; std::getline(page, line);) {
    std::smatch m;
    if (!std::regex_match(line, m, row)) continue;
    ++rows;
    CAPTURE(m[2].str());
    CAPTURE(m[3].str());
    CHECK(read(root / m[2].str()).find(m[3].str()) != std::string::npos);
  }
  CHECK(rows == 6);
}

TEST_CASE("the README's table has every verb of ./run") {
  const std::filesystem::path root = levin::test::source_dir();
  const std::string page = read(root / "README.md");
  int verbs = 0;
  const auto check = [&](const std::string& verb) {
    ++verbs;
    CHECK_MESSAGE(std::regex_search(page, std::regex("\n\\| `\\./run " + verb + "[ `]")), verb);
  };
  for (const auto& entry : std::filesystem::directory_iterator(root / "tools/verbs"))
    check(entry.path().stem().string());
  for (const auto& entry : std::filesystem::directory_iterator(root / "examples"))
    if (entry.is_directory() && entry.path().filename() != "minimal") check(entry.path().filename().string());
  CHECK(verbs > 8);
}
