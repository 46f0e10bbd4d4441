// Types and constants of a namespace have one definition each: the linker keeps one of two that share a name.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "house/source_tree.h"

using levin::test::read_sources;
using levin::test::SourceFile;

namespace {

/// The name that a line at the outermost level of a namespace defines, or an empty text.
std::string defined_name(const std::string& line) {
  const auto word_before = [&](std::size_t end) {
    while (end > 0 && line[end - 1] == ' ') --end;
    const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':'; };
    std::size_t begin = end;
    while (begin > 0 && in_word(line[begin - 1])) --begin;
    return line.substr(begin, end - begin);
  };
  if (line.starts_with("struct ") || line.starts_with("class ")) {
    const std::size_t end = std::min(line.find(" final"), std::min(line.find(" : "), line.find(" {")));
    return line.ends_with(";") || end == std::string::npos ? "" : word_before(end);
  }
  const bool constant = line.starts_with("inline constexpr ") || line.starts_with("inline const ");
  const std::size_t end = line.find_first_of("={(");
  return constant && end != std::string::npos && line[end] != '(' ? word_before(end) : "";  // '(' of a function
}

/// Adds the names that a file defines outside of unnamed namespaces, with their namespaces, and the file.
void add_names(const SourceFile& file, std::map<std::string, std::set<std::string>>& names) {
  std::vector<std::string> open;
  for (const auto& line : file.lines) {
    if (line.starts_with("namespace ") && line.ends_with("{")) {
      open.push_back(line.substr(10, line.size() - 11));
    } else if (line.starts_with("}  // namespace") && !open.empty()) {
      open.pop_back();
    } else if (std::find(open.begin(), open.end(), "") == open.end()) {
      std::string name = defined_name(line);
      if (name.empty()) continue;
      for (auto part = open.rbegin(); part != open.rend(); ++part) name = *part + ":: " + name;
      names[name].insert(file.path.generic_string());
    }
  }
}

}  // namespace

TEST_CASE("no two files define the same type or constant of a namespace") {
  std::map<std::string, std::set<std::string>> names;
  for (const auto& file : read_sources({"core", "kernels", "autograd", "nn", "optim", "data", "interop", "distributed",
                                        "trainer", "c_api"}))
    add_names(file, names);
  CHECK(names.size() > 1000);
  for (const auto& [name, files] : names)
    CHECK_MESSAGE(files.size() == 1, name << " in " << *files.begin() << " and " << *files.rbegin());
  // The check finds what is planted.
  std::map<std::string, std::set<std::string>> planted;
  const auto add = [&](const char* path, const char* last) {
    add_names({path,
               {"namespace a {", "struct A final : B {", "};", "namespace {", "class C {", "};", "}  // namespace",
                last, "}  // namespace a"}},
              planted);
  };
  add("one.h", "inline constexpr int64_t kMost = 64;");
  add("one.h", "inline const int* most(int64_t first,");
  add("two.h", "inline constexpr int64_t kMost{320};");
  CHECK(planted.size() == 2);
  CHECK(planted["a :: A"].size() == 2);
  CHECK(planted["a :: kMost"].size() == 2);
}
