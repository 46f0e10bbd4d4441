// Options of programs: values that are read, and the error for invalid ones.
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

TrainerConfig flags(std::vector<const char*> arguments, TrainerConfig config = {}) {
  arguments.insert(arguments.begin(), "program");
  return parse_flags(static_cast<int>(arguments.size()), arguments.data(), std::move(config));
}

std::string refusal(std::vector<const char*> arguments) {
  return message_of<UsageError>([&] { flags(std::move(arguments)); });
}

}  // namespace

TEST_CASE("every field of the configuration is a flag") {
  const auto c = flags({"--max-epochs",
                        "7",
                        "--precision=64-true",
                        "--devices",
                        "1",
                        "--strategy",
                        "single",
                        "--accelerator",
                        "cpu",
                        "--limit-train-batches",
                        "0.25",
                        "--limit-val-batches",
                        "3",
                        "--accumulate-grad-batches",
                        "4",
                        "--gradient-clip-val",
                        "0.5",
                        "--gradient-clip-algorithm",
                        "value",
                        "--enable-progress-bar",
                        "false",
                        "--detect-anomaly",
                        "--default-root-dir",
                        "a b/c",
                        "--seed",
                        "12",
                        "--max-epochs",
                        "8"});
  CHECK(c.max_epochs == 8);
  CHECK(c.precision == "64-true");
  CHECK(c.devices.text() == "1");
  CHECK(c.limit_train_batches.fraction() == 0.25);
  CHECK(c.limit_val_batches.count() == 3);
  CHECK(c.accumulate_grad_batches == 4);
  CHECK(c.gradient_clip_val == 0.5);
  CHECK(c.gradient_clip_algorithm == "value");
  CHECK_FALSE(c.enable_progress_bar);
  CHECK(c.detect_anomaly);
  CHECK(c.default_root_dir == "a b/c");
  CHECK(c.seed == 12);
  CHECK(flags({}, {.max_epochs = 5}).max_epochs == 5);
}

TEST_CASE("misuse gives one sentence with the value and what to do") {
  CHECK(contains(refusal({"--max-epoch", "3"}), "--max-epoch: this option is unknown. Did you mean --max-epochs?"));
  CHECK(contains(refusal({"--wibble"}), "--wibble: this option is unknown. --help lists all."));
  CHECK(contains(refusal({"stray"}), "stray: this option is unknown"));
  CHECK(contains(refusal({"--max-epochs", "many"}), "--max-epochs many: give a whole number."));
  CHECK(contains(refusal({"--max-epochs", "3.5"}), "--max-epochs 3.5: give a whole number."));
  CHECK(contains(refusal({"--accumulate-grad-batches", "0"}), "give a whole number of 1 or more"));
  CHECK(contains(refusal({"--max-epochs", "99999999999999999999"}), "give a whole number."));
  CHECK(contains(refusal({"--gradient-clip-val", "x"}), "--gradient-clip-val x: give a number."));
  CHECK(contains(refusal({"--limit-train-batches", "1.5"}), "--limit-train-batches 1.5"));
  CHECK(contains(refusal({"--limit-train-batches", "-1"}), "--limit-train-batches -1"));
  CHECK(contains(refusal({"--limit-train-batches", "half"}), "--limit-train-batches half"));
  CHECK(contains(refusal({"--gradient-clip-algorithm", "max"}), "choose one of norm|value"));
  CHECK(contains(refusal({"--inference-mode", "maybe"}), "--inference-mode maybe: give true or false."));
  CHECK(contains(refusal({"--max-epochs"}), "--max-epochs"));
  for (const auto& text : {refusal({"--max-epochs"}), refusal({"--wibble"})})
    CHECK(text.find('\n') == std::string::npos);
}

TEST_CASE("run_main turns exceptions into exit statuses") {
  CHECK(run_main([] { return 5; }) == 5);
  CHECK(run_main([]() -> int { throw UsageError("--x 1: give 2."); }) == 2);
  CHECK(run_main([]() -> int { throw IoError("[x] is damaged."); }) == 1);
  CHECK(run_main([]() -> int { throw std::runtime_error("other"); }) == 1);
  CHECK(run_main([]() -> int { throw Interrupted(2, "interrupted"); }) == 130);
  CHECK(run_main([]() -> int { throw Interrupted(15, "interrupted"); }) == 143);
  CHECK(run_main([]() -> int { throw HelpShown(); }) == 0);
}
