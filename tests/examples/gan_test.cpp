// The GAN example as a person runs it, small.
#include <levin/levin.h>

#include <doctest/doctest.h>

#include "examples/program.h"

using namespace levin;
using levin::test::TempDir;

TEST_CASE("gan: learns by hand-made steps, draws a grid an epoch, and is judged") {
  const TempDir dir;
  const test::Ended judge =
      test::run_program(dir, "mnist",
                        "--model mlp --max-epochs 1 --limit-train-batches 100 --limit-val-batches 2 "
                        "--limit-test-batches 2 --threads 1");
  REQUIRE_MESSAGE(judge.status == 0, judge.err);
  const test::Ended e = test::run_program(dir, "gan", "--tiny --max-epochs 2 --limit-train-batches 61 --threads 1");
  REQUIRE_MESSAGE(e.status == 0, e.err);
  // Noise looks like one thing to a classifier: what was drawn at first is of one kind, pictures are of all.
  CHECK(e.number("real_confident") > 0.4);
  CHECK(e.number("real_entropy") > 2.2);
  CHECK(e.number("entropy") > 1.4);  // 1.8 to 2.0 with three seeds; 1.0 where nothing is learned
  CHECK(e.number("untrained_confident") < e.number("real_confident"));

  const auto grids = dir.path / "runs/gan/grids";
  std::vector<std::vector<std::uint8_t>> pictures;
  for (const char* name : {"epoch_00.png", "epoch_01.png", "epoch_02.png"}) {
    const Tensor grid = data::read_image(grids / name);  // 8 x 8 pictures with 2 pixels between them
    CHECK(grid.sizes() == Shape{3, 8 * 30 + 2, 8 * 30 + 2});
    pictures.push_back(grid.to_vector<std::uint8_t>());
  }
  CHECK(pictures[0] != pictures[1]);
  CHECK(pictures[1] != pictures[2]);
  const std::string report = io::read_text(dir.path / "runs/gan/report.html");
  CHECK(report.find("d_loss") != std::string::npos);
  CHECK(report.find("data:image/png") != std::string::npos);
  CHECK(std::filesystem::exists(dir.path / "runs/gan/tensorboard"));

  const test::Ended again = test::run_program(dir, "gan",
                                              "--tiny --max-epochs 2 --limit-train-batches 61 --threads 1 "
                                              "--enable-progress-bar false --default-root-dir other");
  REQUIRE_MESSAGE(again.status == 0, again.err);
  CHECK(data::read_image(dir.path / "other/grids/epoch_02.png").to_vector<std::uint8_t>() == pictures[2]);
}

TEST_CASE("gan: misuse ends with one sentence") {
  const TempDir dir;
  const test::Ended none = test::run_program(dir, "gan", "--classifier nowhere");
  CHECK(none.status == 1);
  CHECK(none.err == "error: there is no classifier in nowhere. Train one with ./run mnist, or name its checkpoint with "
                    "--classifier.\n");
  CHECK(test::run_program(dir, "gan", "--accumulate 0").status == 2);
  CHECK(test::run_program(dir, "gan", "--help").out.find("--tiny") != std::string::npos);
}
