// Profilers: their counts, that the phases add up, and that an operation's work matches its contract.
#include "support/paths.h"
#include "support/text/pattern.h"
#include "trainer/toy.h"

#include <levin/kernels/conv.h>
#include <levin/kernels/work.h>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>

using namespace levin;
using namespace levin::test;

namespace {

/// A clock that stands still unless a test moves it.
struct Hands {
  double now = 0;
  ProfilerClock clock() {
    return [this] { return now; };
  }
};

/// Spends known times: a forward 3 s, a backward 5 s, an optimizer's step 2 s, a validation step 1 s.
struct Timed : ToyModule {
  explicit Timed(Hands& hands_) : hands(hands_) {}
  StepOutput training_step(const Batch& b, int i) override {
    hands.now += 3;
    return ToyModule::training_step(b, i);
  }
  void backward(const Tensor& loss) override {
    hands.now += 5;
    ToyModule::backward(loss);
  }
  void optimizer_step(optim::Optimizer& o, const Tensor& found_inf) override {
    hands.now += 2;
    ToyModule::optimizer_step(o, found_inf);
  }
  void validation_step(const Batch& b, int i) override {
    hands.now += 1;
    ToyModule::validation_step(b, i);
  }
  Hands& hands;
};

struct Slow : Callback {
  explicit Slow(Hands& hands_) : hands(hands_) {}
  void on_train_batch_end(RunContext&, const StepOutput&, const Batch&, int) override { hands.now += 0.5; }
  Hands& hands;
};

std::FILE* nowhere() {
  static std::FILE* const file = std::fopen("/dev/null", "w");
  return file;
}

std::string source(const std::string& file) { return io::read_text(source_dir() / file); }

/// Runs 5 batches and a validation of 2.
void fit(LevinModule& module, TrainerConfig config) {
  data::DataLoader train(toy_points(20), {.batch_size = 4}), val(toy_points(8), {.batch_size = 4});
  config.max_epochs = 1;
  config.num_sanity_val_steps = 0;
  Trainer(quiet(std::move(config))).fit(module, train, val);
}

}  // namespace

TEST_CASE("profiler/sums_to_wall") {
  Hands hands;
  Timed model(hands);
  const auto profiler =
      std::make_shared<SimpleProfiler>(SimpleProfilerOptions{.out = nowhere(), .clock = hands.clock()});
  TrainerConfig config{.profiler = profiler};
  config.callbacks = {Slow(hands)};
  fit(model, config);
  auto phases = profiler->phases();
  CHECK(phases[Phase::forward] == 15);
  CHECK(phases[Phase::backward] == 25);
  CHECK(phases[Phase::optimizer] == 10);
  CHECK(phases[Phase::evaluation] == 2);
  CHECK(phases[Phase::hooks] == 2.5);
  double sum = 0;
  for (const auto& [phase, seconds] : phases) sum += seconds;
  CHECK(sum == profiler->wall());
  CHECK(profiler->wall() == 54.5);
  CHECK(profiler->wall() - phases[Phase::loop] >= 0.95 * profiler->wall());
}

TEST_CASE("everything inside a validation counts as evaluation") {
  struct Watcher : Callback {
    explicit Watcher(Hands& hands_) : hands(hands_) {}
    void on_validation_batch_end(RunContext&, const Batch&, int) override { hands.now += 4; }
    Hands& hands;
  };
  Hands hands;
  Timed model(hands);
  const auto profiler =
      std::make_shared<SimpleProfiler>(SimpleProfilerOptions{.out = nowhere(), .clock = hands.clock()});
  TrainerConfig config{.profiler = profiler};
  config.callbacks = {Watcher(hands)};
  fit(model, config);
  auto phases = profiler->phases();
  CHECK(phases[Phase::evaluation] == 10);
  CHECK(phases[Phase::hooks] == 0);
  CHECK(profiler->records().at("[Callback]Watcher.on_validation_batch_end").total == 8);
}

