// Runs the transfer example as a user does, at small sizes.
#include <levin/levin.h>

#include <doctest/doctest.h>

#include <filesystem>

#include "examples/program.h"

using namespace levin;
using levin::test::Ended;
using levin::test::TempDir;

namespace {

Ended transfer(const TempDir& dir, const std::string& arguments) {
  return test::run_program(dir, "transfer", arguments);
}

}  // namespace

TEST_CASE("examples/transfer: features from a checkpoint stay frozen to the bit and beat training from scratch") {
  const TempDir dir;
  const Ended e = transfer(dir,
                           "--threads 1 --base-epochs 1 --limit-train-batches 80 --max-epochs 6 --unfreeze-at 4 "
                           "--images 5 --batch-size 5");
  REQUIRE_MESSAGE(e.status == 0, e.err);
  const double with = std::stod(e.result("transfer_accuracy")), without = std::stod(e.result("scratch_accuracy"));
  CHECK(std::stod(e.result("base_accuracy")) > 0.7);
  CHECK(with > 0.6);
  CHECK(with > without);
  CHECK(e.result("frozen") == "unchanged");
  CHECK(e.result("images") == "5");
  // From epoch 4 on the backbone is a second parameter group with a tenth of the rate, so its weights change.
  const auto base = interop::load_safetensors(dir.path / "runs/transfer/base/best/model.safetensors").tensors;
  const auto last = interop::load_safetensors(dir.path / "runs/transfer/transfer/last/model.safetensors").tensors;
  CHECK(base.size() == last.size());
  CHECK(base.at("backbone.0.weight").to_vector<float>() != last.at("backbone.0.weight").to_vector<float>());
  const std::string log = io::read_text(dir.path / "runs/transfer/transfer/metrics.csv");
  CHECK(log.find("lr-AdamW/pg2") != std::string::npos);

  const Ended again = transfer(dir,
                               "--threads 1 --from runs/transfer/base/best --max-epochs 1 --unfreeze-at 9 --images 5 "
                               "--limit-test-batches 1 --checkpoint second");
  REQUIRE_MESSAGE(again.status == 0, again.err);
  CHECK(again.result("checkpoint") == "second/transfer/best");
  const auto frozen = interop::load_safetensors(dir.path / "second/transfer/last/model.safetensors").tensors;
  for (const auto& [name, t] : frozen)
    if (name.starts_with("backbone.")) CHECK(t.to_vector<float>() == base.at(name).to_vector<float>());
}

TEST_CASE("transfer: the program takes every flag of the Trainer") {
  const TempDir dir;
  const std::string small = "--threads 1 --limit-train-batches 2 --max-epochs 1 --base-epochs 1 --limit-val-batches 1 ";
  const Ended e = transfer(dir, small + "--limit-test-batches 1 --precision bf16-mixed --profiler simple");
  REQUIRE_MESSAGE(e.status == 0, e.err);
  for (const char* name : {"base", "transfer", "scratch"}) {
    const auto state = read_checkpoint(dir.path / "runs/transfer" / name / "last").values;
    CHECK_MESSAGE(state.get<std::int64_t>("loop/global_step") == 2, name);
    CHECK(state.get<std::string>("precision_name") == "bf16-mixed");
  }
  CHECK(e.out.find("BackboneFinetuning.on_train_epoch_start") != std::string::npos);

  // Each training resumes from its own checkpoint; the first two have nothing left to do.
  std::filesystem::remove_all(dir.path / "runs/transfer/scratch");
  const Ended on = transfer(dir, small + "--limit-test-batches 1 --precision bf16-mixed --resume last");
  REQUIRE_MESSAGE(on.status == 0, on.err);
  CHECK(on.result("transfer_accuracy") == e.result("transfer_accuracy"));
  CHECK(on.out.find("epoch 1/1") == on.out.rfind("epoch 1/1"));  // only the third training runs

  const Ended dry = transfer(dir, small + "--fast-dev-run --default-root-dir dry");
  REQUIRE_MESSAGE(dry.status == 0, dry.err);
  CHECK(dry.result("checkpoint") == "none");
  CHECK_FALSE(std::filesystem::exists(dir.path / "dry"));
  CHECK(transfer(dir, small + "--limit-val-batches 0 --enable-checkpointing false").result("checkpoint") == "none");
}

TEST_CASE("transfer: misuse ends with a one-line error") {
  const TempDir dir;
  const std::pair<const char*, int> rows[] = {{"--images 0", 2},   {"--lr 0", 2},         {"--image 3", 2},
                                              {"--from nowhere", 1}, {"--data nowhere", 1}, {"--resume x", 2},
                                              {"--max-epochs x", 2}};
  for (const auto& [arguments, status] : rows) {
    INFO(arguments);
    const Ended e = transfer(dir, arguments);
    CHECK(e.status == status);
    CHECK(e.err.starts_with("error: "));
    CHECK(std::count(e.err.begin(), e.err.end(), '\n') == 1);
  }
  CHECK(transfer(dir, "--help").out.find("--unfreeze-at") != std::string::npos);
}
