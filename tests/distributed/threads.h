#pragma once
// Several ranks in one process, each on its own thread.

#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace levin::test {

/// Calls body(rank) on n threads and returns their error messages, empty if nothing was thrown.
inline std::vector<std::string> errors_on_threads(int n, const std::function<void(int)>& body) {
  std::vector<std::string> errors(static_cast<std::size_t>(n));
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r) {
    threads.emplace_back([&, r] {
      try {
        body(r);
      } catch (const std::exception& e) {
        errors[static_cast<std::size_t>(r)] = e.what();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  return errors;
}

/// Does the same; rethrows the first error.
inline void on_threads(int n, const std::function<void(int)>& body) {
  const auto errors = errors_on_threads(n, body);
  for (std::size_t r = 0; r < errors.size(); ++r) {
    if (!errors[r].empty()) throw std::runtime_error("rank " + std::to_string(r) + ": " + errors[r]);
  }
}

}  // namespace levin::test
