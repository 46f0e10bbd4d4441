// Rules for files and folders: sizes, line width, header guards, no words of unfinished work.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>

#include "house/source_tree.h"

using levin::test::holds_word;
using levin::test::read_sources;

namespace {

// Spelt in halves, so that this file passes its own rule.
const std::array<std::string, 6> kUnfinished = {"TO" "DO",         "FIX" "ME",       "X" "XX",
                                                "not imple" "mented", "unimple" "mented", "place" "holder"};

// Returns the width in characters: a UTF-8 continuation byte adds none.
std::ptrdiff_t width(const std::string& line) {
  return std::count_if(line.begin(), line.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

}  // namespace

TEST_CASE("a file stays within 450 lines of 120 characters") {
  for (const auto& file : read_sources()) {
    CHECK_MESSAGE(file.lines.size() <= 450, file.path.string() << " has " << file.lines.size() << " lines");
    for (const auto& line : file.lines) CHECK_MESSAGE(width(line) <= 120, file.path.string() << ": " << line);
  }
}

TEST_CASE("a folder holds at most 25 sources") {
  const auto crowded = [](const std::map<std::string, int>& folders) {
    std::vector<std::string> found;
    for (const auto& [folder, sources] : folders) {
      if (sources > 25) found.push_back(folder + " holds " + std::to_string(sources) + " sources");
    }
    return found;
  };
  std::map<std::string, int> folders;
  for (const auto& file : read_sources()) ++folders[file.path.parent_path().generic_string()];
  CHECK(folders.size() > 50);
  for (const auto& message : crowded(folders)) FAIL_CHECK(message << "; divide it into folders");
  // The check refuses a planted folder.
  CHECK(crowded({{"nn/src", 26}, {"optim/src", 25}}) == std::vector<std::string>{"nn/src holds 26 sources"});
}

TEST_CASE("no words of unfinished work") {
  for (const auto& file : read_sources()) {
    for (const auto& line : file.lines) {
      for (const auto& word : kUnfinished) CHECK_MESSAGE(!holds_word(line, word), file.path.string() << ": " << line);
    }
  }
}

TEST_CASE("every header is guarded by pragma once") {
  int headers = 0;
  for (const auto& file : read_sources()) {
    // A Highway kernel file is meant to be included once for every target, a list of rows once for every use.
    if (file.path.extension() != ".h" || file.path.string().ends_with("-inl.h")) continue;
    ++headers;
    const bool guarded = std::any_of(file.lines.begin(), file.lines.end(), [](const std::string& line) {
      return line == "#pragma once" || line.find("has no include guard") != std::string::npos;
    });
    CHECK_MESSAGE(guarded, file.path.string());
  }
  CHECK(headers > 5);
}

TEST_CASE("public headers leave no using-directive behind") {
  for (const auto& file : read_sources()) {
    if (file.path.string().find("/include/levin/") == std::string::npos) continue;
    for (const auto& line : file.lines) {
      CHECK_MESSAGE(!line.starts_with("using namespace"), file.path.string() << ": " << line);
    }
  }
}

TEST_CASE("examples name no device and no rank") {
  // The same program runs on one device or on many; flags decide.
  int files = 0;
  for (const auto& file : read_sources({"examples"})) {
    if (file.path.string().find("ddp_by_hand") != std::string::npos) continue;  // shows what the flags do
    ++files;
    for (const auto& line : file.lines)
      for (const char* word : {"cuda", "kCuda", "rank", "world_size", "LOCAL_RANK"})
        CHECK_MESSAGE(!holds_word(line, word), file.path.string() << ": " << line);
  }
  CHECK(files > 5);
}

TEST_CASE("the Trainer empties no cache") {
  // Doing so would stall every stream, and the next step would ask the system for the same memory again.
  int files = 0;
  for (const auto& file : read_sources({"trainer", "nn", "optim", "autograd"})) {
    ++files;
    for (const auto& line : file.lines)
      CHECK_MESSAGE(!holds_word(line, "empty_cache"), file.path.string() << ": " << line);
  }
  CHECK(files > 50);
}

TEST_CASE("arguments of kernels that refer to lists copy them for a capture") {
  int lists = 0;
  for (const auto& file : read_sources({"kernels"})) {
    if (file.path.generic_string().find("kernels/include/levin/kernels/") != 0) continue;
    std::string arguments, open;  // the struct that is read, and its list that is not copied yet
    for (const auto& line : file.lines) {
      if (line.rfind("struct ", 0) == 0) arguments = line.find("Args {") != std::string::npos ? line : "";
      const auto list = line.find("  std::span<const ");
      if (!arguments.empty() && list == 0 && line.back() == ';') {
        open = line.substr(line.rfind(' ') + 1);
        open.pop_back();
        ++lists;
      }
      if (line.find("own_list(" + open + ")") != std::string::npos) open.clear();
      if (line == "};" && !open.empty()) {
        FAIL_CHECK(file.path.string() << ": " << arguments << " lacks own_lists() for " << open);
        open.clear();
      }
    }
  }
  CHECK(lists >= 12);
}
