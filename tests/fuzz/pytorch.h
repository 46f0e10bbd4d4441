#pragma once
// PyTorch as the reference: a Python process that reads programs as JSON lines and answers with results in float64.

#include "fuzz/compare.h"

#include <cstdio>
#include <optional>
#include <string>

namespace levin::fuzz {

class Pytorch {
 public:
  explicit Pytorch(std::string python) : python_(std::move(python)) {}

  /// Starts the process; child processes that are forked later share it, one at a time.
  void start();
  /// Returns nothing if a step has no PyTorch expression, or if PyTorch crashes. Starts its own process at the first
  /// call, and after one that ended.
  std::optional<Results> run(const Program& p);

 private:
  /// Sends a line and returns the next one from the process, or nothing if it ended.
  std::optional<std::string> ask(const std::string& line);

  std::string python_;
  std::FILE *to_ = nullptr, *from_ = nullptr;
  int64_t asked_ = 0;
};

}  // namespace levin::fuzz