TEST_CASE("the simple profiler has a row of every hook and phase") {
  Hands hands;
  Timed model(hands);
  const auto profiler =
      std::make_shared<SimpleProfiler>(SimpleProfilerOptions{.out = nowhere(), .clock = hands.clock()});
  TrainerConfig config{.accumulate_grad_batches = 2, .profiler = profiler};
  config.callbacks = {Slow(hands)};
  fit(model, config);
  const auto& r = profiler->records();
  const auto calls = [&](const char* name) { return r.contains(name) ? r.at(name).calls : -1; };
  CHECK(calls("run_fit") == 1);
  CHECK(calls("run_training_epoch") == 1);
  CHECK(calls("run_training_batch") == 5);
  CHECK(calls("[EpochLoop].train_dataloader_next") == 5);
  CHECK(calls("[Strategy]single.batch_to_device") == 7);
  CHECK(calls("[LevinModule]Timed.training_step") == 5);
  CHECK(calls("[Strategy]single.backward") == 5);
  CHECK(calls("[Strategy]single.optimizer_step") == 3);
  CHECK(calls("[LevinModule]Timed.optimizer_zero_grad") == 3);
  CHECK(calls("[LevinModule]Timed.on_train_epoch_start") == 1);
  CHECK(calls("[Callback]Slow.on_train_batch_end") == 5);
  CHECK(calls("[Callback]Slow.setup") == 1);
  CHECK(calls("run_validation_epoch") == 1);
  CHECK(calls("[Callback]Slow.on_validation_batch_end") == 2);
  for (const std::string hook : {"on_train_epoch_end", "on_train_start", "on_validation_epoch_end"})
    for (const std::string who : {"[Callback]Slow.", "[LevinModule]Timed."})
      CHECK_MESSAGE(calls((who + hook).c_str()) == 1, who << hook);
  CHECK(calls("[LevinModule]Timed.on_train_batch_start") == 5);
  CHECK(calls("[LevinModule]Timed.on_before_zero_grad") == 3);
  CHECK(calls("[LevinModule]Timed.on_before_optimizer_step") == 3);
  for (const std::string hook :
       {"on_validation_model_zero_grad", "on_validation_model_eval", "on_validation_model_train"})
    CHECK_MESSAGE(calls(("[LevinModule]Timed." + hook).c_str()) == 1, hook);
  for (const auto& [name, record] : r) CHECK_MESSAGE(!name.ends_with(".hook"), name);
  CHECK(r.at("run_training_batch").mean() == r.at("run_training_batch").total / 5);
  CHECK(r.at("run_training_batch").own == 0);
  const std::string text = profiler->summary();
  CHECK(contains(text, "Profile of fit: 50.500 s"));
  const Pattern row(R"(\[Strategy\]single\.backward +5000\.0000 +5 +25\.0000 +49\.50 +49\.50\n)");
  CHECK_MESSAGE(row.found_in(text), text);
}

TEST_CASE("every hook that is declared has a name for profilers") {
  const std::string names = source("trainer/include/levin/trainer/hooks.h");
  const std::string text = source("trainer/include/levin/trainer/module.h");
  static const Pattern hook(R"(virtual (?:void|bool) (on_\w+)\((?:const|optim|StateMap|\)))");
  int hooks = 0;
  for (const auto& m : hook.find_all(text)) {
    ++hooks;
    const std::string& name = m[1];
    const bool listed =
        contains(names, "LEVIN_CALLBACK_HOOK(" + name + ",") || contains(names, "LEVIN_MODULE_HOOK(" + name + ")");
    CHECK_MESSAGE(listed, name);
  }
  CHECK(hooks > 30);
}

TEST_CASE("a profile survives an exception, and goes to a file where one is named") {
  struct Thrower : Callback {
    void on_after_backward(RunContext&) override { throw std::runtime_error("boom"); }
  };
  const TempDir f;
  Hands hands;
  Timed model(hands);
  const auto profiler =
      std::make_shared<SimpleProfiler>(SimpleProfilerOptions{.filename = "profile.txt", .clock = hands.clock()});
  TrainerConfig config{.default_root_dir = f.path, .profiler = profiler};
  config.callbacks = {Thrower()};
  CHECK_THROWS_AS(fit(model, config), std::runtime_error);
  CHECK(current_profiler() == nullptr);
  CHECK(profiler->wall() == 8);
  CHECK(contains(io::read_text(f.path / "profile.txt"), "Profile of fit: 8.000 s"));
}

