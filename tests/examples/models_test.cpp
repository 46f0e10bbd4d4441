// The programs of docs/models.md as a user runs them, shortened: they learn, continue from a checkpoint, and take
// precisions and strategies without a line of their own.
#include <levin/levin.h>

#include <doctest/doctest.h>

#include <cmath>

#include "examples/program.h"

using namespace levin;
using levin::test::Ended;
using levin::test::TempDir;

namespace {

struct Program {
  const char* name;
  const char* size;  // options that make it small
  int epochs;
  const char* result;  // key of the result that is checked
  double least, most;
};

constexpr const char* kText = "in the beginning was the word, and the word was with god, and the word was god. ";

const Program kPrograms[] = {
    {"ddpm",
     "--width 16 --timesteps 50 --drawn 1 --decay 0.9 --batch-size 32 --limit-train-batches 60 --limit-val-batches 2 "
     "--max-epochs 1",
     1, "val_loss", 0.05, 0.5},  // a network that predicts no noise has 1
    {"detect", "--width 8 --scenes 640 --held-out 50 --batch-size 16 --max-epochs 3", 3, "map", 0.25, 1.0},
    {"dqn", "--max-steps 40 --val-check-interval 20 --hidden 16", 0, "return", 5, 500},
    {"gpt", "--text text --width 32 --layers 1 --context 16 --sample 20 --max-steps 60 --val-check-interval 30", 0,
     "val_loss", 0.05, 1.5},
    {"gpt",
     "--text text --vocab-size 280 --width 32 --layers 1 --context 16 --sample 5 --max-steps 60 "
     "--val-check-interval 30",
     0, "val_loss", 0.01, 1.0},
    {"graph", "--nodes 300 --max-epochs 40 --features 32", 40, "accuracy", 0.7, 1.0},
    {"lstm", "--points 2000 --hidden 16 --layers 1 --lr 0.01 --max-epochs 12", 12, "nrmse", 0.0, 0.9},
    {"lstm", "--task language --text text --points 4000 --hidden 32 --layers 1 --lr 0.02 --max-epochs 12", 12,
     "val_loss", 0.0, 2.5},
    {"recommender", "--users 6000 --items 20 --history 10 --held-out 500 --max-epochs 12", 12, "auc", 0.75, 1.0},
    {"resnet", "--limit-train-batches 60 --batch-size 32 --limit-val-batches 1 --max-epochs 1", 1, "test_accuracy", 0.4,
     1.0},
    {"speech",
     "--speakers 60 --takes 5 --held-out 10 --width 32 --bands 20 --batch-size 8 --lr 0.004 --max-epochs 10", 10,
     "accuracy", 0.65, 1.0},
    {"translate", "--dates 600 --held-out 20 --width 16 --layers 1 --log-every-n-steps 1 --max-epochs 2", 2, "exact",
     0.0, 1.0},
    {"vae", "--hidden 64 --latent 4 --limit-train-batches 60 --limit-val-batches 2 --max-epochs 1", 1, "test_loss", 200,
     400},
    {"vit",
     "--patch 7 --width 32 --heads 2 --layers 2 --batch-size 64 --lr 3e-3 --limit-train-batches 100 "
     "--limit-val-batches 2 --max-epochs 1",
     1, "test_accuracy", 0.55, 1.0},
};

std::string repeated_text() {
  std::string text;
  for (int i = 0; i < 60; ++i) text += kText;
  return text;
}

std::string quick(const Program& p) {
  return std::string(p.size) + " --enable-progress-bar false --enable-model-summary false --accelerator cpu";
}

}  // namespace

TEST_CASE("each program learns, writes a report, and continues from its last checkpoint") {
  for (const Program& p : kPrograms) {
    INFO(std::string(p.name), " ", std::string(p.size));
    const TempDir dir;
    io::write_file(dir.path / "text", repeated_text());
    const Ended e = test::run_program(dir, p.name, quick(p));
    REQUIRE_MESSAGE(e.status == 0, e.err);
    CHECK(e.number(p.result) >= p.least);
    CHECK(e.number(p.result) <= p.most);
    const auto root = dir.path / "runs" / p.name / (std::string(p.name) == "graph" ? "edges" : "");
    CHECK(io::read_text(root / "report.html").size() > 10000);
    if (std::string(p.name) == "vae" || std::string(p.name) == "ddpm")  // NaN would be black
      CHECK(data::read_image(root / "drawn.png").to(kFloat32).mean().item<double>() > 10);
    if (std::string(p.result) == "exact") {  // so short a training translates no date, but its loss falls
      const auto losses = test::column(root / "metrics.csv", "train_loss");
      REQUIRE(losses.size() > 10);
      CHECK(std::stod(losses.back()) < 0.9 * std::stod(losses.front()));
    }

    const auto steps = [&] {
      return read_checkpoint(root / "checkpoints/last").values.get<std::int64_t>("loop/global_step");
    };
    const std::int64_t before = steps();
    CHECK(before > 0);
    // Half as long again, so that the next validation, at which checkpoints are written, is reached.
    const std::string more =
        p.epochs > 0 ? " --max-epochs " + std::to_string(p.epochs + (p.epochs + 1) / 2) : " --max-steps 90";
    const Ended again = test::run_program(dir, p.name, quick(p) + " --resume last" + more);
    REQUIRE_MESSAGE(again.status == 0, again.err);
    CHECK(steps() > before);
  }
}

TEST_CASE("each program trains in bf16-mixed on two ranks") {
  for (const Program& p : kPrograms) {
    INFO(std::string(p.name), " ", std::string(p.size));
    const TempDir dir;
    io::write_file(dir.path / "text", repeated_text());
    const Ended e = test::run_program(
        dir, p.name,
        quick(p) + " --precision bf16-mixed --strategy ddp --devices 2 --limit-train-batches 4 --max-steps 4");
    REQUIRE_MESSAGE(e.status == 0, e.err);
    CHECK(std::isfinite(e.number(p.result)));
    CHECK(e.out.find("result: ") == e.out.rfind("result: "));
  }
}

TEST_CASE("the first steps of a program are recorded for the comparison with PyTorch") {
  const TempDir dir;
  const Ended e = test::run_program(dir, "graph", "--nodes 300 --record steps --logger none");
  REQUIRE_MESSAGE(e.status == 0, e.err);
  const auto weights = interop::load_safetensors(dir.path / "steps/weights.safetensors").tensors;
  CHECK(weights.at("conv1.linear.weight").sizes() == Shape{64, 64});
  const auto steps = interop::load_safetensors(dir.path / "steps/steps.safetensors").tensors;
  CHECK(steps.at("losses").sizes() == Shape{20});
  CHECK(steps.at("19/0").sizes() == Shape{120});
  CHECK(steps.at("schedule").item<std::int64_t>() == 200);
}
