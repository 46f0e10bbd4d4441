// ddp with communication hooks and averaging of weights. A test case starts itself again once per rank.
#include <levin/distributed/process_group.h>

#include "strategies/ranks.h"

using namespace levin;
using namespace levin::test;

namespace {

TrainerConfig local_sgd(std::int64_t period, std::int64_t start, TrainerConfig c = {}) {
  c.ddp.comm_hook = "post_local_sgd";
  c.ddp.model_averaging_period = period;
  c.ddp.start_local_sgd_iter = start;
  c.ddp.post_local_gradient_allreduce = false;
  return with_strategy("ddp", std::move(c));
}

bool same_in_group(distributed::ProcessGroup& group, const nn::Module& module) {
  std::vector<float> own;
  for (const auto& values : values_of(module)) own.insert(own.end(), values.begin(), values.end());
  const auto n = static_cast<std::int64_t>(own.size());
  const Tensor all = empty({group.size(), n});
  group.all_gather(all, from_data(own, {n})).wait();
  bool same = true;
  for (int r = 0; r < group.size(); ++r) same = same && all.select(0, r).to_vector<float>() == own;
  return same;
}

/// Records after each batch whether all ranks have equal weights: "=" or "/".
struct Agreement : Callback {
  explicit Agreement(std::string& t) : tape(&t) {}
  std::string* tape;
  void on_train_batch_end(RunContext& run, const StepOutput&, const Batch&, int) override {
    *tape += same_in_group(*run.strategy->process_group(), run.module) ? '=' : '/';
  }
};

struct Fitted {
  std::vector<std::vector<float>> weights;
  std::string tape;
};

Fitted fitted(TrainerConfig config, ToyOptions toy = {.dropout = 0, .use_sgd = true}) {
  manual_seed(3);
  ToyModule model(toy);
  if (rank() > 0) model.fc1.weight.detach().zero_();  // rank 0's values are broadcast
  data::DataLoader train(toy_points(72), {.batch_size = 4, .shuffle = true, .seed = 7});
  Fitted out;
  config.callbacks.push_back(Agreement(out.tape));
  Trainer trainer(std::move(config));
  trainer.fit(model, train);
  out.weights = values_of(model);
  CHECK(same_on_all(trainer.fabric().strategy(), out.weights));  // a fit returns one average
  return out;
}

}  // namespace

TEST_CASE("ddp with post_local_sgd: period 1 matches ddp up to rounding") {
  pass_on(3, [] {
    const TrainerConfig c{.max_epochs = 2};
    const Fitted ddp = fitted(with_strategy("ddp", c)), local = fitted(local_sgd(1, 0, c));
    CHECK(largest_difference(local.weights, ddp.weights) <= 1e-6);
    CHECK(largest_difference(local.weights, values_of(ToyModule())) > 1e-2);
    CHECK(local.tape == std::string(12, '='));
  });
}

TEST_CASE("ddp with post_local_sgd: ranks differ within a period and agree after it") {
  pass_on(2, [] {
    const TrainerConfig c{.max_epochs = 2};
    const Fitted local = fitted(local_sgd(4, 3, c)), ddp = fitted(with_strategy("ddp", c));
    CHECK(local.tape == "====///=///=///=//");
    CHECK(ddp.tape == std::string(18, '='));
    const double far = largest_difference(local.weights, ddp.weights);
    CHECK(far > 1e-4);
    CHECK(far < 0.3);  // weights of about 1: it learns the same
    // Accumulation: a step is a window.
    TrainerConfig windows = c;
    windows.accumulate_grad_batches = 3;
    CHECK(fitted(local_sgd(2, 1, windows)).tape == "========///===///=");
  });
}

TEST_CASE("ddp with post_local_sgd: within a machine gradients are averaged, so that ranks of one machine agree") {
  pass_on(2, [] {
    TrainerConfig c = local_sgd(4, 1, {.max_epochs = 1});
    c.ddp.post_local_gradient_allreduce = true;
    const Fitted together = fitted(c), ddp = fitted(with_strategy("ddp", {.max_epochs = 1}));
    CHECK(together.tape == std::string(9, '='));
    CHECK(largest_difference(together.weights, ddp.weights) <= 1e-6);
  });
}

TEST_CASE("ddp with post_local_sgd: a fit resumed within a period has the bits of an uninterrupted one") {
  const CommonDir dir;
  pass_on(3, [&] {
    const auto run = [&](const std::shared_ptr<SaveAlways>& policy, const std::string& ckpt) {
      manual_seed(ckpt.empty() ? 3 : 999);
      ToyModule model({.use_sgd = true});
      data::DataLoader train(toy_points(48), {.batch_size = 2, .shuffle = true, .seed = ckpt.empty() ? 7u : 8u});
      TrainerConfig config = local_sgd(3, 2, {.max_epochs = 2});
      std::string tape;
      config.callbacks.push_back(Agreement(tape));
      if (policy) config.callbacks.push_back(policy);
      Trainer(config).fit(model, DataModule{.train = borrowed(train)}, ckpt);
      return std::pair(values_of(model), tape);
    };
    const auto whole = run(std::make_shared<SaveAlways>(dir.path), {});
    CHECK(whole.second == "===//=//=//=//=/");
    for (const std::size_t i : {0, 1, 3, 4, 5, 10}) {
      CAPTURE(i);
      const auto rest = run(nullptr, (dir.path / std::to_string(i)).string());
      CHECK(rest.first == whole.first);
      CHECK(whole.second.ends_with(rest.second));
    }
  });
}

