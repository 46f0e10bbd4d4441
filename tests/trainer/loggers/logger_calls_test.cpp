// The calls that a logger gets from a run, and their number.
#include <levin/core/io.h>

#include <algorithm>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;
using Calls = std::vector<std::string>;

namespace {

/// Records every call except those that log values.
struct Counted : Logger {
  Calls calls;
  Hyperparameters parameters;
  std::size_t operations = 0;
  std::string model;
  void log_metrics(const LogRecord&) override {}
  void log_hyperparams(const Hyperparameters& values) override {
    calls.push_back("hyperparams");
    parameters = values;
  }
  void log_model(const nn::Module& m) override {
    calls.push_back("model");
    model = m.type_name();
  }
  void log_graph(const ModelGraph& graph) override {
    calls.push_back("graph");
    operations = graph.nodes.size();
  }
  void resume(std::int64_t step) override { calls.push_back("resume " + std::to_string(step)); }
  void save() override { calls.push_back("save"); }
  void finalize(RunStatus status) override {
    constexpr const char* kNames[] = {"success", "interrupted", "failed"};
    calls.push_back(std::string("finalize ") + kNames[static_cast<int>(status)]);
  }
  std::string log_dir() const override { return {}; }
  /// Returns the calls without repeated saves.
  Calls once() const {
    Calls out = calls;
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }
};

struct Described : ToyModule {
  bool throws = false;
  Described() {
    save_hyperparameters({{"width", std::int64_t{12}}, {"name", std::string("toy")}, {"lr", 0.02}});
    save_hyperparameters({{"sizes", std::vector<std::int64_t>{6, 12, 3}}});
  }
  StepOutput training_step(const Batch& b, int i) override {
    if (throws) throw ValueError("no");
    return ToyModule::training_step(b, i);
  }
};

data::DataLoader loader() { return data::DataLoader(toy_points(8), {.batch_size = 4}); }

/// The calls of a fit over two epochs.
std::shared_ptr<Counted> fitted(LevinModule& model, TrainerConfig config = {}) {
  const auto log = std::make_shared<Counted>();
  config = quiet(config);
  config.max_epochs = 2;
  config.loggers = {log};
  auto train = loader(), val = loader();
  Trainer(config).fit(model, train, val);
  return log;
}

}  // namespace

TEST_CASE(
    "a fit gives loggers the model and its hyper-parameters at its begin, the graph at the first backward, once") {
  Described model;
  const auto log = fitted(model);
  CHECK(log->once() == Calls{"model", "hyperparams", "graph", "save", "finalize success"});
  CHECK(log->model == model.type_name());
  CHECK(log->operations > 5);
  REQUIRE(log->parameters.size() == 4);
  std::map<std::string, std::string> said;
  for (const auto& [name, value] : log->parameters) said[name] = to_string(value);
  CHECK(said ==
        std::map<std::string, std::string>{{"width", "12"}, {"name", "toy"}, {"lr", "0.02"}, {"sizes", "6, 12, 3"}});
  CHECK(std::ranges::count(log->calls, "save") >= 2);  // after each epoch
}

TEST_CASE("hyper-parameters are logged only if there are any and enable_autolog_hparams is set") {
  Described model;
  CHECK(fitted(model, {.enable_autolog_hparams = false})->once() ==
        Calls{"model", "graph", "save", "finalize success"});
  ToyModule plain;
  CHECK(fitted(plain)->once() == Calls{"model", "graph", "save", "finalize success"});
}

TEST_CASE("no logger is called in a fast_dev_run or a barebones run") {
  Described model;
  CHECK(fitted(model, {.fast_dev_run = 1})->calls.empty());
  CHECK(fitted(model, {.barebones = true})->calls.empty());
}

TEST_CASE("a resumed fit names the step, and logs no second graph; a test logs neither model nor parameters") {
  const TempDir folder;
  Described model;
  auto train = loader(), val = loader(), test_loader = loader();
  auto config = quiet({.max_epochs = 1});
  config.callbacks = {ModelCheckpoint({.dirpath = folder.path})};
  Trainer(config).fit(model, train, val);
  const auto log = std::make_shared<Counted>();
  config.max_epochs = 2;
  config.loggers = {log};
  Trainer trainer(config);
  trainer.fit(model, train, val, (folder.path / "last").string());
  CHECK(log->once() == Calls{"model", "hyperparams", "resume 2", "save", "finalize success"});
  log->calls.clear();
  trainer.test(model, {.test = borrowed(test_loader)});
  CHECK(log->once() == Calls{"save", "finalize success"});
}

TEST_CASE("a failed run notifies each of its loggers once") {
  Described model;
  model.throws = true;
  const auto a = std::make_shared<Counted>(), b = std::make_shared<Counted>();
  auto config = quiet({.max_epochs = 1});
  config.loggers = {a, b};
  auto train = loader();
  CHECK_THROWS_AS(Trainer(config).fit(model, train), ValueError);
  for (const auto& log : {a, b}) CHECK(log->once() == Calls{"model", "hyperparams", "finalize failed", "save"});
}

TEST_CASE("the description of a run is written once by every logger that supports it") {
  const TempDir f;
  Described model;
  auto config = quiet({.max_epochs = 2});
  config.logger = true;
  config.default_root_dir = f.path;
  const auto board = std::make_shared<TensorBoardLogger>(TensorBoardOptions{.folder = {.save_dir = f.path}});
  config.loggers = {std::make_shared<JsonLinesLogger>(f.path / "m.jsonl"), board,
                    std::make_shared<HtmlReport>(HtmlReportOptions{.file = f.path / "r.html", .interval = 0})};
  auto train = loader(), val = loader();
  Trainer(config).fit(model, train, val);
  const auto times = [&](const std::filesystem::path& file, const std::string& part) {
    const std::string text = io::read_text(file);
    int n = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  CHECK(times(f.path / "m.jsonl", "\"hyperparameters\":{") == 1);
  CHECK(times(f.path / "m.jsonl", "\"sizes\":\"6, 12, 3\"") == 1);
  CHECK(times(f.path / "r.html", "6, 12, 3") == 1);
  CHECK(times(f.path / "r.html", model.type_name()) >= 1);  // the table of its modules
  CHECK(times(f.path / "metrics.csv", "width") == 0);       // a table of values has no form for it
  std::filesystem::path events;
  for (const auto& entry : std::filesystem::directory_iterator(board->log_dir())) events = entry.path();
  CHECK(times(events, "_hparams_/experiment") == 1);
  CHECK(times(events, "_hparams_/session_start_info") == 1);
  CHECK(times(events, "_hparams_/session_end_info") == 1);
  CHECK(times(events, "6, 12, 3") == 1);
}
