#pragma once
// Training steps of a convolutional net and of a stack of GPT blocks in three precisions.

#include "bench/cuda/report.h"

namespace levin::bench {

/// A row a net and precision ("32-true" without TF32, "16-mixed", "bf16-mixed"): name, net, precision, shape, loss
/// after the steps, activation_bytes (memory that the forward pass leaves for the backward one), and, unless `figures`
/// is false, seconds a step, the median of steps taken in turn. ok: the loss is within 2 % of the one of 32-true.
Json training_rows(Scale scale, bool figures);
/// The rows of one net: "cnn" or "gpt_blocks".
Json training_rows(const std::string& net, Scale scale, bool figures);

}  // namespace levin::bench
