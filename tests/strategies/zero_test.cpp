// zero_1 and zero_2 (sharded, ddp_sharded) under the Trainer and Fabric, compared with ddp and one process.
#include <levin/distributed/zero.h>

#include <filesystem>

#include "strategies/sharded_fits.h"

using namespace levin;
using namespace levin::test;

TEST_CASE("zero: fits have ddp's bits with two ranks, zero_1 with any number") {
  in_turn({{2,
            [] {
              for (const bool use_sgd : {true, false}) {
                const FitOptions o{.config = {.max_epochs = 3, .accumulate_grad_batches = 3}, .use_sgd = use_sgd};
                const auto ddp = fit_with("ddp", o);
                for (const char* name : {"zero_1", "zero_2", "sharded", "ddp_sharded"}) {
                  CAPTURE(name);
                  CHECK(fit_with(name, o) == ddp);
                }
              }
            }},
           {3, [] {
              const FitOptions o{.config = {.max_epochs = 3, .gradient_clip_val = 0.05}};
              CHECK(fit_with("zero_1", o) == fit_with("ddp", o));
            }}});
}

TEST_CASE("zero: fits match one process with the whole batch, clipped by the norm over all ranks") {
  in_turn({{2,
            [] {
              const FitOptions o{.config = {.max_epochs = 3, .gradient_clip_val = 0.05}, .use_sgd = true};
              const auto alone = fit_with("single", o);
              for (const char* name : {"zero_1", "zero_2"})
                CHECK(largest_difference(fit_with(name, o), alone) <= 1e-6);
            }},
           {3,
            [] {
              const FitOptions o{.config = {.max_epochs = 2, .accumulate_grad_batches = 2}, .use_sgd = true,
                                 .samples = 54};
              const auto alone = fit_with("single", o);
              for (const char* name : {"zero_1", "zero_2"})
                CHECK(largest_difference(fit_with(name, o), alone) <= 1e-6);
            }},
           {4, [] {
              const FitOptions o{
                  .config = {.max_epochs = 2, .gradient_clip_val = 0.01, .gradient_clip_algorithm = "value"},
                  .use_sgd = true};
              CHECK(largest_difference(fit_with("zero_2", o), fit_with("single", o)) <= 1e-6);
            }}});
}

TEST_CASE("zero: ranks agree on loss scaling if a gradient of one overflows") {
  pass_on(2, [] {
    struct Overflows : ToyModule {
      using ToyModule::ToyModule;
      StepOutput training_step(const Batch& b, int index) override {
        const Tensor loss = cross_entropy((*this)(b[0]), b[1]);
        return index == 1 && rank() == 1 ? loss * 1e30 : loss;
      }
    };
    const auto fit = [](const std::string& strategy) {
      manual_seed(3);
      Overflows model({.dropout = 0, .use_sgd = true});
      data::DataLoader train(toy_points(48), {.batch_size = 6, .shuffle = true, .seed = 7});
      Trainer trainer(with_strategy(strategy, {.max_epochs = 2, .precision = "16-mixed"}));
      trainer.fit(model, train);
      return std::pair(values_of(model), trainer.state().optimizer_steps.at(0));
    };
    const auto ddp = fit("ddp");
    CHECK(ddp.second == 6);
    for (const char* name : {"zero_1", "zero_2"}) CHECK(fit(name) == ddp);
  });
}

