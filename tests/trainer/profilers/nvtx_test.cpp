// The ranges that NvtxProfiler pushes and pops.
#include "trainer/toy.h"

#include <algorithm>

using namespace levin;
using namespace levin::test;

namespace {

/// Ranges as they are pushed and popped, one line each, indented by how many are open.
struct Ranges {
  std::vector<std::string> open, lines;
  bool popped_too_often = false;
  std::shared_ptr<NvtxProfiler> profiler() {
    return std::make_shared<NvtxProfiler>(
        NvtxProfilerOptions{.push =
                                [this](const char* name) {
                                  lines.push_back(std::string(open.size(), ' ') + name);
                                  open.emplace_back(name);
                                },
                            .pop =
                                [this] {
                                  popped_too_often = popped_too_often || open.empty();
                                  if (!open.empty()) open.pop_back();
                                }});
  }
  /// Those of `lines` that name one of these, in their order.
  std::vector<std::string> of(const std::vector<std::string>& names) const {
    std::vector<std::string> some;
    for (const std::string& line : lines)
      if (std::ranges::any_of(names, [&](const std::string& n) { return line.ends_with(n); })) some.push_back(line);
    return some;
  }
};

/// Fits 5 batches and validates 2.
void fit(LevinModule& module, Ranges& ranges) {
  data::DataLoader train(toy_points(20), {.batch_size = 4}), val(toy_points(8), {.batch_size = 4});
  TrainerConfig config{.max_epochs = 1, .num_sanity_val_steps = 0, .profiler = ranges.profiler()};
  Trainer(quiet(std::move(config))).fit(module, train, val);
}

}  // namespace

TEST_CASE("nvtx: ranges are pushed and popped in order, nested around each step") {
  Ranges ranges;
  ToyModule model;
  fit(model, ranges);
  CHECK(ranges.open.empty());
  CHECK_FALSE(ranges.popped_too_often);
  CHECK(ranges.lines.front() == "run_fit");
  std::vector<std::string> expected = {"run_fit", " run_training_epoch"};
  for (int i = 0; i < 5; ++i)
    for (const char* line : {"  run_training_batch", "   [LevinModule]ToyModule.training_step",
                             "   [LevinModule]ToyModule.optimizer_zero_grad", "   [Strategy]single.backward",
                             "   [Strategy]single.optimizer_step"})
      expected.emplace_back(line);
  expected.emplace_back("  run_validation_epoch");
  CHECK(ranges.of({"run_fit", "run_training_epoch", "run_training_batch", ".training_step", ".optimizer_zero_grad",
                   ".backward", ".optimizer_step", "run_validation_epoch"}) == expected);
}

TEST_CASE("nvtx: an exception in a step pops all that is open, and a program's own ranges nest in the rest") {
  struct Thrower : ToyModule {
    StepOutput training_step(const Batch& b, int i) override {
      const ProfileScope mine("augmentation", Phase::data);
      if (i == 1) throw std::runtime_error("boom");
      return ToyModule::training_step(b, i);
    }
  } model;
  Ranges ranges;
  CHECK_THROWS_AS(fit(model, ranges), std::runtime_error);
  CHECK(ranges.open.empty());
  CHECK_FALSE(ranges.popped_too_often);
  CHECK(ranges.of({"augmentation"}) == std::vector<std::string>(2, "    augmentation"));
}
