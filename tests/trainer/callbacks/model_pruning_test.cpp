// The choice of pruned weights, and that they stay zero.
#include <cmath>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

struct Pruned {
  std::vector<double> sparsity;            // after each epoch
  std::vector<std::vector<float>> weight;  // fc1's, after each epoch
  std::vector<float> first;                // fc1's before training
  bool always_masked = true;               // zeros of an epoch are zeros after each later step
  std::vector<std::vector<float>> end;
};

Pruned fit(const ModelPruningOptions& options, std::int64_t epochs = 3, const std::string& precision = "32-true") {
  manual_seed(1);
  ToyModule model;
  Pruned out;
  out.first = model.fc1.weight.to_vector<float>();
  data::DataLoader train(toy_points(16), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
  const auto pruning = std::make_shared<ModelPruning>(options);
  auto config = quiet({.max_epochs = epochs, .precision = precision});
  LambdaHooks looks;
  looks.on_train_batch_end = [&](RunContext&, const StepOutput&, const Batch&, int) {
    const Tensor* mask = pruning->masks().find("fc1.weight");
    if (!mask) return;
    const auto now = model.fc1.weight.to(kFloat32).to_vector<float>(), kept = mask->to_vector<float>();
    for (std::size_t i = 0; i < now.size(); ++i)
      if (kept[i] == 0 && now[i] != 0) out.always_masked = false;
  };
  looks.on_train_epoch_end = [&](RunContext&) {
    out.sparsity.push_back(pruning->sparsity());
    out.weight.push_back(model.fc1.weight.to(kFloat32).to_vector<float>());
  };
  config.callbacks = {pruning, LambdaCallback(looks)};
  Trainer(config).fit(model, train, val);
  out.end = values_of(model);
  return out;
}

double share_of_zeros(const std::vector<float>& v) {
  return static_cast<double>(std::count(v.begin(), v.end(), 0.0f)) / static_cast<double>(v.size());
}

}  // namespace

TEST_CASE("callbacks/model_pruning: half of what is left goes after each epoch, and stays zero") {
  const Pruned p = fit({});
  CHECK(p.sparsity == std::vector<double>{54.0 / 108, 81.0 / 108, 95.0 / 108});  // half of 27 is rounded up
  CHECK(p.always_masked);
  std::vector<float> both = p.end[0];
  both.insert(both.end(), p.end[2].begin(), p.end[2].end());
  CHECK(share_of_zeros(both) == p.sparsity.back());
  CHECK(share_of_zeros(p.end[1]) == 0);  // biases are not asked
}

TEST_CASE("callbacks/model_pruning_choice: the smallest, of one layer or of all, by number, slice or chance") {
  const auto alone = fit({.parameters_to_prune = {"fc1.weight"}, .amount = std::int64_t{10}}, 1);
  CHECK(share_of_zeros(alone.weight[0]) == 10.0 / 72);
  // Whatever is left is at least as large as what went.
  manual_seed(1);
  const auto before = fit({.amount = 0.0}, 1).weight[0];
  double largest_gone = 0, smallest_left = 1e9;
  for (std::size_t i = 0; i < before.size(); ++i) {
    auto& bound = alone.weight[0][i] == 0 ? largest_gone : smallest_left;
    const double size = std::abs(static_cast<double>(before[i]));
    bound = alone.weight[0][i] == 0 ? std::max(bound, size) : std::min(bound, size);
  }
  CHECK(largest_gone <= smallest_left);
  const auto slices =
      fit({.pruning_fn = PruningFn::ln_structured, .parameters_to_prune = {"fc1.weight"}, .amount = std::int64_t{3}}, 1)
          .weight[0];
  int empty_rows = 0;
  for (std::size_t r = 0; r < 12; ++r)
    empty_rows += std::all_of(slices.begin() + static_cast<std::ptrdiff_t>(6 * r),
                              slices.begin() + static_cast<std::ptrdiff_t>(6 * r + 6), [](float v) { return v == 0; });
  CHECK(empty_rows == 3);
  CHECK(share_of_zeros(slices) == 0.25);
  const auto columns = fit({.pruning_fn = PruningFn::random_structured,
                            .parameters_to_prune = {"fc1.weight"},
                            .amount = std::int64_t{1},
                            .pruning_dim = -1},
                           1)
                           .weight[0];
  CHECK(share_of_zeros(columns) == 1.0 / 6);
  const auto chance = fit({.pruning_fn = PruningFn::random_unstructured, .use_global_unstructured = false}, 1);
  CHECK(chance.sparsity[0] == 0.5);
  CHECK(chance.weight[0] != fit({.use_global_unstructured = false}, 1).weight[0]);
}

TEST_CASE("callbacks/model_pruning_options: when, how much by epoch, tickets, masters, and refusals") {
  const auto some = fit({.amount = [](std::int64_t epoch) { return epoch == 0 ? 0.25 : 27.0; },
                         .apply_pruning = [](std::int64_t epoch) { return epoch != 1; }});
  CHECK(some.sparsity == std::vector<double>{0.25, 0.25, 0.5});
  const auto ticket = fit({.use_lottery_ticket_hypothesis = true}, 1);
  for (std::size_t i = 0; i < ticket.first.size(); ++i)
    CHECK((ticket.weight[0][i] == 0 || ticket.weight[0][i] == ticket.first[i]));
  CHECK(fit({.make_pruning_permanent = false}, 2, "16-o2").always_masked);
  CHECK(fit({.prune_on_train_epoch_end = false}, 2).sparsity == std::vector<double>{0.5, 0.75});
  CHECK_THROWS_AS(ModelPruning({.amount = 1.5}), UsageError);
  CHECK_THROWS_AS(ModelPruning({.amount = std::int64_t{-1}}), UsageError);
  CHECK(contains(message_of<UsageError>([] { fit({.parameters_to_prune = {"fc9.weight"}}); }), "fc9.weight"));
  CHECK_THROWS_AS(fit({.pruning_fn = PruningFn::ln_structured, .pruning_dim = 2}), UsageError);
}
