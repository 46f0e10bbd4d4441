#pragma once
// Shared by the programs of this folder: data that the PyTorch programs compute too, equal weights, and a comparison of
// the losses. Each program is written as a user would write it; the .py file beside it is the same in Lightning.

#include <levin/levin.h>

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

namespace levin::test {

/// peer.py's formula: a hash of the index as a multiple of 2^-15 in [-1, 1).
Tensor numbers(const Shape& sizes, int64_t salt);

/// Sets the weights before training and compares the loss of every step with the one that make_losses.py stored.
class Losses final : public Callback {
 public:
  explicit Losses(std::string program);
  void on_fit_start(RunContext& run) override;
  void on_train_batch_end(RunContext& run, const StepOutput& output, const Batch& batch, int index) override;
  void on_train_end(RunContext& run) override;

 private:
  std::string program_;
  std::vector<double> expected_, losses_;
};

/// Checks a result against the one that make_losses.py stored as `program/name`.
void check_result(const std::string& name, double value);

/// Runs a program in float64, in which it agrees with PyTorch to ten digits, and in float32.
void in_both_precisions(void (*program)());

/// Adds the options of the current run, as `**options` in the PyTorch programs: its precision, and no output.
TrainerConfig with_options(TrainerConfig config);

}  // namespace levin::test
