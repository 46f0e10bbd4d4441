// Runs the GAN example as a user does, at small sizes.
#include <levin/levin.h>

#include <doctest/doctest.h>

#include <filesystem>

#include "examples/program.h"

using namespace levin;
using levin::test::TempDir;

TEST_CASE("gan: manual optimization learns, an image grid is drawn per epoch, and the classifier scores it") {
  const TempDir dir;
  const test::Ended judge =
      test::run_program(dir, "mnist",
                        "--model mlp --max-epochs 1 --limit-train-batches 100 --limit-val-batches 2 "
                        "--limit-test-batches 2 --threads 1");
  REQUIRE_MESSAGE(judge.status == 0, judge.err);
  const test::Ended e = test::run_program(dir, "gan", "--tiny --max-epochs 2 --limit-train-batches 240 --threads 1");
  REQUIRE_MESSAGE(e.status == 0, e.err);
  // A classifier assigns noise to a single class: the first grid has one class, real images have all.
  CHECK(e.number("real_confident") > 0.4);
  CHECK(e.number("real_entropy") > 2.2);
  CHECK(e.number("entropy") > 2.1);    // 2.26 to 2.29 with three seeds; 1.0 without learning
  CHECK(e.number("as_asked") > 0.15);  // 0.20 with three seeds; 0.10 without learning
  CHECK(e.number("untrained_confident") < e.number("real_confident"));

  const auto grids = dir.path / "runs/gan/grids";
  std::vector<std::vector<std::uint8_t>> images;
  for (const char* name : {"epoch_00.png", "epoch_01.png", "epoch_02.png"}) {
    const Tensor grid = data::read_image(grids / name);  // 8 x 10 images with 2 pixels between them
    CHECK(grid.sizes() == Shape{3, 8 * 30 + 2, 10 * 30 + 2});
    images.push_back(grid.to_vector<std::uint8_t>());
  }
  CHECK(images[0] != images[1]);
  CHECK(images[1] != images[2]);
  const std::string report = io::read_text(dir.path / "runs/gan/report.html");
  CHECK(report.find("d_loss") != std::string::npos);
  CHECK(report.find("data:image/png") != std::string::npos);
  CHECK(std::filesystem::exists(dir.path / "runs/gan/tensorboard"));

  const test::Ended again = test::run_program(dir, "gan",
                                              "--tiny --max-epochs 2 --limit-train-batches 240 --threads 1 "
                                              "--enable-progress-bar false --default-root-dir other");
  REQUIRE_MESSAGE(again.status == 0, again.err);
  CHECK(data::read_image(dir.path / "other/grids/epoch_02.png").to_vector<std::uint8_t>() == images[2]);
}

TEST_CASE("gan: without classes the networks are the DCGAN, and no image is asked for") {
  const TempDir dir;
  const test::Ended judge = test::run_program(
      dir, "mnist", "--model mlp --max-epochs 1 --limit-train-batches 2 --limit-val-batches 1 --limit-test-batches 1");
  REQUIRE_MESSAGE(judge.status == 0, judge.err);
  const std::string options = "--tiny --max-epochs 1 --limit-train-batches 3 --threads 1";
  const test::Ended with = test::run_program(dir, "gan", options),
                    without = test::run_program(dir, "gan", options + " --unconditional");
  REQUIRE_MESSAGE(with.status == 0, with.err);
  REQUIRE_MESSAGE(without.status == 0, without.err);
  CHECK(with.out.find("as_asked=") != std::string::npos);
  CHECK(without.out.find("as_asked=") == std::string::npos);
  // The generator's first layer takes 10 inputs fewer, the discriminator's last has 9 outputs fewer.
  CHECK((with.out + with.err).find("483,866 parameters") != std::string::npos);
  CHECK((without.out + without.err).find("481,425 parameters") != std::string::npos);
}

TEST_CASE("gan: misuse ends with a one-line error") {
  const TempDir dir;
  const test::Ended none = test::run_program(dir, "gan", "--classifier nowhere");
  CHECK(none.status == 1);
  CHECK(none.err ==
        "error: there is no classifier in nowhere. Train one with ./run mnist, or name its checkpoint with "
        "--classifier.\n");
  CHECK(test::run_program(dir, "gan", "--accumulate 0").status == 2);
  CHECK(test::run_program(dir, "gan", "--help").out.find("--tiny") != std::string::npos);
}
