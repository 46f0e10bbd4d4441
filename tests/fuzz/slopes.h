#pragma once
// Gradients in double precision against slopes.

#include "fuzz/compare.h"

namespace levin::fuzz {

/// Empty, or what is wrong. `actual` tells which outputs have gradients; `exact` are those gradients. First ones are
/// compared with slopes of the reference along random directions, second ones with slopes of Levin's first ones. Where
/// the function has a kink or a tie, a gradient may be anything between the slopes to the left and to the right; where
/// it is not finite on both sides, nothing is compared.
std::string wrong_slopes(const Program& p, const Results& actual, const Results& exact);

}  // namespace levin::fuzz