TEST_CASE("ddp with post_local_sgd: each of several optimizers counts its own steps, in Fabric too") {
  pass_on(2, [] {
    const auto tapes = [](bool together) {
      manual_seed(3);
      ToyModule model({.dropout = 0});
      Fabric fabric({.accelerator = "cpu",
                     .strategy = "ddp",
                     .ddp = {.comm_hook = "post_local_sgd",
                             .model_averaging_period = 2,
                             .start_local_sgd_iter = 1,
                             .post_local_gradient_allreduce = false}});
      fabric.setup_module(model);
      const auto sgd = [](const nn::Linear& layer) { return optim::SGD(layer.parameters(), {.lr = 0.1}); };
      std::vector<OptimizerHandle> opts;
      if (together) {
        for (const auto& o : fabric.setup_optimizers<2>(Optimizers(sgd(model.fc1)).add(sgd(model.fc2))))
          opts.push_back(o);
      } else {
        opts.push_back(fabric.setup_optimizers(sgd(model.fc1))[0]);
        opts.push_back(fabric.setup_optimizers(sgd(model.fc2))[0]);
      }
      std::string of_first, of_second;
      for (int i = 0; i < 8; ++i) {
        const Batch b = toy_points(6, static_cast<std::uint64_t>(10 * i + rank())).get_batch(
            std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}, Generator(0));
        for (const auto& o : opts) o.zero_grad();
        fabric.backward(cross_entropy(model(b[0]), b[1]));
        opts[0].step();
        if (i % 2 == 1) opts[1].step();  // half as often
        of_first += same_on_all(fabric.strategy(), values_of(model.fc1)) ? '=' : '/';
        of_second += same_on_all(fabric.strategy(), values_of(model.fc2)) ? '=' : '/';
      }
      CHECK(of_first == "==/=/=/=");
      CHECK(of_second == "=====//=");  // steps at 1, 3, 5, 7: gradients averaged, weights averaged, its own, averaged
    };
    tapes(true);
    tapes(false);
  });
}

TEST_CASE("ddp comm hooks by flag: 16-bit hooks keep replicas bit-equal and close to the plain average") {
  pass_on(2, [] {
    const auto with_hook = [](const std::string& hook) {
      TrainerConfig c{.max_epochs = 2};
      c.ddp.comm_hook = hook;
      const Fitted f = fitted(with_strategy("ddp", c));
      CHECK(f.tape == std::string(18, '='));
      return f.weights;};
    const auto plain = with_hook("none");
    CHECK(plain == fitted(with_strategy("ddp", {.max_epochs = 2})).weights);
    const double half = largest_difference(with_hook("fp16_compress"), plain);
    const double brain = largest_difference(with_hook("bf16_compress"), plain);
    // 18 steps of rate 0.1 and momentum 0.9; each is off by 2^-11 or 2^-8 of a gradient of about 1.
    CHECK(half > 0);
    CHECK(half < 5e-3);
    CHECK(brain > half);
    CHECK(brain < 4e-2);
  });
}

TEST_CASE("ddp comm hooks by flag: incompatible options are refused") {
  const auto refusal = [](TrainerConfig c, const std::string& strategy = "ddp") {
    c.strategy = strategy;
    return message_of<UsageError>([&] { check_config(c); });
  };
  CHECK(refusal({.ddp = {.comm_hook = "onebit"}}) ==
        "--ddp-comm-hook onebit: choose none, fp16_compress, bf16_compress or post_local_sgd.");
  CHECK(contains(refusal({.ddp = {.comm_hook = "post_local_sgd"}}), "--model-averaging-period 0: give 1 or more"));
  CHECK(contains(refusal({.ddp = {.model_averaging_period = 4}}), "--model-averaging-period 4: give 1 or more"));
  CHECK(contains(refusal({.ddp = {.start_local_sgd_iter = 5}}), "--start-local-sgd-iter 5"));
  CHECK(contains(refusal({.ddp = {.comm_hook = "fp16_compress"}}, "horovod"),
                 "--ddp-comm-hook fp16_compress: --strategy horovod has its own way"));
  CHECK(refusal({.ddp = {.comm_hook = "post_local_sgd", .model_averaging_period = 4, .start_local_sgd_iter = 9}}) ==
        "nothing was thrown");
  CHECK(refusal({.ddp = {.comm_hook = "fp16_compress"}}, "single") == "nothing was thrown");
}
