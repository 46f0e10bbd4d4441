// Rules for words: comments are sentences, and names are the field's standard terms. This file quotes what it refuses
// and is the only one that the rules leave out.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "house/source_tree.h"

using levin::test::holds_word;
using levin::test::read_files;
using levin::test::read_sources;
using levin::test::SourceFile;

namespace {

using Lines = std::vector<std::string>;

const Lines kPrivateWords = {"by_letters", "Letters", "Announcement", "Greeting", "whole_weights"};
const Lines kPrivateTypes = {"Lane", "Watch"};

/// Reads the sources of the library, the tests and the tools.
std::vector<SourceFile> read_code() {
  auto files = read_sources();
  for (auto& file : read_files({"tools", "tests", "bench", "cmake", "CMakeLists.txt", "tests/CMakeLists.txt", "run"},
                               {".py", ".sh", ".cmake"}))
    files.push_back(std::move(file));
  std::erase_if(files, [](const SourceFile& f) { return f.path.generic_string() == "tests/house/language_test.cpp"; });
  return files;
}

bool is_cpp(const SourceFile& file) {
  const std::string extension = file.path.extension().string();
  return extension == ".h" || extension == ".cpp" || extension == ".cu" || extension == ".cuh";
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// True if the word "what" follows a comment sign: // and /* in C++, else # and the quotes of a docstring.
bool begins_with_what(const std::string& line, bool cpp) {
  static const Lines signs_of_cpp = {"//", "/*"}, other_signs = {"#", "\"\"\""};
  for (const std::string& sign : cpp ? signs_of_cpp : other_signs) {
    for (auto at = line.find(sign); at != std::string::npos; at = line.find(sign, at + 1)) {
      const auto begin = std::min(line.find_first_not_of("/*!<# \"", at), line.size());
      const std::string word = line.substr(begin, 5);
      if ((word.starts_with("What") || word.starts_with("what")) &&
          (word.size() == 4 || std::isalpha(static_cast<unsigned char>(word[4])) == 0))
        return true;
    }
  }
  return false;
}

/// True for a definition or declaration at the beginning of a line; types inside others have names of their own.
bool declares_private_type(const std::string& line) {
  if (!line.starts_with("class ") && !line.starts_with("struct ")) return false;  // as most lines
  return std::ranges::any_of(kPrivateTypes, [&](const std::string& type) {
    for (const char* keyword : {"class ", "struct "}) {
      const std::string begin = keyword + type;
      if (line.starts_with(begin) && holds_word(line.substr(0, begin.size() + 1), type)) return true;
    }
    return false;
  });
}

bool holds_private_word(const std::string& line, bool cpp) {
  const auto held = [&](const std::string& word) { return line.find(word) != std::string::npos; };
  return std::ranges::any_of(kPrivateWords, held) || lower(line).find("picture") != std::string::npos ||
         (cpp && declares_private_type(line));
}

/// Returns "file:line: text" for each line that the rule refuses.
template <class Rule>
Lines refused(const SourceFile& file, Rule rule) {
  Lines found;
  const bool cpp = is_cpp(file);
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    if (rule(file.lines[i], cpp))
      found.push_back(file.path.generic_string() + ":" + std::to_string(i + 1) + ": " + file.lines[i]);
  }
  return found;
}

}  // namespace

TEST_CASE("no comment begins with \"what\"") {
  const auto files = read_code();
  CHECK(files.size() > 800);
  for (const auto& file : files) {
    for (const auto& line : refused(file, begins_with_what))
      FAIL_CHECK(line << " (write a sentence, an imperative or a noun phrase)");
  }
}

TEST_CASE("the check of comments refuses planted ones") {
  const SourceFile cpp{"planted.cpp",
                       {"// What it does.", "int n;  ///< what is left", "/// Whatever comes.",
                        "// A word on what follows.", "const char* url = \"http://whatever\";", "/** What */"}};
  CHECK(refused(cpp, begins_with_what) == Lines{"planted.cpp:1: // What it does.",
                                                "planted.cpp:2: int n;  ///< what is left",
                                                "planted.cpp:6: /** What */"});
  const SourceFile python{"planted.py", {"# What it does", "\"\"\"What it does.\"\"\"", "x = 1  # one", "#"}};
  CHECK(refused(python, begins_with_what).size() == 2);
}

TEST_CASE("the field's standard terms stand in the place of private words") {
  auto files = read_code();
  const auto pages = read_files({"docs", "README.md", "CONTRIBUTING.md"}, {".md"});
  CHECK(pages.size() > 10);
  files.insert(files.end(), pages.begin(), pages.end());
  for (const auto& file : files) {
    const std::string path = file.path.generic_string();
    if (holds_private_word(path, false)) FAIL_CHECK(path << ":1: the file's name");
    for (const auto& line : refused(file, holds_private_word)) FAIL_CHECK(line);
  }
}

TEST_CASE("the check of words refuses planted ones") {
  for (const auto& word : kPrivateWords) {
    INFO(word);
    CHECK(refused(SourceFile{"planted.md", {"some words", "and " + word}}, holds_private_word).size() == 1);
  }
  for (const auto& type : kPrivateTypes) {
    INFO(type);
    const SourceFile cpp{"planted.h",
                         {"class " + type + " {", "struct " + type + ";", "class " + type + "s {",
                          "  struct " + type + " {", "class Fast : " + type + " {", "/// " + type + " by name."}};
    CHECK(refused(cpp, holds_private_word) ==
          Lines{"planted.h:1: class " + type + " {", "planted.h:2: struct " + type + ";"});
  }
  CHECK(refused(SourceFile{"planted.py", {"Pictures of clothes", "images"}}, holds_private_word).size() == 1);
}
