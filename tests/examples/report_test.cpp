// The report that mnist writes: curves, test results, misclassified images, the confusion matrix of all processes.
#include <levin/levin.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>

#include "examples/mnist/mistakes.h"
#include "examples/program.h"

using namespace levin;
using levin::test::Ended;
using levin::test::run_program;
using levin::test::TempDir;
using nlohmann::json;

namespace {

constexpr const char* kShortTest =
    "--max-epochs 2 --limit-train-batches 60 --limit-val-batches 2 --model mlp --threads 1 ";
constexpr std::int64_t kTested = 1000;  // two batches of the test loader

json data_of_report(const std::filesystem::path& file) {
  const std::string page = io::read_text(file), open = "id=\"levin-data\">";
  const auto start = page.find(open) + open.size();
  return json::parse(page.substr(start, page.find("</script>", start) - start));
}

struct MatrixSums {
  std::int64_t all = 0, diagonal = 0;
};

MatrixSums sums_of(const json& matrix) {
  MatrixSums sums;
  for (std::size_t i = 0; i < matrix["rows"].size(); ++i) {
    sums.diagonal += matrix["rows"][i][i].get<std::int64_t>();
    for (const auto& n : matrix["rows"][i]) sums.all += n.get<std::int64_t>();
  }
  return sums;
}

}  // namespace

TEST_CASE("mnist writes a report with curves, test results, mistakes and a confusion matrix, and prints its path") {
  const TempDir dir;
  const Ended e = run_program(dir, "mnist", kShortTest + std::string("--limit-test-batches 2"));
  REQUIRE_MESSAGE(e.status == 0, e.err);
  CHECK(e.out.find("\nreport: runs/mnist/report.html\n") != std::string::npos);
  CHECK(io::read_text(dir.path / "runs/mnist/summary.txt").find("\nreport: ") != std::string::npos);
  const json data = data_of_report(dir.path / "runs/mnist/report.html");
  CHECK(data["title"] == "mnist");
  CHECK(data["status"] == "success");
  CHECK(data["epoch"] == 1);  // epochs are 0 and 1; the test is not a third one
  std::map<std::string, std::size_t> points;
  for (const auto& series : data["series"]) points[series["name"]] = series["y"].size();
  for (const char* name : {"train_loss", "val_loss", "val_acc", "lr-AdamW"}) CHECK_MESSAGE(points[name] == 2, name);
  for (const char* name : {"test_loss", "test_acc"}) CHECK_MESSAGE(points[name] == 1, name);
  REQUIRE(data["matrices"].size() == 1);
  CHECK(data["matrices"][0]["labels"].get<std::vector<std::string>>() == data::FashionMnist::classes());
  const MatrixSums sums = sums_of(data["matrices"][0]);
  CHECK(sums.all == kTested);
  CHECK(sums.diagonal == std::llround(e.number("test_accuracy") * kTested));
  REQUIRE(data["images"].size() == 1);
  CHECK(data["images"][0]["width"] == 8 * 30 + 2);
  CHECK(data["images"][0]["height"] == 10 * 30 + 2);
  CHECK(data["model"]["type"].get<std::string>().find("LitMnist") != std::string::npos);
}

TEST_CASE("mnist --logger: without html there is no report and no path, with none no log at all") {
  const TempDir dir;
  const std::string quick = "--max-epochs 1 --limit-train-batches 2 --limit-val-batches 1 --limit-test-batches 1 ";
  for (const char* logger : {"csv", "none"}) {
    const auto root = std::string("--default-root-dir ") + logger + " --logger " + logger;
    const Ended e = run_program(dir, "mnist", quick + root);
    REQUIRE_MESSAGE(e.status == 0, e.err);
    CHECK(e.out.find("report: ") == std::string::npos);
    CHECK_FALSE(std::filesystem::exists(dir.path / logger / "report.html"));
    CHECK(std::filesystem::exists(dir.path / logger / "metrics.csv") == (logger == std::string("csv")));
    CHECK(std::filesystem::exists(dir.path / logger / "summary.txt"));
  }
  const Ended bare = run_program(dir, "mnist", quick + "--barebones --default-root-dir bare");
  CHECK_MESSAGE(bare.out.find("report: ") == std::string::npos, bare.err);
  const Ended wrong = run_program(dir, "mnist", "--logger cvs");
  CHECK(wrong.status == 2);
  CHECK(wrong.err == "error: --logger cvs: there is no logger \"cvs\". Give csv, tensorboard, jsonl or html, several "
                     "separated by commas, or none.\n");
}

TEST_CASE("the confusion matrix counts the test images of all processes and replicas") {
  for (const char* strategy : {"ddp", "ddp_spawn", "fsdp", "dp", "pipeline"}) {
    INFO(strategy);
    const TempDir dir;
    // Each process of the first three has its own batch; in the others one process has both.
    const bool shares = std::string(strategy).starts_with("ddp") || std::string(strategy) == "fsdp";
    const Ended e = run_program(dir, "mnist",
                                kShortTest + std::string("--devices 2 --strategy ") + strategy +
                                    " --limit-test-batches " + (shares ? "1" : "2"));
    REQUIRE_MESSAGE(e.status == 0, e.err);
    const json data = data_of_report(dir.path / "runs/mnist/report.html");
    REQUIRE(data["matrices"].size() == 1);
    const MatrixSums sums = sums_of(data["matrices"][0]);
    CHECK(sums.all == kTested);
    CHECK(sums.diagonal == std::llround(e.number("test_accuracy") * kTested));
  }
}

TEST_CASE("mistakes: the first eight misclassified images of each class, in [0, 1]") {
  Mistakes mistakes(3);
  // 12 images of class 1, black except one pixel; odd ones are predicted as 0, even ones as 1.
  const Tensor images = full({12, 1, 28, 28}, -0.5);
  std::vector<float> scores;
  for (int i = 0; i < 12; ++i) {
    images.select(0, i).select(1, i).copy_(full({1, 28}, 0.25 * i));
    const bool wrong = i % 2 == 1;
    scores.insert(scores.end(), {wrong ? 2.0F : 0.0F, 1.0F, 0.5F});
  }
  const Tensor logits = from_data(scores, {12, 3}), targets = full({12}, 1, {.dtype = kInt64});
  for (int batch = 0; batch < 2; ++batch) mistakes.add(images, logits, targets);
  const Tensor kept = mistakes.images();
  REQUIRE(kept.sizes() == Shape{24, 1, 28, 28});
  CHECK(kept.narrow(0, 0, 8).max().item<float>() == 0);
  CHECK(kept.narrow(0, 16, 8).max().item<float>() == 0);
  for (int k = 0; k < 8; ++k) {  // images 1, 3, 5, 7, 9, 11, then 1 and 3 again
    const int image = 2 * (k % 6) + 1;
    const Tensor rows = kept.select(0, 8 + k).select(0, 0).select(1, 0);  // the first column, (28)
    CHECK(argmax(rows, 0).item<std::int64_t>() == image);
    CHECK(rows.max().item<float>() == 1);
    CHECK(rows.min().item<float>() == 0);
  }
}
