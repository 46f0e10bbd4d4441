// The exact order of all hooks. "C." marks a callback's hook, a bare name the module's.
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

using Calls = std::vector<std::string>;

struct Recorder : Callback {
  explicit Recorder(Calls& c) : calls(&c) {}
  Calls* calls;
  void note(const char* name) { calls->push_back(std::string("C.") + name); }
#define RECORD(name) \
  void name(RunContext&) override { note(#name); }
  RECORD(setup)
  RECORD(teardown) RECORD(on_fit_start) RECORD(on_fit_end) RECORD(on_sanity_check_start) RECORD(on_sanity_check_end)
      RECORD(on_train_start) RECORD(on_train_end) RECORD(on_train_epoch_start) RECORD(on_train_epoch_end)
          RECORD(on_before_zero_grad) RECORD(on_after_backward) RECORD(on_before_optimizer_step)
              RECORD(on_validation_start) RECORD(on_validation_end) RECORD(on_validation_epoch_start)
                  RECORD(on_validation_epoch_end) RECORD(on_test_start) RECORD(on_test_end) RECORD(on_test_epoch_start)
                      RECORD(on_test_epoch_end) RECORD(on_predict_start) RECORD(on_predict_end)
                          RECORD(on_predict_epoch_start) RECORD(on_predict_epoch_end)
#undef RECORD
#define RECORD_BATCH(name) \
  void name(RunContext&, const Batch&, int) override { note(#name); }
                              RECORD_BATCH(on_train_batch_start) RECORD_BATCH(on_validation_batch_start)
                                  RECORD_BATCH(on_validation_batch_end) RECORD_BATCH(on_test_batch_start)
                                      RECORD_BATCH(on_test_batch_end) RECORD_BATCH(on_predict_batch_start)
                                          RECORD_BATCH(on_predict_batch_end)
#undef RECORD_BATCH
                                              void on_train_batch_end(RunContext&, const StepOutput&, const Batch&,
                                                                      int) override { note("on_train_batch_end"); }
  void on_before_backward(RunContext&, const Tensor&) override { note("on_before_backward"); }
  void on_save_checkpoint(RunContext&, StateMap&) override { note("on_save_checkpoint"); }
  void on_load_checkpoint(RunContext&, const StateMap&) override { note("on_load_checkpoint"); }
  void on_exception(RunContext&, const std::exception&) override { note("on_exception"); }
  StateMap state() const override {
    calls->push_back("C.state");
    StateMap s;
    s.set("kept", std::int64_t{1});
    return s;
  }
  void load_state(const StateMap&) override { note("load_state"); }
};

/// Reads metrics, so its epoch end comes behind the module's.
struct Monitor : Callback {
  explicit Monitor(Calls& c) : calls(&c) {}
  Calls* calls;
  bool is_monitoring() const override { return true; }
  void on_train_epoch_end(RunContext&) override { calls->push_back("M.on_train_epoch_end"); }
};

struct RecordedModule : ToyModule {
  explicit RecordedModule(Calls& c) : calls(&c) {}
  Calls* calls;
  void note(const char* name) { calls->push_back(name); }
#define RECORD(name) \
  void name() override { note(#name); }
  RECORD(prepare_data)
  RECORD(on_fit_start)
  RECORD(on_fit_end) RECORD(on_train_start) RECORD(on_train_end) RECORD(on_train_epoch_start) RECORD(on_train_epoch_end)
      RECORD(on_after_backward) RECORD(on_validation_model_zero_grad) RECORD(on_validation_model_train)
          RECORD(on_test_model_train) RECORD(on_validation_start) RECORD(on_validation_end)
              RECORD(on_validation_epoch_start) RECORD(on_validation_epoch_end) RECORD(on_test_start)
                  RECORD(on_test_end) RECORD(on_test_epoch_start) RECORD(on_test_epoch_end) RECORD(on_predict_start)
                      RECORD(on_predict_end) RECORD(on_predict_epoch_start) RECORD(on_predict_epoch_end)
#undef RECORD
#define RECORD_BATCH(name) \
  void name(const Batch&, int) override { note(#name); }
                          RECORD_BATCH(on_validation_batch_start) RECORD_BATCH(on_validation_batch_end)
                              RECORD_BATCH(on_test_batch_start) RECORD_BATCH(on_test_batch_end)
                                  RECORD_BATCH(on_predict_batch_start) RECORD_BATCH(on_predict_batch_end)
#undef RECORD_BATCH
                                      bool on_train_batch_start(const Batch&, int) override {
    note("on_train_batch_start");
    return true;
  }
  void setup(Stage) override { note("setup"); }
  void teardown(Stage) override { note("teardown"); }
  void on_train_batch_end(const StepOutput&, const Batch&, int) override { note("on_train_batch_end"); }
  void on_before_backward(const Tensor&) override { note("on_before_backward"); }
  void on_before_zero_grad(optim::Optimizer&) override { note("on_before_zero_grad"); }
  void on_before_optimizer_step(optim::Optimizer&) override { note("on_before_optimizer_step"); }
  void on_save_checkpoint(StateMap&) override { note("on_save_checkpoint"); }
  void on_load_checkpoint(const StateMap&) override { note("on_load_checkpoint"); }
  std::vector<CallbackPtr> configure_callbacks() override {
    note("configure_callbacks");
    return {};
  }
  void configure_model() override { note("configure_model"); }
  void zero_grad(bool set_to_none) override {
    note("zero_grad");
    ToyModule::zero_grad(set_to_none);
  }
  LoaderPtr loader(const char* name, std::int64_t samples) {
    note(name);
    return std::make_shared<data::DataLoader>(toy_points(samples), data::DataLoaderOptions{.batch_size = 4, .seed = 1});
  }
  LoaderPtr train_dataloader() override { return loader("train_dataloader", 12); }
  Loaders val_dataloader() override { return loader("val_dataloader", 8); }
  Loaders test_dataloader() override { return loader("test_dataloader", 8); }
  Loaders predict_dataloader() override { return loader("predict_dataloader", 8); }
  Batch on_before_batch_transfer(Batch batch) override {
    note("on_before_batch_transfer");
    return batch;
  }
  Batch transfer_batch_to_device(Batch batch, Device device) override {
    note("transfer_batch_to_device");
    return ToyModule::transfer_batch_to_device(std::move(batch), device);
  }
  Batch on_after_batch_transfer(Batch batch) override {
    note("on_after_batch_transfer");
    return batch;
  }
  Tensor forward(const Tensor& x) override {
    note("forward");
    return ToyModule::forward(x);
  }
  void on_validation_model_eval() override { note("on_validation_model_eval"); eval(); }
  void on_test_model_eval() override { note("on_test_model_eval"); eval(); }
  void on_predict_model_eval() override { note("on_predict_model_eval"); eval(); }
  void optimizer_zero_grad(optim::Optimizer& o) override {
    note("optimizer_zero_grad");
    ToyModule::optimizer_zero_grad(o);
  }
  void backward(const Tensor& loss) override { note("backward"); ToyModule::backward(loss); }
  void optimizer_step(optim::Optimizer& o, const Tensor& found_inf) override {
    note("optimizer_step");
    ToyModule::optimizer_step(o, found_inf);
  }
  void configure_gradient_clipping(optim::Optimizer& o, std::optional<double> v, const std::string& a,
                                   Strategy& s) override {
    note("configure_gradient_clipping");
    ToyModule::configure_gradient_clipping(o, v, a, s);
  }
  void lr_scheduler_step(const SchedulerHandle& s, std::optional<double> m) override {
    note("lr_scheduler_step");
    ToyModule::lr_scheduler_step(s, m);
  }
  virtual StepOutput step(const Batch& b, int i) { return ToyModule::training_step(b, i); }
  StepOutput training_step(const Batch& b, int i) override {
    StepOutput out = step(b, i);
    note("training_step");
    return out;
  }
  void validation_step(const Batch& b, int i) override { ToyModule::validation_step(b, i); note("validation_step"); }
  void test_step(const Batch&, int) override { note("test_step"); }
  Tensor predict_step(const Batch& b, int) override { note("predict_step"); return b[0]; }
  Optimizers configure_optimizers() override { note("configure_optimizers"); return ToyModule::configure_optimizers(); }
};

// Names of one line stand for calls in their order.
Calls words(const std::string& text) {
  Calls out(1);
  for (const char c : text) {
    if (c != ' ' && c != '\n') out.back() += c;
    else if (!out.back().empty()) out.emplace_back();
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

std::string both(const std::string& name) { return "C." + name + " " + name + " "; }

const std::string kTransfer = "on_before_batch_transfer transfer_batch_to_device on_after_batch_transfer ";

std::string train_batch(bool first, bool last) {
  std::string s = kTransfer + both("on_train_batch_start") + "forward training_step ";
  if (first) s += both("on_before_zero_grad") + "optimizer_zero_grad ";
  s += both("on_before_backward") + "backward " + both("on_after_backward");
  if (last) s += both("on_before_optimizer_step") + "configure_gradient_clipping optimizer_step lr_scheduler_step ";
  return s + both("on_train_batch_end");
}

std::string evaluation(const std::string& fn, const std::string& step, int batches) {
  std::string s = "on_" + fn + "_model_eval " + both("on_" + fn + "_start") + both("on_" + fn + "_epoch_start");
  for (int i = 0; i < batches; ++i)
    s += kTransfer + both("on_" + fn + "_batch_start") + step + " " + both("on_" + fn + "_batch_end");
  s += both("on_" + fn + "_epoch_end") + both("on_" + fn + "_end");
  return fn == "predict" ? s : s + "on_" + fn + "_model_train ";
}

const std::string kValidation = evaluation("validation", "forward validation_step", 2);
const std::string kBegin = "configure_callbacks prepare_data " + both("setup") + "configure_model ";
const std::string kSave = "C.state C.on_save_checkpoint on_save_checkpoint ";

void check_same(const Calls& got, const Calls& expected) {
  for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    INFO("call ", i);
    REQUIRE(got[i] == expected[i]);
  }
  CHECK(got.size() == expected.size());
}

/// Its data comes from the module, so that the moments at which it is asked for are seen.
void fit(RecordedModule& model, TrainerConfig config, const std::string& ckpt = {}) {
  manual_seed(1);
  Trainer(quiet(std::move(config))).fit(model, DataModule{}, ckpt);
}

}  // namespace

TEST_CASE("hooks/order_fit: with accumulation, validation, a checkpoint, and its resume") {
  const TempDir folder;
  Calls calls;
  const auto run = [&](std::int64_t epochs, const std::string& ckpt) {
    RecordedModule model(calls);
    fit(model,
        {.max_epochs = epochs,
         .accumulate_grad_batches = 2,
         .callbacks = {Recorder(calls), Monitor(calls),
                       ModelCheckpoint({.dirpath = folder.path, .every_n_epochs = 1})}},
        ckpt);
  };
  const std::string epoch = both("on_train_epoch_start") + train_batch(true, false) + train_batch(false, true) +
                            train_batch(true, true) + "on_validation_model_zero_grad " + kValidation +
                            both("on_train_epoch_end") + "M.on_train_epoch_end " + kSave;
  const std::string end = both("on_train_end") + both("on_fit_end") + both("teardown");
  run(2, "");
  check_same(calls, words(kBegin + "configure_optimizers " + both("on_fit_start") + "zero_grad val_dataloader " +
                          "C.on_sanity_check_start " + kValidation + "C.on_sanity_check_end train_dataloader " +
                          both("on_train_start") + epoch + epoch + end));
  calls.clear();
  run(3, std::filesystem::canonical(folder.path / "last").string());
  check_same(calls, words(kBegin + "on_load_checkpoint C.on_load_checkpoint C.load_state configure_optimizers " +
                          both("on_fit_start") + "zero_grad train_dataloader val_dataloader " +
                          both("on_train_start") + epoch + end));
}

TEST_CASE("the hooks of manual optimization") {
  struct Manual : RecordedModule {
    explicit Manual(Calls& c) : RecordedModule(c) { automatic_optimization = false; }
    StepOutput step(const Batch& b, int) override {
      auto [opt] = optimizers();
      opt.step([&] {
        opt.zero_grad();
        const Tensor loss = cross_entropy((*this)(b[0]), b[1]);
        manual_backward(loss);
        return loss;
      });
      return {};
    }
  };
  Calls calls;
  Manual model(calls);
  fit(model, {.max_epochs = 1, .limit_train_batches = 2, .limit_val_batches = 0, .callbacks = {Recorder(calls)}});
  const std::string batch = kTransfer + both("on_train_batch_start") + "forward " + both("on_before_backward") +
                            "backward " + both("on_after_backward") + both("on_before_optimizer_step") +
                            "training_step " + both("on_train_batch_end");
  check_same(calls, words(kBegin + "configure_optimizers " + both("on_fit_start") +
                          "zero_grad train_dataloader " + both("on_train_start") +
                          both("on_train_epoch_start") + batch + batch + both("on_train_epoch_end") +
                          both("on_train_end") + both("on_fit_end") + both("teardown")));
}

TEST_CASE("the hooks of validate, test and predict") {
  manual_seed(1);
  Calls calls;
  RecordedModule model(calls);
  auto config = quiet();
  config.callbacks = {Recorder(calls)};
  Trainer trainer(config);
  const std::string begin = kBegin + "zero_grad ", end = both("teardown");
  trainer.validate(model);
  check_same(calls, words(begin + "val_dataloader " + kValidation + end));
  calls.clear();
  trainer.test(model);
  check_same(calls, words(begin + "test_dataloader " + evaluation("test", "test_step", 2) + end));
  calls.clear();
  CHECK(trainer.predict(model)[0].size() == 2);
  check_same(calls, words(begin + "predict_dataloader " + evaluation("predict", "predict_step", 2) + end));
}

TEST_CASE("datamodule/hook_order") {
  struct Data : LevinDataModule {
    explicit Data(Calls& c) : calls(&c) {}
    Calls* calls;
    void note(const char* name) { calls->push_back(std::string("D.") + name); }
    LoaderPtr loader(const char* name) {
      note(name);
      return std::make_shared<data::DataLoader>(toy_points(4), data::DataLoaderOptions{.batch_size = 4, .seed = 1});
    }
    void prepare_data() override { note("prepare_data"); }
    void setup(Stage stage) override { note(stage == Stage::fit ? "setup(fit)" : "setup(other)"); }
    LoaderPtr train_dataloader() override { return loader("train_dataloader"); }
    Loaders val_dataloader() override { return loader("val_dataloader"); }
    Loaders predict_dataloader() override { return loader("predict_dataloader"); }
    void teardown(Stage) override { note("teardown"); }
    void on_exception(const std::exception&) override { note("on_exception"); }
    Batch on_before_batch_transfer(Batch batch) override {
      note("on_before_batch_transfer");
      return batch;
    }
    Batch transfer_batch_to_device(Batch batch, Device device) override {
      note("transfer_batch_to_device");
      return batch.to(device);
    }
    Batch on_after_batch_transfer(Batch batch) override {
      note("on_after_batch_transfer");
      return batch;
    }
  };
  // The module's hooks of the same names stay unused, but for prepare_data and setup.
  Calls calls;
  Data data(calls);
  RecordedModule model(calls);
  manual_seed(1);
  Trainer trainer(quiet({.max_epochs = 1, .callbacks = {Recorder(calls)}}));
  trainer.fit(model, data);
  Calls of_data;
  for (const auto& call : calls)
    if (call.starts_with("D.") || call == "prepare_data" || call == "setup" || call == "C.setup" ||
        call == "C.teardown" || call == "teardown" || call == "training_step" || call.ends_with("_transfer"))
      of_data.push_back(call);
  const std::string transfer = "D.on_before_batch_transfer D.transfer_batch_to_device D.on_after_batch_transfer ";
  check_same(of_data, words("D.prepare_data prepare_data D.setup(fit) C.setup setup D.val_dataloader " + transfer +
                            "D.train_dataloader " + transfer + "training_step " + transfer +
                            "D.teardown C.teardown teardown"));
  calls.clear();
  CHECK(trainer.predict(model, data)[0].size() == 1);
  CHECK(std::count(calls.begin(), calls.end(), "D.predict_dataloader") == 1);
  CHECK(std::count(calls.begin(), calls.end(), "D.setup(other)") == 1);
  CHECK(contains(message_of<UsageError>([&] { trainer.test(model, data); }), "no loader"));
}

TEST_CASE("an exception passes the callbacks, the data module and the loggers, and teardown still runs") {
  struct Thrower : Callback {
    void on_before_backward(RunContext&, const Tensor&) override { throw std::runtime_error("boom"); }
  };
  struct Sink : Logger {
    explicit Sink(Calls& c) : calls(&c) {}
    Calls* calls;
    void log_metrics(const LogRecord&) override {}
    void resume(std::int64_t) override {}
    void save() override {}
    void finalize(RunStatus status) override {
      constexpr const char* kNames[] = {"L.success", "L.interrupted", "L.failed"};
      calls->push_back(kNames[static_cast<int>(status)]);
    }
    std::string log_dir() const override { return {}; }
  };
  struct Data : LevinDataModule {
    explicit Data(Calls& c) : calls(&c) {}
    Calls* calls;
    LoaderPtr train_dataloader() override {
      return std::make_shared<data::DataLoader>(toy_points(8), data::DataLoaderOptions{.batch_size = 4});
    }
    void on_exception(const std::exception& e) override { calls->push_back(std::string("D.") + e.what()); }
    void teardown(Stage) override { calls->push_back("D.teardown"); }
  };
  Calls calls;
  RecordedModule model(calls);
  Data data(calls);
  auto config = quiet({.max_epochs = 1, .callbacks = {Recorder(calls), Thrower()}});
  config.loggers = {std::make_shared<Sink>(calls)};
  Trainer trainer(config);
  CHECK_THROWS_WITH(trainer.fit(model, data), "boom");
  REQUIRE(calls.size() > 6);
  CHECK(Calls(calls.end() - 6, calls.end()) ==
        words("C.on_exception D.boom L.failed D.teardown C.teardown teardown"));
  CHECK(trainer.status() == RunStatus::failed);
  calls.clear();
  config.callbacks = {Recorder(calls)};
  Trainer good(config);
  good.fit(model, data);
  CHECK(Calls(calls.end() - 2, calls.end()) == words("teardown L.success"));
  CHECK(good.status() == RunStatus::success);
}

TEST_CASE("a module leaves out the rest of an epoch, and brings callbacks of its own") {
  struct Skipper : ToyModule {
    int steps = 0, ends = 0;
    bool on_train_batch_start(const Batch&, int index) override { return current_epoch() != 1 || index < 1; }
    StepOutput training_step(const Batch& b, int i) override {
      ++steps;
      return ToyModule::training_step(b, i);
    }
    void on_train_epoch_end() override { ++ends; }
    std::vector<CallbackPtr> configure_callbacks() override { return {mine}; }
    struct Counter : Callback {
      int starts = 0;
      void on_train_start(RunContext&) override { ++starts; }
    };
    std::shared_ptr<Counter> mine = std::make_shared<Counter>();
  } model;
  const auto replaced = std::make_shared<Skipper::Counter>();
  data::DataLoader train(toy_points(12), {.batch_size = 4});
  auto config = quiet({.max_epochs = 3});
  config.callbacks = {replaced};
  Trainer trainer(config);
  trainer.fit(model, train);
  CHECK(model.steps == 3 + 1 + 3);
  CHECK(model.ends == 3);
  CHECK(trainer.current_epoch() == 3);
  CHECK(model.mine->starts == 1);
  CHECK(replaced->starts == 0);
}

TEST_CASE("training_step still sees the gradients of the step before, and validation keeps every submodule's mode") {
  manual_seed(1);
  struct Watch : ToyModule {
    int with_grad = 0, steps = 0;
    StepOutput training_step(const Batch& b, int i) override {
      ++steps;
      with_grad += fc1.parameters()[0].grad().defined() ? 1 : 0;
      CHECK_FALSE(drop.is_training());
      CHECK(fc1.is_training());
      return ToyModule::training_step(b, i);
    }
    void validation_step(const Batch& b, int i) override {
      CHECK_FALSE(fc1.is_training());
      CHECK_FALSE(grad_enabled());
      CHECK(inference_enabled());
      ToyModule::validation_step(b, i);
    }
  } model;
  model.drop.eval();
  data::DataLoader train(toy_points(8), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
  Trainer(quiet({.max_epochs = 2})).fit(model, train, val);
  CHECK(model.steps == 4);
  CHECK(model.with_grad == 2);  // validation releases them between the epochs
}
