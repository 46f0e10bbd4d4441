#pragma once
// Making a failing test small.

#include "support/draw.h"

#include <functional>
#include <string>

namespace levin::fuzz {

/// Whether the test that these choices give still fails.
using Fails = std::function<bool(const test::Draw::Choices&)>;

/// Simpler choices that fail too: fewer of them, and smaller ones, until none can be left out or made smaller, or until
/// `attempts` tests have run.
test::Draw::Choices reduced(test::Draw::Choices failing, const Fails& fails, int attempts = 3000);

}  // namespace levin::fuzz
