#pragma once
// Tests in processes of their own, so that one that crashes or hangs is a failure like others.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace levin::fuzz {

/// What a child process wrote, and how it died; empty where it did not.
struct Apart {
  std::string text, death;
};

/// Runs `test` in a child process and hands it a function to write with. A test may take `seconds`.
using Write = std::function<void(const std::string&)>;
Apart run_apart(const std::function<void(const Write&)>& test, unsigned seconds = 20);

struct Failure {
  std::int64_t number;
  std::string wrong;
};

/// Runs test(number) for `first` up to first + count in `workers` processes. A process that dies takes its test along,
/// which is a failure; another one goes on behind it. `progress` gets the number of tests done.
std::vector<Failure> run_many(std::int64_t first, std::int64_t count, int workers,
                              const std::function<std::string(std::int64_t)>& test,
                              const std::function<void(std::int64_t done, std::size_t failures)>& progress);

}  // namespace levin::fuzz
