#pragma once
// Compares gradients in double precision with finite differences.

#include "fuzz/compare.h"

namespace levin::fuzz {

/// Returns the error, or an empty string. `actual` tells which outputs have gradients; `exact` holds those gradients.
/// First ones are compared with finite differences of the reference along random directions, second ones with those of
/// Levin's first ones. At a kink or a tie a gradient may be anything between the left and the right slope; nothing is
/// compared unless it is finite on both sides.
std::string wrong_slopes(const Program& p, const Results& actual, const Results& exact);

}  // namespace levin::fuzz
