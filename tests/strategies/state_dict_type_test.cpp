// --fsdp-state-dict-type sharded: the Trainer's and Fabric's checkpoints of which each rank writes its shard.
#include <levin/trainer/checkpoint/checkpoint.h>
#include <levin/trainer/checkpoint/load_from_checkpoint.h>
#include <levin/trainer/checkpoint/sharded_checkpoint.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <set>

#include "strategies/sharded_fits.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::test;

namespace {

namespace fs = std::filesystem;
using Values = std::vector<std::vector<float>>;

/// Its parameters are most of what a checkpoint has; the first layer is a unit of its own.
struct Wide : LevinModule {
  nn::Linear& up = add<nn::Linear>("up", 6, 20'000);
  nn::Linear& down = add<nn::Linear>("down", 20'000, 3);
  Tensor forward(const Tensor& x) override { return down(relu(up(x))); }
  StepOutput training_step(const Batch& b, int) override { return cross_entropy((*this)(b[0]), b[1]); }
  Optimizers configure_optimizers() override { return optim::AdamW(parameters(), {.lr = 1e-3}); }
};

TrainerConfig sharded(const std::string& strategy, TrainerConfig c = {}) {
  c.fsdp.state_dict_type = "sharded";
  return with_strategy(strategy, c);}

std::set<std::string> names_in(const fs::path& dir) {
  std::set<std::string> out;
  for (const auto& e : fs::directory_iterator(dir)) out.insert(e.path().filename().string());
  return out;
}

/// Takes the first tensor of the model out of a part, and makes the checksums fit.
void lose_a_tensor(const fs::path& folder, const std::string& part) {
  const auto crc = [](const std::string& text) { return io::crc32(std::as_bytes(std::span(text))); };
  StateDict kept;
  bool lost = false;
  for (const auto& [name, t] : interop::load_safetensors(folder / part).tensors)
    if (lost || !name.starts_with("model."))
      kept.set(name, t);
    else
      lost = true;
  interop::save_safetensors(folder / part, kept);
  auto root = nlohmann::json::parse(io::read_text(folder / "state.json"));
  const auto bytes = io::read_file(folder / part);
  root["files"][part] = {{"bytes", bytes.size()}, {"crc32", io::crc32(bytes)}};
  root["crc32"] = crc(nlohmann::json({root["files"], root["values"]}).dump());
  io::write_file(folder / "state.json", root.dump(1));
}

/// A fit of this module; another seed where it goes on, so that all must come from the checkpoint.
template <class Module>
Values fit(const TrainerConfig& config, const fs::path& ckpt, std::int64_t each = 2) {
  manual_seed(ckpt.empty() ? 3 : 999);
  Module model;
  data::DataLoader train(toy_points(24), {.batch_size = each, .shuffle = true, .seed = ckpt.empty() ? 7u : 8u});
  Trainer trainer(config);
  trainer.fit(model, DataModule{.train = borrowed(train)}, ckpt.string());
  return values_of(model);
}

}  // namespace

TEST_CASE("sharded: a fit saved and resumed by 2 ranks has the bits of an uninterrupted one, also within a window") {
  const CommonDir dir;
  pass_on(2, [&] {
    for (const char* strategy : {"fsdp", "zero_1", "zero_2"}) {
      const fs::path own = dir.path / strategy;
      auto config = sharded(strategy, {.max_epochs = 2, .accumulate_grad_batches = 2});
      config.callbacks = {std::make_shared<SaveAlways>(own)};
      const auto whole = fit<ToyModule>(config, {});
      config.callbacks.clear();
      for (const char* i : {"0", "1", "2", "5", "7"}) CHECK(fit<ToyModule>(config, own / i) == whole);
      for (const auto& e : fs::directory_iterator(own))
        CHECK(names_in(e.path()) ==
              std::set<std::string>{"part-0-of-2.safetensors", "part-1-of-2.safetensors", "state.json",
                                    "state.safetensors"});
    }
    auto config = sharded("fsdp", {.max_epochs = 2});
    config.callbacks = {std::make_shared<SaveAlways>(dir.path / "duel")};
    const auto whole = fit<Duel>(config, {});
    config.callbacks.clear();
    CHECK(fit<Duel>(config, dir.path / "duel/2") == whole);
  });
}

TEST_CASE("sharded: a fit saved by 4 ranks, each a quarter, resumes on 2 and on 1, under any strategy") {
  const CommonDir dir;
  const auto run = [&](TrainerConfig config, std::int64_t epochs, const std::string& save, const std::string& ckpt) {
    manual_seed(3);
    ToyModule model({.dropout = 0});
    data::DataLoader train(toy_points(48), {.batch_size = config.strategy == "single" ? 12 : 12 / ranks(), .seed = 1});
    config.max_epochs = epochs;
    if (!save.empty()) config.callbacks = {std::make_shared<SaveAlways>(dir.path / save)};
    Trainer trainer(config);
    trainer.fit(model, DataModule{.train = borrowed(train)}, ckpt.empty() ? "" : (dir.path / ckpt).string());
    return values_of(model);
  };
  in_turn({{4,
            [&] {
              run(sharded("fsdp"), 1, "fsdp", "");
              run(sharded("zero_2"), 1, "zero_2", "");
              auto config = sharded("fsdp", {.max_epochs = 1, .limit_train_batches = 2});
              config.callbacks = {std::make_shared<SaveAlways>(dir.path / "wide")};
              fit<Wide>(config, {});
            }},
           {2, [&] {
              const auto whole = run(with_strategy("single"), 3, "", "");
              for (const char* from : {"fsdp/4", "zero_2/4"}) {
                for (const char* to : {"zero_1", "ddp", "single"})
                  CHECK(largest_difference(run(with_strategy(to), 3, "", from), whole) <= 1e-5);
                CHECK(largest_difference(run(sharded("fsdp"), 3, "", from), whole) <= 1e-5);
              }
              run(with_strategy("ddp"), 1, "whole", "");
              CHECK(largest_difference(run(sharded("fsdp"), 3, "", "whole/4"), whole) <= 1e-5);
            }}});
  if (distributed::is_launched()) return;
  const auto of_rank = [](int r) { return "part-" + std::to_string(r) + "-of-4.safetensors"; };
  const double quarter = 200'003 * 3 * sizeof(float) / 4.0;  // weights and Adam's two averages
  for (int r = 0; r < 4; ++r) {
    const auto bytes = static_cast<double>(fs::file_size(dir.path / "wide/2" / of_rank(r)));
    CHECK(bytes == approx(quarter, {.relative = 0.01}));
  }
  CHECK(fs::file_size(dir.path / "wide/2/state.safetensors") < 2000);
  // Also without the Trainer.
  Wide wide;
  distributed::FullyShardedDataParallel fsdp(wide, distributed::make_process_group("single"));
  optim::AdamW adam(fsdp.parameters());
  load_sharded_checkpoint(dir.path / "wide/2", fsdp, adam);
  const Checkpoint saved = read_checkpoint(dir.path / "wide/2");
  const StateDict state = fsdp.optimizer_state(adam);
  CHECK(fsdp.state_dict().at("up.weight").to_vector<float>() == saved.model.at("up.weight").to_vector<float>());
  CHECK(state.at("state.down.bias.exp_avg").to_vector<float>() ==
        saved.tensors.at("optimizer.state.down.bias.exp_avg").to_vector<float>());
}

TEST_CASE("sharded: a part that is missing, damaged or of another checkpoint is an error that names it") {
  const CommonDir dir;
  pass_on(2, [&] {
    auto config = sharded("fsdp", {.max_epochs = 1});
    config.callbacks = {std::make_shared<SaveAlways>(dir.path)};
    fit<ToyModule>(config, {});
  });
  if (distributed::is_launched()) return;
  const auto error = [&](const auto& harm) {
    const TempDir copy;
    fs::copy(dir.path / "6", copy.path / "c", fs::copy_options::recursive);
    harm(copy.path / "c");
    const auto said = message_of<IoError>([&] { load_from_checkpoint<ToyModule>(copy.path / "c"); });
    CHECK(message_of<IoError>([&] { fit<ToyModule>(with_strategy("single", {.max_epochs = 1}), copy.path / "c"); }) ==
          said);
    return said;
  };
  const char *first = "part-0-of-2.safetensors", *second = "part-1-of-2.safetensors";
  CHECK(error([](const fs::path&) {}) == "nothing was thrown");
  CHECK(contains(error([&](const fs::path& c) { fs::remove(c / second); }), "part-1-of-2.safetensors: No such file"));
  CHECK(contains(error([&](const fs::path& c) { fs::resize_file(c / second, fs::file_size(c / second) - 1); }),
                 "is damaged: part-1-of-2.safetensors ("));
  CHECK(contains(error([&](const fs::path& c) { fs::rename(c / second, c / "part-1-of-4.safetensors"); }),
                 "is damaged: part-1-of-4.safetensors is not one of its 2 parts"));
  CHECK(contains(error([&](const fs::path& c) { lose_a_tensor(c, second); }), "is damaged: elements of \"model.fc"));
  CHECK(contains(error([&](const fs::path& c) {
                   fs::copy_file(c / first, c / second, fs::copy_options::overwrite_existing);
                 }),
                 "is damaged: part-1-of-2.safetensors ("));
}

TEST_CASE("sharded: where rank 1 cannot write, all ranks end with its error, and the former checkpoint is whole") {
  struct FillsUp : Callback {
    void on_train_epoch_start(RunContext& run) override {
      io::fail_writes_after(run.state.epoch == 1 && rank() == 1 ? 100 : -1);
    }
  };
  const CommonDir dir;
  const auto train = [&](bool go_on, const std::string& ckpt) {
    const auto policy = std::make_shared<ModelCheckpoint>(
        ModelCheckpointOptions{.dirpath = dir.path / (go_on ? "on" : "off"), .continue_on_error = go_on});
    auto config = sharded("fsdp", {.max_epochs = 3, .async_checkpoints = true});
    config.callbacks = {policy};
    if (ckpt.empty()) config.callbacks.push_back(std::make_shared<FillsUp>());
    const auto said = message_of<IoError>([&] { fit<ToyModule>(config, ckpt); });
    io::fail_writes_after(-1);
    return std::pair(said, fs::path(policy->best_model_path()).filename().string());
  };
  in_turn({{2,
            [&] {
              const auto [said, best] = train(false, {});
              CHECK(best == "epoch=0-step=6");
              io::write_file(dir.path / ("said" + std::to_string(rank())), said);
            }},
           {2, [&] {
              CHECK(train(true, {}) == std::pair<std::string, std::string>("nothing was thrown", "epoch=2-step=18"));
              CHECK(train(false, (dir.path / "off/last").string()).first == "nothing was thrown");
            }}});
  if (distributed::is_launched()) return;
  const std::string said = io::read_text(dir.path / "said0");
  CHECK_MESSAGE(contains(said, "epoch=1-step=12 was not saved; the previous checkpoint is intact. Rank 1: "), said);
  CHECK(contains(said, "part-1-of-2.safetensors: No space left on device."));
  CHECK(io::read_text(dir.path / "said1") == said);
  CHECK(read_checkpoint(dir.path / "off/last").values.get<std::int64_t>("loop/epoch") == 2);
}

TEST_CASE("sharded: the best and the newest stay, weights alone and after a fit; evaluations and Fabric read them") {
  struct Seen : Callback {
    bool none = true;
    bool on_save_weights(RunContext&, StateDict& weights) override {
      none = none && weights.empty();
      return false;
    }
  };
  struct Replaces : Callback {
    bool on_save_weights(RunContext&, StateDict&) override { return true; }
  };
  const CommonDir dir;
  pass_on(2, [&] {
    manual_seed(3);
    ToyModule model;
    data::DataLoader train(toy_points(24), {.batch_size = 6}), val(toy_points(12), {.batch_size = 6});
    const auto seen = std::make_shared<Seen>();
    auto config = sharded("fsdp", {.max_epochs = 3, .async_checkpoints = true});
    config.callbacks = {std::make_shared<ModelCheckpoint>(
                            ModelCheckpointOptions{.dirpath = dir.path / "kept", .monitor = "val_loss"}),
                        seen};
    Trainer trainer(config);
    trainer.fit(model, train, val);
    CHECK(seen->none);  // nothing was gathered
    const auto values = values_of(model);
    trainer.save_checkpoint(dir.path / "after");
    trainer.save_checkpoint(dir.path / "weights", /*weights_only=*/true);
    for (const char* name : {"after", "weights", "kept/last"}) {
      CHECK(fs::exists(dir.path / name / "part-1-of-2.safetensors"));
      CHECK(values_of(*load_from_checkpoint<ToyModule>(dir.path / name)) == values);
      CHECK(read_checkpoint(dir.path / name).weights_only() == (std::string(name) == "weights"));
    }
    CHECK(read_checkpoint(dir.path / "weights").tensors.empty());
    ToyModule other;
    const DataModule data{.val = borrowed(val)};
    Trainer reader(with_strategy("ddp"));
    CHECK(reader.validate(other, data, (dir.path / "after").string())[0].at("val_loss") ==
          approx(trainer.validate(model, data)[0].at("val_loss"), {.relative = 1e-6}));
    for (const char* strategy : {"fsdp", "zero_1"}) {
      const auto begin = [&](nn::Module& net) {
        auto fabric = std::make_unique<Fabric>(
            FabricConfig{.accelerator = "cpu", .strategy = strategy, .fsdp = {.state_dict_type = "sharded"}});
        auto [opt] = fabric->setup(net, [&] { return optim::AdamW(net.parameters(), {.lr = 0.02}); });
        return std::pair(std::move(fabric), opt);
      };
      const auto step = [](auto& with, nn::Module& net) {
        with.second.zero_grad();
        with.first->backward(net(ones({2, 6})).sum());
        with.second.step();
      };
      nn::Linear a(6, 3), b(6, 3);
      auto first = begin(a), second = begin(b);
      step(first, a);
      first.first->save(dir.path / "fabric", a);
      CHECK(fs::exists(dir.path / "fabric/part-1-of-2.safetensors"));
      CHECK(interop::load_safetensors(dir.path / "fabric/state.safetensors").tensors.empty());
      second.first->load(dir.path / "fabric", b);
      step(first, a);
      step(second, b);
      first.first->strategy().finish(a);
      second.first->strategy().finish(b);
      CHECK(values_of(a) == values_of(b));
    }
    config.callbacks = {std::make_shared<Replaces>(), std::make_shared<SaveAlways>(dir.path / "replaced")};
    CHECK(contains(message_of<UsageError>([&] { fit<ToyModule>(config, {}); }), "a callback replaces its weights"));
  });
  if (distributed::is_launched()) return;
  CHECK(names_in(dir.path / "kept").size() <= 4);  // best, last and the folders of these
}

TEST_CASE("sharded: strategies whose ranks have no parts refuse it") {
  const auto refusal = [](const std::string& strategy, const std::string& type) {
    TrainerConfig c{.strategy = strategy, .fsdp = {.state_dict_type = type}};
    return message_of<UsageError>([&] { check_config(c); });
  };
  for (const char* strategy : {"single", "ddp", "bagua", "horovod", "pipeline", "dp"})
    CHECK(refusal(strategy, "sharded") == "--fsdp-state-dict-type sharded: with --strategy " + std::string(strategy) +
                                              " ranks have no shards. Use --strategy fsdp, zero_1 or zero_2, or full.");
  CHECK(contains(refusal("auto", "sharded"), "with --strategy single ranks"));
  CHECK(refusal("fsdp", "local") == "--fsdp-state-dict-type local: choose full or sharded.");
  for (const char* strategy : {"fsdp", "zero_3", "fully_sharded", "zero_1", "zero_2", "sharded", "ddp_sharded"})
    CHECK(refusal(strategy, "sharded") == "nothing was thrown");
}
