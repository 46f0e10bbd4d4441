#pragma once
// Reduces a failing test.

#include "support/draw.h"

#include <functional>
#include <string>

namespace levin::fuzz {

/// Returns whether the test of these choices still fails.
using Fails = std::function<bool(const test::Draw::Choices&)>;

/// Returns simpler choices that still fail: fewer and smaller ones, until none can be removed or reduced, or until
/// `attempts` tests have run.
test::Draw::Choices reduced(test::Draw::Choices failing, const Fails& fails, int attempts = 3000);

}  // namespace levin::fuzz