TEST_CASE("zero: two optimizers stepped by hand, one held still while the other's gradients are made") {
  pass_on(2, [] {
    struct TwoBatchesAStep : Duel {
      StepOutput training_step(const Batch& batch, int index) override {
        auto [first, second] = optimizers<2>();
        for (auto* opt : {&first, &second}) {
          const auto only = opt->toggle_model();
          if (opt == &second) {  // gradients that are thrown away
            manual_backward(loss(batch) * 5.0);
            opt->zero_grad();
          }
          manual_backward(loss(batch));
          if (opt == &second) opt->clip_gradients(0.1);
          if (opt == &first && index % 2 == 0) continue;
          opt->step();
          opt->zero_grad();
        }
        return {};
      }
    };
    const auto fit = [](const std::string& strategy) {
      manual_seed(3);
      TwoBatchesAStep model;
      data::DataLoader train(toy_points(48), {.batch_size = strategy == "single" ? 12 : 6, .shuffle = true, .seed = 7});
      Trainer(with_strategy(strategy, {.max_epochs = 3})).fit(model, train);
      return values_of(model);
    };
    const auto alone = fit("single");
    for (const char* name : {"zero_1", "zero_2"}) CHECK(largest_difference(fit(name), alone) <= 1e-6);
  });
}

TEST_CASE("zero: Fabric also shards state, and saves the full state") {
  const CommonDir dir;
  pass_on(2, [&] {
    const auto train = [&](const std::string& strategy, int steps, const std::string& load, const std::string& save) {
      manual_seed(3);
      ToyModule model({.dropout = 0});
      data::DataLoader loader(toy_points(24), {.batch_size = strategy == "single" ? 12 : 6});
      Fabric fabric({.accelerator = "cpu", .strategy = strategy});
      auto [opt] = fabric.setup(model, [&] { return optim::AdamW(model.parameters(), {.lr = 0.02}); });
      if (!load.empty()) fabric.load(dir.path / load, model);
      auto batches = fabric.setup_dataloaders(loader);
      for (int s = 0; s < steps; ++s) {
        for (const Batch& b : batches) {
          opt.zero_grad();
          fabric.backward(cross_entropy(model(b[0]), b[1]));
          fabric.clip_gradients(opt, 0.1);
          opt.step();
        }
      }
      if (!save.empty()) fabric.save(dir.path / save, model);
      return values_of(model);
    };
    for (const std::string name : {"zero_1", "zero_2"}) {
      CHECK(largest_difference(train(name, 2, "", name), train("single", 2, "", "")) <= 1e-5);
      const auto whole = train(name, 4, "", "");
      CHECK(train(name, 2, name, "") == whole);
      CHECK(largest_difference(train("single", 2, name, ""), whole) <= 1e-5);
    }
  });
}

TEST_CASE("zero: a resumed fit has the bits of an uninterrupted one") {
  const CommonDir dir;
  pass_on(3, [&] {
    for (const std::string name : {"zero_1", "zero_2"}) {
      const auto run = [&](const std::shared_ptr<SaveAlways>& policy, const std::string& ckpt) {
        manual_seed(ckpt.empty() ? 3 : 999);
        ToyModule model;
        data::DataLoader train(toy_points(30), {.batch_size = 2, .shuffle = true, .seed = ckpt.empty() ? 7u : 8u});
        auto config = with_strategy(name, {.max_epochs = 2, .accumulate_grad_batches = 2});
        if (policy) config.callbacks = {policy};
        Trainer trainer(config);
        trainer.fit(model, DataModule{.train = borrowed(train)}, ckpt);
        return values_of(model);
      };
      const auto policy = std::make_shared<SaveAlways>(dir.path / name);
      const auto whole = run(policy, {});
      CHECK(std::filesystem::exists(dir.path / name / "11"));  // 10 batches, 2 epochs
      for (const int i : {1, 2, 5, 8})
        CHECK(run(nullptr, (dir.path / name / std::to_string(i)).string()) == whole);
    }
  });
}

