#pragma once
// Runs tests in child processes, so that one that crashes or hangs is an ordinary failure.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace levin::fuzz {

/// The output of a child process and how it died; empty if it did not.
struct Apart {
  std::string text, death;
};

/// Runs `test` in a child process with a function to write with and a limit of `seconds` of processor time.
using Write = std::function<void(const std::string&)>;
Apart run_apart(const std::function<void(const Write&)>& test, unsigned seconds = 20);

struct Failure {
  std::int64_t number;
  std::string wrong;
};

/// Runs test(number) for `first` up to first + count in `workers` processes. A test whose process dies has failed; a
/// new process continues after it. `progress` gets the number of finished tests.
std::vector<Failure> run_many(std::int64_t first, std::int64_t count, int workers,
                              const std::function<std::string(std::int64_t)>& test,
                              const std::function<void(std::int64_t done, std::size_t failures)>& progress);

}  // namespace levin::fuzz
