// The order of all hooks, word by word. "C." is the callback's hook, a name alone the module's.
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
  void on_validation_model_eval() override { note("on_validation_model_eval"); eval(); }
  void on_test_model_eval() override { note("on_test_model_eval"); eval(); }
  void on_predict_model_eval() override { note("on_predict_model_eval"); eval(); }
  void optimizer_zero_grad(optim::Optimizer& o) override {
    note("optimizer_zero_grad");
    ToyModule::optimizer_zero_grad(o);
  }
  void backward(const Tensor& loss) override { note("backward"); ToyModule::backward(loss); }
  void optimizer_step(optim::Optimizer& o) override { note("optimizer_step"); ToyModule::optimizer_step(o); }
  void configure_gradient_clipping(optim::Optimizer& o, std::optional<double> v, const std::string& a) override {
    note("configure_gradient_clipping");
    ToyModule::configure_gradient_clipping(o, v, a);
  }
  void lr_scheduler_step(Optimizers& o, std::optional<double> m) override {
    note("lr_scheduler_step");
    ToyModule::lr_scheduler_step(o, m);
  }
  StepOutput training_step(const Batch& b, int i) override {
    note("training_step");
    return ToyModule::training_step(b, i);
  }
  void validation_step(const Batch& b, int i) override { note("validation_step"); ToyModule::validation_step(b, i); }
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

std::string train_batch(bool first, bool last) {
  std::string s = both("on_train_batch_start") + "training_step ";
  if (first) s += both("on_before_zero_grad") + "optimizer_zero_grad ";
  s += both("on_before_backward") + "backward " + both("on_after_backward");
  if (last) s += both("on_before_optimizer_step") + "configure_gradient_clipping optimizer_step lr_scheduler_step ";
  return s + both("on_train_batch_end");
}

std::string evaluation(const std::string& fn, const std::string& step, int batches) {
  std::string s = "on_" + fn + "_model_eval " + both("on_" + fn + "_start") + both("on_" + fn + "_epoch_start");
  for (int i = 0; i < batches; ++i)
    s += both("on_" + fn + "_batch_start") + step + " " + both("on_" + fn + "_batch_end");
  s += both("on_" + fn + "_epoch_end") + both("on_" + fn + "_end");
  return fn == "predict" ? s : s + "on_" + fn + "_model_train ";
}

const std::string kSave = "C.state C.on_save_checkpoint on_save_checkpoint ";

void check_same(const Calls& got, const Calls& expected) {
  for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    INFO("call ", i);
    REQUIRE(got[i] == expected[i]);
  }
  CHECK(got.size() == expected.size());
}

}  // namespace

TEST_CASE("the hooks of fit, with accumulation, validation, a checkpoint, and its resume") {
  manual_seed(1);
  const TempDir folder;
  Calls calls;
  const auto run = [&](std::int64_t epochs, const std::string& ckpt) {
    RecordedModule model(calls);
    data::DataLoader train(toy_points(12), {.batch_size = 4, .seed = 1});
    data::DataLoader val(toy_points(8), {.batch_size = 4});
    auto config = quiet({.max_epochs = epochs, .accumulate_grad_batches = 2});
    config.callbacks = {Recorder(calls), Monitor(calls),
                        ModelCheckpoint({.dirpath = folder.path, .every_n_epochs = 1})};
    Trainer trainer(config);
    trainer.fit(model, train, val, ckpt);
    return trainer.checkpoint_path("last").string();
  };
  const std::string epoch = both("on_train_epoch_start") + train_batch(true, false) + train_batch(false, true) +
                            train_batch(true, true) + "on_validation_model_zero_grad " +
                            evaluation("validation", "validation_step", 2) + both("on_train_epoch_end") +
                            "M.on_train_epoch_end " + kSave;
  const std::string end = both("on_train_end") + both("on_fit_end") + both("teardown");
  const std::string last = run(2, "");
  check_same(calls, words("prepare_data " + both("setup") + "configure_optimizers " + both("on_fit_start") +
                          "C.on_sanity_check_start " + evaluation("validation", "validation_step", 2) +
                          "C.on_sanity_check_end " + both("on_train_start") + epoch + epoch + end));
  calls.clear();
  run(3, last);
  check_same(calls, words("prepare_data " + both("setup") + both("on_load_checkpoint") + "C.load_state " +
                          "configure_optimizers " + both("on_fit_start") + both("on_train_start") + epoch + end));
}

TEST_CASE("the hooks of validate, test and predict") {
  manual_seed(1);
  Calls calls;
  RecordedModule model(calls);
  auto loader = std::make_shared<data::DataLoader>(toy_points(8), data::DataLoaderOptions{.batch_size = 4});
  const DataModule data{.val = loader, .test = loader, .predict = loader};
  auto config = quiet();
  config.callbacks = {Recorder(calls)};
  Trainer trainer(config);
  const std::string begin = "prepare_data " + both("setup"), end = both("teardown");
  trainer.validate(model, data);
  check_same(calls, words(begin + evaluation("validation", "validation_step", 2) + end));
  calls.clear();
  trainer.test(model, data);
  check_same(calls, words(begin + evaluation("test", "test_step", 2) + end));
  calls.clear();
  CHECK(trainer.predict(model, data).size() == 2);
  check_same(calls, words(begin + evaluation("predict", "predict_step", 2) + end));
}

TEST_CASE("an exception passes the callbacks, and teardown still runs") {
  manual_seed(1);
  Calls calls;
  RecordedModule model(calls);
  struct Thrower : Callback {
    void on_before_backward(RunContext&, const Tensor&) override { throw std::runtime_error("boom"); }
  };
  data::DataLoader train(toy_points(8), {.batch_size = 4});
  auto config = quiet({.max_epochs = 1});
  config.callbacks = {Recorder(calls), Thrower()};
  Trainer trainer(config);
  CHECK_THROWS_WITH(trainer.fit(model, train), "boom");
  REQUIRE(calls.size() > 3);
  CHECK(Calls(calls.end() - 3, calls.end()) == Calls{"C.on_exception", "C.teardown", "teardown"});
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
