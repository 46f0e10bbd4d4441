#pragma once
// PyTorch as the reference: a Python process that reads programs as JSON lines and answers with results in float64.

#include "fuzz/compare.h"

#include <cstdio>
#include <string>

namespace levin::fuzz {

class Pytorch {
 public:
  explicit Pytorch(std::string python) : python_(std::move(python)) {}

  /// Starts the process; child processes that are forked later share it, one at a time.
  void start();
  /// Nothing where a step has no expression of PyTorch's. A process of its own starts at the first call.
  std::optional<Results> run(const Program& p);

 private:
  std::string python_;
  std::FILE *to_ = nullptr, *from_ = nullptr;
  int64_t asked_ = 0;
};

}  // namespace levin::fuzz
