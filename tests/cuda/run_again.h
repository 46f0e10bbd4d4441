#pragma once
// Runs a test in another process, for settings that a process reads only once.

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace levin::test {

/// Runs one test case of this program in a new process with this environment variable. Returns 0 if it passes.
inline int run_again_with(const char* name, const char* value, const char* test_case) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  return std::system(fmt::format("{}={} '{}' --minimal '--test-case={}' >&2", name, value, program, test_case).c_str());
}

inline bool is_set(const char* name, const char* value) {
  const char* found = std::getenv(name);
  return found && std::string(found) == value;
}

/// Returns the message of the exception that f throws, or an empty string.
template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return {};
}

}  // namespace levin::test
