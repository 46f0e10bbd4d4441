#pragma once
// Benchmarks training steps of a convolutional net and of a stack of GPT blocks in three precisions.

#include "bench/cuda/report.h"

namespace levin::bench {

/// Returns one row per net and precision ("32-true" without TF32, "16-mixed", "bf16-mixed"): name, net, precision,
/// shape, loss after the steps, activation_bytes (memory that forward keeps for backward), and, unless `figures` is
/// false, the median seconds per step of interleaved steps. A row is ok if its loss is within 2 % of that of 32-true.
Json training_rows(Scale scale, bool figures);
/// Returns the rows of one net: "cnn" or "gpt_blocks".
Json training_rows(const std::string& net, Scale scale, bool figures);

}  // namespace levin::bench
