#pragma once
// Random views and in-place operations.

#include "fuzz/cases.h"

namespace levin::fuzz {

/// Runs a random sequence of views and edits through them, and backward from what they leave, beside an oracle that
/// keeps for each element of memory its value and its derivative by every element of the leaf. All numbers are small
/// integers, so that both have to be equal.
std::string run_edits(Draw& d, const std::function<void(const std::string&)>& show);

}  // namespace levin::fuzz