TEST_CASE("zero: a fit saved on 4 ranks resumes on 2 and on 1, also under other strategies") {
  const CommonDir dir;
  const auto fit = [&](const std::string& strategy, std::int64_t epochs, const std::string& save,
                       const std::string& ckpt) {
    manual_seed(3);
    ToyModule model({.dropout = 0});
    data::DataLoader train(toy_points(48), {.batch_size = strategy == "single" ? 12 : 12 / ranks(), .seed = 1});
    auto config = with_strategy(strategy, {.max_epochs = epochs});
    if (!save.empty()) config.callbacks = {std::make_shared<SaveAlways>(dir.path / save)};
    Trainer(config).fit(model, DataModule{.train = borrowed(train)}, ckpt.empty() ? "" : (dir.path / ckpt).string());
    return values_of(model);
  };
  const auto goes_on = [&] {
    const auto whole = fit("single", 3, "", "");
    for (const std::string from : {"zero_1", "zero_2"})
      for (const char* to : {"zero_1", "zero_2", "ddp", "single"}) {
        CAPTURE(to);
        CHECK(largest_difference(fit(to, 3, "", from + "/4"), whole) <= 1e-5);  // 4 batches, then an epoch's end
      }
  };
  in_turn({{4,
            [&] {
              fit("zero_1", 1, "zero_1", "");
              fit("zero_2", 1, "zero_2", "");
            }},
           {2, goes_on}});
}

TEST_CASE("zero: a backbone that is unfrozen during a fit gets its shard of the state then") {
  pass_on(2, [] {
    struct Transfer : LevinModule {
      nn::Linear& backbone = add<nn::Linear>("backbone", 6, 8);
      nn::Linear& head = add<nn::Linear>("head", 8, 3);
      StepOutput training_step(const Batch& b, int) override {
        return cross_entropy(head(relu(backbone(b[0]))), b[1]);
      }
      Optimizers configure_optimizers() override {
        std::vector<Parameter> given;
        for (const Parameter& p : parameters())
          if (p.name.starts_with("head.")) given.push_back(p);
        return optim::Adam(given, {.lr = 0.01});
      }
    };
    const auto fit = [](const std::string& strategy) {
      manual_seed(1);
      Transfer model;
      const auto before = values_of(model.backbone);
      data::DataLoader train(toy_points(24), {.batch_size = 3});
      auto config = with_strategy(strategy, {.max_epochs = 3, .accumulate_grad_batches = 2});
      config.callbacks = {BackboneFinetuning({.unfreeze_backbone_at_epoch = 1})};
      Trainer(config).fit(model, train);
      CHECK(differs(before, values_of(model.backbone), 1e-3));
      return values_of(model);
    };
    const auto ddp = fit("ddp");
    for (const char* name : {"zero_1", "zero_2", "fsdp"}) {
      CAPTURE(name);
      CHECK(fit(name) == ddp);
    }
  });
}

TEST_CASE("zero: GradientNormMonitor logs the norms of whole gradients") {
  pass_on(2, [] {
    const auto norms = [](const std::string& strategy) {
      manual_seed(3);
      ToyModule model({.dropout = 0, .use_sgd = true});
      const std::int64_t each = strategy == "single" ? 12 : 6;
      data::DataLoader train(toy_points(24), {.batch_size = each, .seed = 1});
      auto config = with_strategy(strategy, {.max_epochs = 1, .log_every_n_steps = 1});
      config.callbacks = {GradientNormMonitor({.per_parameter = true})};
      Trainer trainer(config);
      trainer.fit(model, train);
      std::vector<std::vector<float>> values(1);
      for (const char* name : {"grad_2.0_norm_total", "grad_2.0_norm/fc1.weight", "grad_2.0_norm/fc2.bias"})
        values[0].push_back(static_cast<float>(trainer.metrics().find(name).value()));
      return values;
    };
    for (const char* name : {"zero_1", "zero_2", "fsdp"})
      CHECK(largest_difference(norms(name), norms("single")) <= 1e-5);
  });
}

TEST_CASE("zero: master weights are refused") {
  const auto refused = [](const std::string& name) {
    return [name] {
      ToyModule model;
      data::DataLoader train(toy_points(8), {.batch_size = 4});
      Trainer trainer(with_strategy(name, {.max_epochs = 1, .precision = "16-o2"}));
      CHECK(contains(message_of<UsageError>([&] { trainer.fit(model, train); }),
                     "--precision 16-o2 steps on its own copy of the weights, which --strategy " + name));
    };
  };
  in_turn({{2, refused("zero_1")}, {2, refused("zero_2")}});
}
