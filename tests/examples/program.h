#pragma once
// Runs a sample program as a user does.

#include <levin/core/io.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>

#include <sys/wait.h>

#include "support/files.h"
#include "support/paths.h"

namespace levin::test {

struct Ended {
  int status = -1;
  std::string out, err;

  /// Returns the value of KEY=VALUE in the last line, or an empty string.
  std::string result(const std::string& key) const {
    std::istringstream words(out.substr(std::min(out.size(), out.rfind("result: "))));
    for (std::string word; words >> word;)
      if (word.starts_with(key + "=")) return word.substr(key.size() + 1);
    return {};
  }
  /// Returns the value as a number. Throws std::invalid_argument if it is not one.
  double number(const std::string& key) const { return std::stod(result(key)); }
};

/// Runs the program in the folder until it ends.
inline Ended run_program(const TempDir& dir, const std::string& program, const std::string& arguments) {
  const std::string command = "cd " + dir.path.string() + " && " + (binary_dir() / "bin" / program).string() + " " +
                              arguments + " >out 2>err";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, io::read_text(dir.path / "out"),
          io::read_text(dir.path / "err")};
}

}  // namespace levin::test
