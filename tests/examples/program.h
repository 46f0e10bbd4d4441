#pragma once
// A sample program as a person runs it.

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

  /// The value of KEY=VALUE in the last line; empty where it is not there.
  std::string result(const std::string& key) const {
    std::istringstream words(out.substr(std::min(out.size(), out.rfind("result: "))));
    for (std::string word; words >> word;)
      if (word.starts_with(key + "=")) return word.substr(key.size() + 1);
    return {};
  }
  /// The same as a number; throws std::invalid_argument where it is none.
  double number(const std::string& key) const { return std::stod(result(key)); }
};

/// In the folder, to its end.
inline Ended run_program(const TempDir& dir, const std::string& program, const std::string& arguments) {
  const std::string command = "cd " + dir.path.string() + " && " + (binary_dir() / "bin" / program).string() + " " +
                              arguments + " >out 2>err";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, io::read_text(dir.path / "out"),
          io::read_text(dir.path / "err")};
}

}  // namespace levin::test
