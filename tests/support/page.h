#pragma once
// Runs the code of a page and compares what it prints with what the page shows. With LEVIN_UPDATE_PAGES=1 in the
// environment, outputs that differ are written into the page.

#include "support/files.h"
#include "support/paths.h"
#include "support/text/pattern.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

namespace levin::test {

/// Runs a page's code in an empty folder and collects what it prints.
class Page {
 public:
  explicit Page(std::string name) : name_(std::move(name)), screen_(std::cout.rdbuf(printed_.rdbuf())) {
    std::filesystem::current_path(folder_.path);
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  ~Page() {
    std::cout.rdbuf(screen_);
    std::filesystem::current_path(before_);
  }

  /// Compares what was printed since the last call with the text of the page that begins at `line`.
  void expect(const std::string& text, int line) {
    const std::string seen = printed_.str();
    printed_.str("");
    ++compared_;
    if (std::getenv("LEVIN_UPDATE_PAGES")) {
      if (!pattern(trimmed(text)).matches(trimmed(seen))) corrections_[line] = trimmed(seen);
      return;
    }
    const Screen screen(*this);
    INFO(name_, ":", line, " shows\n", text, "\nbut the code prints\n", seen);
    CHECK(pattern(trimmed(text)).matches(trimmed(seen)));
  }
  void check_status(int status, int line) {
    const Screen screen(*this);
    INFO(name_, ":", line);
    CHECK(status == 0);
  }
  /// Every page shows what its code prints, at the end at the latest.
  void close() {
    const Screen screen(*this);
    if (!corrections_.empty()) correct();
    INFO(name_, " prints more than it shows: ", printed_.str());
    CHECK(printed_.str().empty());
    CHECK(compared_ > 0);
  }

 private:
  /// Lets doctest print its messages.
  struct Screen {
    explicit Screen(Page& page) : printed(&page.printed_) { std::cout.rdbuf(page.screen_); }
    ~Screen() { std::cout.rdbuf(printed->rdbuf()); }
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;
    std::ostringstream* printed;
  };

  /// Replaces blocks of the page by what was printed.
  void correct() const {
    std::ifstream in(source_dir() / "docs" / name_);
    std::ostringstream out;
    int number = 1;
    bool skipping = false;
    std::string former;
    for (std::string line; std::getline(in, line); former = line, ++number) {
      if (line == "```") skipping = false;
      if (const auto found = corrections_.find(number); found != corrections_.end() && former == "```text") {
        out << found->second << '\n';
        skipping = line != "```";
      }
      if (!skipping) out << line << '\n';
    }
    std::ofstream(source_dir() / "docs" / name_) << out.str();
  }

  static std::string trimmed(const std::string& text) {
    std::string out;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) out += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
    return out.substr(0, out.find_last_not_of('\n') + 1);
  }
  static Pattern pattern(const std::string& text) {
    static const Pattern special(R"([.^$|()\[\]{}*+?\\])"), dots(R"(\\\.\\\.\\\.)");
    const std::string literal = special.replace_all(text, R"(\$&)");
    return Pattern(dots.replace_all(literal, R"([\s\S]*?)"));
  }

  std::string name_;
  std::filesystem::path before_ = std::filesystem::current_path();
  TempDir folder_;
  std::ostringstream printed_;
  std::streambuf* screen_;
  int compared_ = 0;
  std::map<int, std::string> corrections_;  ///< by the first line of a block
};

}  // namespace levin::test
