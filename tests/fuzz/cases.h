#pragma once
// Random tests, identified by number.

#include "fuzz/compare.h"

namespace levin::fuzz {

/// The cases to draw from.
struct Suite {
  std::vector<OpCase> cases;
  std::string family;  ///< single, graphs or edits; empty: all of them
  Peer peer{};
};

/// Runs the test drawn from `d`. Returns the error, or an empty string. `show` receives the test as lines of C++,
/// before or while it runs.
std::string run_case(Draw& d, const Suite& suite, const std::function<void(const std::string&)>& show = {});

}  // namespace levin::fuzz