TEST_CASE("profilers by name") {
  for (const char* name : {"simple", "advanced", "trace", "nvtx"}) CHECK(make_profiler(name) != nullptr);
  CHECK(make_profiler("") == nullptr);
  CHECK(message_of<UsageError>([] { Trainer(TrainerConfig{.profiler = "slow"}); }) ==
        "--profiler slow: there are simple, advanced, trace and nvtx. Use one of them.");
  ToyModule model;
  fit(model, {.profiler = std::make_shared<PassThroughProfiler>()});
  fit(model, {.profiler = "nvtx"});
  CHECK(model.losses.size() == 10);
}

TEST_CASE("a profiler changes no weight") {
  const auto weights = [](const ProfilerChoice& profiler) {
    manual_seed(4);
    ToyModule model;
    fit(model, {.profiler = profiler});
    return values_of(model);
  };
  const auto plain = weights({});
  CHECK(weights(std::make_shared<AdvancedProfiler>(
            AdvancedProfilerOptions{.table = {.out = nowhere()}, .roof = [](Device, DType) {
                                      return Roof{1, 1};
                                    }})) == plain);
}

TEST_CASE("the advanced profiler counts operations, with the work of their contracts") {
  const auto profiler = std::make_shared<AdvancedProfiler>(
      AdvancedProfilerOptions{.table = {.out = nowhere()}, .roof = [](Device, DType) {
                                return Roof{1e9, 1e10};
                              }});
  ProfilerGuard guard(profiler.get(), Stage::fit, ".");
  const Tensor a = ones({8, 16}), b = ones({16, 4}), x = ones({10}), y = ones({1});
  for (int i = 0; i < 3; ++i) static_cast<void>(matmul(a, b));
  static_cast<void>(x + y);
  const auto all = profiler->operations();
  const auto& product = all.at({"matmul", DType::f32, DeviceType::cpu});
  CHECK(product.calls == 3);
  CHECK(product.flops == 3 * 2 * 8 * 16 * 4);
  CHECK(product.bytes == 3 * 4 * (8 * 16 + 16 * 4 + 8 * 4));
  CHECK(product.seconds >= 0);
  const auto& sum = all.at({"add", DType::f32, DeviceType::cpu});
  CHECK(sum.calls == 1);
  CHECK(sum.bytes == 4 * (10 + 10 + 1));
  CHECK(sum.flops == 10);
  CHECK(AdvancedProfiler::Operation{.seconds = 2, .bytes = 1e9, .flops = 5e9}.share({1e9, 1e10}) == 0.5);
  CHECK(AdvancedProfiler::Operation{.seconds = 2, .bytes = 1e9, .flops = 1.5e10}.share({1e9, 1e10}) == 0.75);
  const std::string text = profiler->summary();
  CHECK_MESSAGE(Pattern(R"(matmul +float32 +3 )").found_in(text), text);
  CHECK(contains(text, "roof of cpu float32: 1.0 GB/s by a copy, 10.0 GFLOP/s by a matrix product"));
}

TEST_CASE("nothing is observed after an advanced profile, nor between two") {
  AdvancedProfiler profiler({.table = {.out = nowhere()}, .roof = [](Device, DType) { return Roof{1, 1}; }});
  const auto sums = [&] {
    const auto all = profiler.operations();
    const auto found = all.find({"add", DType::f32, DeviceType::cpu});
    return found == all.end() ? 0 : found->second.calls;
  };
  {
    const ProfilerGuard guard(&profiler, Stage::fit, ".");
    static_cast<void>(ones({3}) + ones({3}));
    CHECK(sums() == 1);
  }
  static_cast<void>(ones({3}) + ones({3}));
  CHECK(sums() == 1);
  kernels::KernelObserver* const left = kernels::set_observer(nullptr);
  CHECK(left == nullptr);
}

TEST_CASE("the roof of this machine can be measured") {
  const Roof roof = measure_roof(kCpu, DType::f32);
  CHECK(roof.bytes > 1e7);
  CHECK(roof.flops > 1e7);
}

