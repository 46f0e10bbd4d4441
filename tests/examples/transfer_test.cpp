// The transfer example as a person runs it, small.
#include <levin/levin.h>

#include <doctest/doctest.h>

#include "examples/program.h"

using namespace levin;
using levin::test::Ended;
using levin::test::TempDir;

namespace {

Ended transfer(const TempDir& dir, const std::string& arguments) {
  return test::run_program(dir, "transfer", arguments);
}

}  // namespace

TEST_CASE("examples/transfer: features of a checkpoint, frozen to the bit, beat a start from scratch") {
  const TempDir dir;
  const Ended e = transfer(dir,
                           "--threads 1 --base-epochs 1 --limit-base-batches 80 --max-epochs 6 --unfreeze-at 4 "
                           "--pictures 5 --batch-size 5");
  REQUIRE_MESSAGE(e.status == 0, e.err);
  const double with = std::stod(e.result("transfer_accuracy")), without = std::stod(e.result("scratch_accuracy"));
  CHECK(std::stod(e.result("base_accuracy")) > 0.7);
  CHECK(with > 0.6);
  CHECK(with > without);
  CHECK(e.result("frozen") == "unchanged");
  CHECK(e.result("pictures") == "5");
  // Two groups of which the second has a tenth of the rate, from epoch 4 on; then it is not what it was.
  const auto base = interop::load_safetensors(dir.path / "runs/transfer/base/best/model.safetensors").tensors;
  const auto last = interop::load_safetensors(dir.path / "runs/transfer/transfer/last/model.safetensors").tensors;
  CHECK(base.size() == last.size());
  CHECK(base.at("backbone.0.weight").to_vector<float>() != last.at("backbone.0.weight").to_vector<float>());
  const std::string log = io::read_text(dir.path / "runs/transfer/transfer/metrics.csv");
  CHECK(log.find("lr-AdamW/pg2") != std::string::npos);

  const Ended again = transfer(dir,
                               "--threads 1 --from runs/transfer/base/best --max-epochs 1 --unfreeze-at 9 --pictures 5 "
                               "--limit-test-batches 1 --checkpoint second");
  REQUIRE_MESSAGE(again.status == 0, again.err);
  CHECK(again.result("checkpoint") == "second/transfer/best");
  const auto frozen = interop::load_safetensors(dir.path / "second/transfer/last/model.safetensors").tensors;
  for (const auto& [name, t] : frozen)
    if (name.starts_with("backbone.")) CHECK(t.to_vector<float>() == base.at(name).to_vector<float>());
}

TEST_CASE("transfer: misuse ends with one sentence") {
  const TempDir dir;
  const std::pair<const char*, int> rows[] = {
      {"--pictures 0", 2}, {"--lr 0", 2}, {"--picture 3", 2}, {"--from nowhere", 1}, {"--data nowhere", 1}};
  for (const auto& [arguments, status] : rows) {
    INFO(arguments);
    const Ended e = transfer(dir, arguments);
    CHECK(e.status == status);
    CHECK(e.err.starts_with("error: "));
    CHECK(std::count(e.err.begin(), e.err.end(), '\n') == 1);
  }
  CHECK(transfer(dir, "--help").out.find("--unfreeze-at") != std::string::npos);
}
