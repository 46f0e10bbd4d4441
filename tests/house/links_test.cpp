// Links of the pages lead to existing files, headings and functions.
#include <doctest/doctest.h>

#include "support/paths.h"
#include "support/text/pattern.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using levin::test::Pattern;

namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Link {
  std::string text, file, heading;
};

/// Returns the links of a page to files of the tree, except those in code blocks.
std::vector<Link> links_of(const std::string& page) {
  std::vector<Link> links;
  const Pattern pattern(R"(\[([^\]]+)\]\(([^)#\s]*)(#[^)\s]*)?\))");
  std::istringstream lines(page);
  bool code = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) code = !code;
    if (code) continue;
    for (const auto& m : pattern.find_all(line)) {
      const std::string &target = m[2], &heading = m[3];
      if (target.find("://") != std::string::npos) continue;
      links.push_back({m[1], target, heading.empty() ? "" : heading.substr(1)});
    }
  }
  return links;
}

/// Returns the anchors that GitHub gives to the headings of a page.
std::set<std::string> headings_of(const std::string& page) {
  std::set<std::string> names;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) continue;
    std::string name;
    for (const char c : line.substr(line.find_first_not_of("# "))) {
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_')
        name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      else if (c == ' ')
        name += '-';
    }
    names.insert(name);
  }
  return names;
}

std::vector<fs::path> pages() {
  const fs::path root = levin::test::source_dir();
  std::vector<fs::path> all{root / "README.md"};
  for (const auto& entry : fs::directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") all.push_back(entry.path());
  return all;
}

/// True if `text` holds `word` with no letter, digit or underscore beside it.
bool holds(const std::string& text, const std::string& word) { return Pattern("\\b" + word + "\\b").found_in(text); }

}  // namespace

TEST_CASE("every link of the pages leads to a file and a heading that exist") {
  int links = 0;
  for (const fs::path& page : pages()) {
    CAPTURE(page.string());
    for (const Link& link : links_of(read(page))) {
      ++links;
      CAPTURE(link.text);
      CAPTURE(link.heading);
      const fs::path target = link.file.empty() ? page : page.parent_path() / link.file;
      CHECK_MESSAGE(fs::exists(target), link.file);
      if (!link.heading.empty()) CHECK(headings_of(read(target)).contains(link.heading));
    }
  }
  CHECK(links > 100);
}

TEST_CASE("every page is reachable from the index, and the index from the README") {
  const fs::path root = levin::test::source_dir();
  std::set<fs::path> listed;
  for (const Link& link : links_of(read(root / "docs/README.md"))) listed.insert(fs::path(link.file).filename());
  for (const fs::path& page : pages())
    if (page != root / "docs/README.md") CHECK_MESSAGE(listed.contains(page.filename()), page.string());
  bool found = false;
  for (const Link& link : links_of(read(root / "README.md"))) found = found || link.file == "docs/README.md";
  CHECK(found);
}

TEST_CASE("the walks of the architecture page name functions that their files hold") {
  const fs::path page = levin::test::source_dir() / "docs/architecture.md";
  int names = 0;
  for (const Link& link : links_of(read(page))) {
    if (!link.text.starts_with('`')) continue;
    ++names;
    const std::string qualified = link.text.substr(1, link.text.size() - 2);
    const std::size_t scope = qualified.rfind("::");
    const std::string name = scope == std::string::npos ? qualified : qualified.substr(scope + 2);
    CHECK_MESSAGE(holds(read(page.parent_path() / link.file), name), link.text << " in " << link.file);
  }
  CHECK(names > 40);
}
