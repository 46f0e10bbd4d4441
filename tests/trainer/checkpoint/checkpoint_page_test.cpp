// docs/checkpoints.md shows a program; here it is compiled and run.
#include <levin/trainer/checkpoint/checkpoint.h>

#include <fmt/format.h>

#include "support/paths.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

// clang-format off
namespace checkpoint_page {

// begin of the page's program
struct Lit : LevinModule {
  explicit Lit(const StateMap& h)
      : hidden(add<nn::Linear>("hidden", 6, h.get<std::int64_t>("width"))),
        out(add<nn::Linear>("out", h.get<std::int64_t>("width"), 3)) {
    save_hyperparameters(h);                                       // saved, printed, used again when loading
  }
  nn::Linear& hidden;
  nn::Linear& out;
  Tensor forward(const Tensor& x) override { return out(relu(hidden(x))); }
  StepOutput training_step(const Batch& b, int) override { return cross_entropy((*this)(b[0]), b[1]); }
  void validation_step(const Batch& b, int) override { log("val_acc", accuracy((*this)(b[0]), b[1])); }
  Optimizers configure_optimizers() override { return optim::AdamW(parameters(), {.lr = 1e-2}); }
};

double train(data::DataLoader& points, data::DataLoader& val, const std::string& dir, TrainerConfig config) {
  const auto keep = std::make_shared<ModelCheckpoint>(
      CheckpointPlan().every({.epochs = 10}).best(2, "val_acc", Mode::max).last().on_exception(),
      ModelCheckpointOptions{.dirpath = dir, .filename = "{epoch:02d}-{val_acc:.2f}"});
  fmt::print("{}", keep->explain());
  config.callbacks = {keep};
  Lit model(StateMap{{"width", 32}});
  Trainer(config).fit(model, points, val);                         // interrupted, by Ctrl-C for instance

  config.max_epochs = 25;
  Trainer trainer(config);
  trainer.fit(model, points, val, "last");                         // resumes where the first one stopped
  trainer.save_checkpoint(dir + "/weights", /*weights_only=*/true);

  auto best = load_from_checkpoint<Lit>(dir + "/best");            // constructed from its hyper-parameters
  auto part = load_from_checkpoint<Lit>(dir + "/weights", {.strict = false});
  const Batch batch = *points.begin();
  return accuracy((*best)(batch[0]), batch[1]).item<double>();
}
// end of the page's program

}  // namespace checkpoint_page
// clang-format on

TEST_CASE("the program on the page about checkpoints compiles and works as described") {
  const std::string page = io::read_text(source_dir() / "docs/checkpoints.md");
  const std::string shown = program_of_page("docs/checkpoints.md");
  CHECK(shown.size() > 1000);
  CHECK(shown == marked_program("tests/trainer/checkpoint/checkpoint_page_test.cpp"));
  CHECK(contains(page, "the version of the format (" + std::to_string(kCheckpointVersion) + ")"));

  const TempDir f;
  manual_seed(1);
  data::DataLoader points(toy_points(64), {.batch_size = 64, .shuffle = true}),
      val(toy_points(32, 9), {.batch_size = 32});
  CHECK(checkpoint_page::train(points, val, f.path, quiet({.max_epochs = 15})) > 0.8);
  std::size_t folders = 0;
  for (const auto& e : std::filesystem::directory_iterator(f.path)) folders += e.is_symlink() ? 0 : 1;
  CHECK(folders >= 4);  // epochs 9 and 19, the last, the weights; the two best may be among them
  CHECK(read_checkpoint(f.path / "last").values.get<std::int64_t>("loop/epoch") == 24);
  CHECK(read_checkpoint(f.path / "weights").weights_only());
}