TEST_CASE("the work of contracts") {
  const Tensor x = ones({2, 3, 8, 8}), w = ones({5, 3, 3, 3}), y = ones({2, 5, 6, 6});
  const kernels::Conv2dArgs args{.x = x.tensor_view(), .weight = w.tensor_view(), .bias = {}, .y = y.tensor_view()};
  const auto conv = args.work("conv2d");
  CHECK(conv.flops == 2.0 * 2 * 5 * 6 * 6 * 3 * 3 * 3);
  CHECK(conv.bytes == 4.0 * (2 * 3 * 8 * 8 + 5 * 27 + 2 * 5 * 36));
}

TEST_CASE("the trace is Chrome's: complete events that nest") {
  const TempDir f;
  ToyModule model;
  fit(model, {.default_root_dir = f.path, .profiler = "trace"});
  const auto trace = nlohmann::json::parse(io::read_text(f.path / "trace.json"));
  const auto& events = trace.at("traceEvents");
  const auto first = [&](const std::string& name) {
    for (const auto& e : events)
      if (e.at("name") == name) return e;
    return nlohmann::json();
  };
  const auto whole = first("run_fit"), batch = first("run_training_batch"), kernel = first("matmul");
  REQUIRE(!whole.is_null());
  REQUIRE(!batch.is_null());
  REQUIRE(!kernel.is_null());
  CHECK(kernel.at("cat") == "kernel");
  CHECK(kernel.at("args").at("flops") > 0);
  CHECK(first("[Strategy]single.backward").at("cat") == "backward");
  for (const auto& e : events) {
    CHECK(e.at("ph") == "X");
    CHECK(e.at("ts") >= 0);
    CHECK(e.at("dur") >= 0);
  }
  const auto end = [](const nlohmann::json& e) { return e.at("ts").get<double>() + e.at("dur").get<double>(); };
  CHECK(batch.at("ts") >= whole.at("ts"));
  CHECK(end(batch) <= end(whole) + 1e-3);
  CHECK(batch.at("tid") == whole.at("tid"));
}

TEST_CASE("a trace that grows too long drops events and reports it") {
  const TempDir f;
  TraceProfiler profiler({.max_events = 2, .operations = false});
  profiler.setup(Stage::fit, f.path);
  for (int i = 0; i < 5; ++i) {
    profiler.start("a", Phase::loop);
    profiler.stop("a");
  }
  profiler.teardown(Stage::fit);
  CHECK(contains(profiler.summary(), "trace.json: 2 events, 3 left out"));
  CHECK(nlohmann::json::parse(io::read_text(f.path / "trace.json")).at("traceEvents").size() == 2);
}

TEST_CASE("a test after a fit writes its own files") {
  const TempDir f;
  const auto run = [&](Profiler& profiler, Stage stage) {
    const ProfilerGuard guard(&profiler, stage, f.path);
    const ProfileScope scope("a");
  };
  TraceProfiler trace;
  SimpleProfiler simple({.filename = "profile.txt"});
  for (Profiler* p : {static_cast<Profiler*>(&trace), static_cast<Profiler*>(&simple)})
    for (const Stage stage : {Stage::fit, Stage::test}) run(*p, stage);
  CHECK(contains(io::read_text(f.path / "profile.txt"), "Profile of fit"));
  CHECK(contains(io::read_text(f.path / "profile-test.txt"), "Profile of test"));
  CHECK(std::filesystem::exists(f.path / "trace.json"));
  CHECK(std::filesystem::exists(f.path / "trace-test.json"));
}

TEST_CASE("the table tells the time of an action from that of the actions inside it") {
  Hands hands;
  SimpleProfiler profiler({.out = nowhere(), .clock = hands.clock()});
  profiler.setup(Stage::fit, ".");
  for (int i = 0; i < 2; ++i) {
    profiler.start("outer", Phase::loop);
    hands.now += 0.5;
    profiler.start("inner", Phase::forward);
    hands.now += 1.5;
    profiler.stop("inner");
    profiler.stop("outer");
  }
  const std::string text = profiler.summary();
  CHECK_MESSAGE(contains(text, "Profile of fit: 4.000 s"), text);
  // mean ms, calls, total s, %, own %
  CHECK_MESSAGE(Pattern(R"(outer +2000\.0000 +2 +4\.0000 +100\.00 +25\.00\n)").found_in(text), text);
  CHECK_MESSAGE(Pattern(R"(inner +1500\.0000 +2 +3\.0000 +75\.00 +75\.00\n)").found_in(text), text);
  CHECK_MESSAGE(Pattern(R"(forward +3\.0000 +75\.00\n)").found_in(text), text);
}

