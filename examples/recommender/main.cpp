// Learns tastes from what people clicked, by embedding bags: ./run recommender --help
// Covington et al., "Deep neural networks for YouTube recommendations", 2016.
#include <levin/levin.h>

#include <fmt/format.h>

#include "first_steps.h"

using namespace levin;

namespace {

struct Options {
  std::int64_t users = 100000, held_out = 2000, items = 300, history = 30, width = 16, batch_size = 256;
  double lr = 5e-3;
  std::string record{};
  TrainerConfig trainer{.max_epochs = 20,
                        .num_sanity_val_steps = 0,
                        .default_root_dir = "runs/recommender",
                        .logger = "csv,html",
                        .seed = 1};
};

bool parse(int argc, char** argv, Options& o) {
  CommandLine line("Predicts from the items that people clicked whether they like another one.");
  line.add("users", o.users, "People to learn from", 1);
  line.add("held-out", o.held_out, "Other people to test on", 1);
  line.add("items", o.items, "Items", 1);
  line.add("history", o.history, "Largest number of items that a person clicked", 2);
  line.add("width", o.width, "Features of an item", 1);
  line.add("batch-size", o.batch_size, "People per batch", 1);
  line.add("lr", o.lr, "Learning rate");
  FirstSteps::add_option(line, o.record);
  line.add_trainer(o.trainer);
  return line.parse(argc, argv);
}

/// People with tastes of eight dimensions who clicked items by taste. Each sample is a history, padded with 0, an item
/// from 1 on, and whether that person likes it. `best` are the true probabilities.
struct People {
  Tensor history, item, likes, best;  // (N, history), (N), (N) of 0 and 1, (N)

  People(const Options& o, const Tensor& items, std::int64_t count) {  // items (items, 8)
    const Tensor tastes = randn({count, 8});
    const Tensor clicked = multinomial(softmax(matmul(tastes, items.t()), 1), o.history);  // (N, history) from 0 on
    const Tensor lengths = randint(o.history / 2, o.history + 1, {count, 1});
    history = where(arange(o.history) < lengths, clicked + 1, 0);
    item = randint(1, o.items + 1, {count});
    best = sigmoid(2 * (tastes * items(item - 1)).sum(1));
    likes = bernoulli(best);
  }
};

struct Recommender : LevinModule {
  const Options o;
  explicit Recommender(const Options& options) : o(options) {}
  nn::EmbeddingBag& clicked =
      add<nn::EmbeddingBag>("clicked", o.items + 1, o.width, {.mode = nn::BagMode::mean, .padding_idx = 0});
  nn::Sequential& taste =
      add<nn::Sequential>("taste", nn::Linear(o.width, 2 * o.width), nn::ReLU(), nn::Linear(2 * o.width, o.width));
  nn::Embedding& items = add<nn::Embedding>("items", o.items + 1, o.width);
  metrics::AUROC& auc = add_metric<metrics::AUROC>("auc");

  Tensor score(const Tensor& history, const Tensor& item) { return (taste(clicked(history)) * items(item)).sum(1); }
  StepOutput training_step(const Batch& batch, int) override {
    auto [history, item, likes] = batch.as<3>();
    const auto loss = binary_cross_entropy_with_logits(score(history, item), likes);
    log("train_loss", loss, {.prog_bar = true});
    return loss;
  }
  void validation_step(const Batch& batch, int) override {
    auto [history, item, likes] = batch.as<3>();
    auc.update(sigmoid(score(history, item)), likes.to(kInt64));
    log("val_auc", auc, {.prog_bar = true});
  }
  Optimizers configure_optimizers() override { return optim::Adam(parameters(), {.lr = o.lr}); }
};

int run(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) return 0;
  manual_seed(static_cast<std::uint64_t>(o.trainer.seed.value_or(1)));
  const Tensor items = randn({o.items, 8});
  const People known(o, items, o.users), others(o, items, o.held_out);
  data::DataLoader train_loader(data::TensorDataset({known.history, known.item, known.likes}),
                                {.batch_size = o.batch_size, .shuffle = true, .drop_last = true});
  data::DataLoader val_loader(data::TensorDataset({others.history, others.item, others.likes}), {.batch_size = 500});

  Recommender model(o);
  o.trainer.callbacks = {FirstSteps(o.record)};
  Trainer trainer(o.trainer);
  trainer.fit(model, train_loader, val_loader);
  const double auc = trainer.validate(model, val_loader)[0]["val_auc"];
  metrics::AUROC best;
  best.update(others.best, others.likes.to(kInt64));
  if (trainer.is_global_zero())
    fmt::print("result: auc={:.4f} best_possible={:.4f} users={} items={}\n", auc, best.compute().item<double>(),
               o.users, o.items);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
