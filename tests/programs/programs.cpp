#include "programs/programs.h"

#include "support/stored_values.h"
#include "support/tolerance.h"

#include <cmath>

namespace levin::test {

namespace {

struct Run {
  const char* precision;
  double allowed;  // relative difference; float32 rounds each of 20 steps
};
Run current{};

void set_weights(nn::Module& module) {
  const no_grad guard;
  int64_t salt = 0;
  double scale = 1;
  for (const Parameter& p : module.parameters()) {
    if (p.dim() > 1) scale = std::exp2(-std::nearbyint(std::log2(static_cast<double>(p.numel() / p.size(0))) / 2));
    if (p.dim() > 1 || !all(eq(p, 1)).item<bool>()) p.copy_(formula(p.numel(), salt).view(p.sizes()) * scale);
    ++salt;
  }
}

const StoredValues& stored() {
  static const StoredValues values = read_stored_values("../programs/losses.txt");
  return values;
}

}  // namespace

Tensor numbers(const Shape& sizes, int64_t salt) { return formula(sizes.numel(), salt).view(sizes); }

Losses::Losses(std::string program)
    : program_(std::move(program)), expected_(stored().at(program_).to_vector<double>()) {}

void Losses::on_fit_start(RunContext& run) { set_weights(run.module); }

void Losses::on_train_batch_end(RunContext&, const StepOutput& output, const Batch&, int) {
  losses_.push_back(output.loss().item<double>());
}

void Losses::on_train_end(RunContext&) {
  REQUIRE(losses_.size() == expected_.size());
  CHECK(losses_.size() == 20);
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    const double error = std::abs(losses_[i] - expected_[i]);
    CHECK_MESSAGE(error <= current.allowed * std::abs(expected_[i]), program_, " step ", i, ": ", losses_[i],
                  ", PyTorch's is ", expected_[i]);
  }
}

void check_result(const std::string& name, double value) {
  const double expected = stored().at(name).item<double>();
  CHECK_MESSAGE(std::abs(value - expected) <= current.allowed * std::abs(expected), name, ": ", value,
                ", PyTorch's is ", expected);
}

void in_both_precisions(void (*program)()) {
  for (const Run& run : {Run{"64-true", 1e-10}, Run{"32-true", 1e-5}}) {
    INFO(run.precision);
    current = run;
    program();
  }
}

TrainerConfig with_options(TrainerConfig config) {
  config.precision = current.precision;
  config.logger = false;
  config.enable_checkpointing = false;
  config.enable_progress_bar = false;
  config.enable_model_summary = false;
  config.num_sanity_val_steps = 0;
  return config;
}

}  // namespace levin::test
