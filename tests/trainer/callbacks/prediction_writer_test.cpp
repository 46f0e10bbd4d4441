// Predictions on disk, by batch and at the end.
#include <levin/core/io.h>
#include <levin/data/npy.h>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

std::vector<Tensor> predict(std::vector<CallbackPtr> callbacks) {
  manual_seed(1);
  ToyModule model;
  const auto loader = std::make_shared<data::DataLoader>(toy_points(10), data::DataLoaderOptions{.batch_size = 4});
  auto config = quiet();
  config.callbacks = std::move(callbacks);
  Trainer trainer(config);
  return trainer.predict(model, loader)[0];
}

std::size_t files_in(const std::filesystem::path& dir) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(dir), {}));
}

}  // namespace

TEST_CASE("callbacks/prediction_writer: npy files by batch, at the end, and both") {
  const TempDir folder;
  const auto out =
      predict({PredictionWriter(folder.path / "a/b"), PredictionWriter(folder.path / "whole", WriteInterval::epoch),
               PredictionWriter(folder.path / "both", WriteInterval::batch_and_epoch)});
  REQUIRE(out.size() == 3);
  CHECK(files_in(folder.path / "a/b") == 3);
  CHECK(files_in(folder.path / "whole") == 1);
  CHECK(files_in(folder.path / "both") == 4);
  for (int i = 0; i < 3; ++i) {
    const auto file = folder.path / "a/b" / ("predictions_rank0_batch00000" + std::to_string(i) + ".npy");
    CHECK(data::load_npy(file).to_vector<float>() == out[static_cast<std::size_t>(i)].to_vector<float>());
  }
  const Tensor whole = data::load_npy(folder.path / "whole/predictions_rank0.npy");
  CHECK(whole.sizes() == Shape{10, 3});
  CHECK(whole.to_vector<float>() == cat(out, 0).to_vector<float>());
}

TEST_CASE("callbacks/prediction_writer_base: a writer of one's own, and folders that cannot be made") {
  struct Own : BasePredictionWriter {
    Own() : BasePredictionWriter(WriteInterval::batch_and_epoch) {}
    std::vector<std::int64_t> rows;
    std::size_t at_end = 0;
    void write_on_batch_end(RunContext&, const Tensor& p, const Batch& b, int) override {
      CHECK(p.sizes()[0] == b.size());
      rows.push_back(p.sizes()[0]);
    }
    void write_on_epoch_end(RunContext&, const Predictions& all) override {
      REQUIRE(all.size() == 1);
      at_end = all[0].size();
    }
  };
  const auto own = std::make_shared<Own>();
  predict({own});
  CHECK(own->rows == std::vector<std::int64_t>{4, 4, 2});
  CHECK(own->at_end == 3);
  const TempDir folder;
  io::write_file(folder.path / "file", std::string("x"));
  CHECK_THROWS_AS(predict({PredictionWriter(folder.path / "file/sub")}), IoError);
  CHECK_THROWS_AS(PredictionWriter(""), UsageError);
}