TEST_CASE("everything inside a save counts as checkpoint") {
  Hands hands;
  SimpleProfiler profiler({.out = nowhere(), .clock = hands.clock()});
  profiler.setup(Stage::fit, ".");
  profiler.start("save_checkpoint", Phase::checkpoint);
  profiler.start("on_save_checkpoint", Phase::hooks);
  hands.now += 2;
  profiler.stop("on_save_checkpoint");
  profiler.stop("save_checkpoint");
  auto phases = profiler.phases();
  CHECK(phases[Phase::checkpoint] == 2);
  CHECK(phases[Phase::hooks] == 0);
}

TEST_CASE("a second run is profiled from its own beginning") {
  const TempDir f;
  Hands hands;
  SimpleProfiler simple({.filename = "profile.txt", .clock = hands.clock()});
  AdvancedProfiler advanced({.table = {.out = nowhere()}, .roof = [](Device, DType) { return Roof{1, 1}; }});
  TraceProfiler trace({.max_events = 2, .operations = false, .clock = hands.clock()});
  const auto run = [&](Profiler& profiler, int actions) {
    const ProfilerGuard guard(&profiler, Stage::fit, f.path);
    for (int i = 0; i < actions; ++i) {
      const ProfileScope scope("action");
      hands.now += 1;
      static_cast<void>(ones({3}) + ones({3}));
    }
  };
  for (Profiler* p : {static_cast<Profiler*>(&simple), static_cast<Profiler*>(&advanced),
                      static_cast<Profiler*>(&trace)}) {
    run(*p, 5);
    run(*p, 2);
  }
  CHECK(simple.wall() == 2);
  CHECK(simple.phases().at(Phase::loop) == 2);
  CHECK(simple.records().at("action").calls == 2);
  CHECK(advanced.operations().at({"add", DType::f32, DeviceType::cpu}).calls == 2);
  CHECK_MESSAGE(trace.summary().ends_with(": 2 events"), trace.summary());
}

TEST_CASE("the table of operations has the rates of their bytes and of their flops, and what bounds them") {
  for (const bool slow_memory : {true, false}) {
    const auto profiler = std::make_shared<AdvancedProfiler>(
        AdvancedProfilerOptions{.table = {.out = nowhere()}, .roof = [&](Device, DType) {
                                  return slow_memory ? Roof{1e3, 1e15} : Roof{1e15, 1e3};
                                }});
    const ProfilerGuard guard(profiler.get(), Stage::fit, ".");
    const Tensor a = ones({64, 96});
    for (int i = 0; i < 3; ++i) static_cast<void>(matmul(a, a.t()));
    const auto o = profiler->operations().at({"matmul", DType::f32, DeviceType::cpu});
    const std::string rates = fmt::format("{:9.2f} {:9.2f}", o.bytes / o.seconds / 1e9, o.flops / o.seconds / 1e9);
    const std::string text = profiler->summary();
    const auto begin = text.find("matmul"), end = text.find('\n', begin);
    const std::string row = text.substr(begin, end - begin);
    CHECK_MESSAGE(contains(row, rates), row);
    CHECK_MESSAGE(row.ends_with(slow_memory ? "  bytes" : "  flops"), row);
  }
}

TEST_CASE("a trace has its times in microseconds from the first event") {
  const TempDir f;
  Hands hands{.now = 1000};
  TraceProfiler profiler({.operations = false, .clock = hands.clock()});
  profiler.setup(Stage::fit, f.path);
  profiler.start("a", Phase::loop);
  hands.now += 0.25;
  profiler.start("b", Phase::forward);
  hands.now += 0.5;
  profiler.stop("b");
  profiler.stop("a");
  profiler.teardown(Stage::fit);
  const auto events = nlohmann::json::parse(io::read_text(f.path / "trace.json")).at("traceEvents");
  REQUIRE(events.size() == 2);
  CHECK(events[0].at("name") == "b");
  CHECK(events[0].at("ts").get<double>() == 250000);
  CHECK(events[0].at("dur").get<double>() == 500000);
  CHECK(events[1].at("ts").get<double>() == 0);
  CHECK(events[1].at("dur").get<double>() == 750000);
}
