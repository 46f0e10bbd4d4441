#pragma once
// Random calls of compositions: sizes and arguments, for tests/fuzz.

#include "cases/composed/composition.h"

namespace levin::test {

/// "(1,2,)", as Python writes a tuple.
std::string tuple(const Shape& s);
inline const char* python(bool b) { return b ? "True" : "False"; }
/// A shape of sizes of 1 or more.
Shape filled(Draw& d, int least_dims, int most_dims, int64_t elements = 120);

Draws joining_draws();
Draws repeating_draws();
Draws moving_draws();
Draws diagonal_draws();
Draws selecting_draws();
Draws padding_draws();
Draws moment_draws();
Draws order_draws();
Draws scan_draws();
Draws count_draws();
Draws product_draws();
Draws einsum_draws();
Draws activation_draws();
Draws norm_draws();
Draws convolution_draws();
Draws pool_draws();
Draws resizing_draws();
Draws sampling_draws();
Draws column_draws();
Draws box_draws();
Draws system_draws();
Draws factorization_draws();
Draws margin_loss_draws();

}  // namespace levin::test
