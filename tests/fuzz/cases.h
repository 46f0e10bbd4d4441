#pragma once
// The random tests by number.

#include "fuzz/compare.h"

namespace levin::fuzz {

/// What is drawn from.
struct Suite {
  std::vector<OpCase> cases;
  std::string family;  ///< single, graphs or edits; empty: all of them
  Peer peer{};
};

/// Runs the test that `d` gives: empty, or what is wrong. `show` gets the test as lines of C++, before or as it runs.
std::string run_case(Draw& d, const Suite& suite, const std::function<void(const std::string&)>& show = {});

}  // namespace levin::fuzz
