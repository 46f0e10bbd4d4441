// Faults of one process that no other file injects: docs/faults.md lists all of them with their tests.
#include <levin/core/allocator.h>
#include <levin/core/io.h>

#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <locale>
#include <thread>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;
namespace fs = std::filesystem;

// The leak sanitizer asks this before it looks for leaks at exit. In a forked child it would report what the parent's
// other threads held, because they do not exist there.
static bool is_forked_child = false;
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return is_forked_child; }

namespace {

/// Calls f at the first sample of each batch.
struct Points : data::Dataset {
  explicit Points(std::function<void()> f, std::int64_t n = 16) : at_sample(std::move(f)), points(toy_points(n)) {}
  std::function<void()> at_sample;
  data::TensorDataset points;
  std::int64_t size() const override { return points.size(); }
  Batch get(std::int64_t i, Generator& rng) const override {
    at_sample();
    return points.get(i, rng);
  }
};

struct Fit {
  std::vector<std::vector<float>> weights;
  std::vector<double> losses;
};

/// 12 steps with dropout, shuffling and momentum, or up to `stop_at` and saved in `dir`.
Fit fit(const fs::path& dir, int workers, std::int64_t stop_at = -1, const std::string& ckpt = {}) {
  manual_seed(4);
  ToyModule model;
  data::DataLoader train(toy_points(23), {.batch_size = 4, .shuffle = true, .num_workers = workers, .seed = 1}),
      val(toy_points(12), {.batch_size = 4, .num_workers = workers});
  auto config = quiet({.max_epochs = 2, .max_steps = stop_at});
  config.callbacks = {ModelCheckpoint({.dirpath = dir, .save_last = true, .every_n_train_steps = 1})};
  Trainer(config).fit(model, train, val, ckpt);
  return {values_of(model), model.losses};
}

/// How a child process ends that runs f; it has one thread of its own, since the parent's are not in it.
template <class F>
int status_of_child(const F& f) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    is_forked_child = true;
    set_num_threads(1);
    f();
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("faults: a run goes on with other numbers of threads and workers, to the bit") {
  const TempDir whole_dir, cut_dir;
  const int threads = num_threads();
  const Fit whole = fit(whole_dir.path, 0);
  set_num_threads(2);
  const Fit first = fit(cut_dir.path, 2, 5);
  set_num_threads(3);
  const Fit rest = fit(cut_dir.path, 1, -1, "last");
  set_num_threads(threads);
  CHECK(first.losses.size() == 5);
  CHECK(rest.losses.size() == 7);
  CHECK(std::equal(first.losses.begin(), first.losses.end(), whole.losses.begin()));
  CHECK(std::equal(rest.losses.begin(), rest.losses.end(), whole.losses.begin() + 5));
  CHECK(rest.weights == whole.weights);
}

TEST_CASE("faults: detect_anomaly names the operation that made a NaN in a fit") {
  struct Rooted : ToyModule {
    StepOutput training_step(const Batch& b, int) override { return sqrt((*this)(b[0]).sum() * 0.0 - 1.0); }
  } model;
  data::DataLoader train(toy_points(8), {.batch_size = 4});
  const auto said =
      message_of<GradError>([&] { Trainer(quiet({.max_epochs = 1, .detect_anomaly = true})).fit(model, train); });
  CHECK_MESSAGE(contains(said, "\"sqrt\""), said);
  CHECK_FALSE(anomaly_enabled());
}

TEST_CASE("faults: Ctrl-C twice ends a run whose data never comes") {
  const int status = status_of_child([] {
    std::signal(SIGINT, SIG_DFL);
    const Points data([] {
      for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) kill(getpid(), SIGINT);
    });
    ToyModule model;
    data::DataLoader train(data, {.batch_size = 4, .num_workers = 2});
    Trainer(quiet({.max_epochs = 1})).fit(model, train);
  });
  CHECK(status == 128 + SIGINT);
}

TEST_CASE("faults: data that is not there, is too little, or shrinks between epochs") {
  CHECK(contains(message_of<ValueError>([] { data::DataLoader(toy_points(0), {}); }), "the dataset is empty"));
  CHECK(contains(message_of<ValueError>([] { data::DataLoader(toy_points(3), {.batch_size = 4, .drop_last = true}); }),
                 "3 samples make no batch of 4"));

  struct Shrinking : data::Dataset {
    data::TensorDataset points = toy_points(16);
    std::shared_ptr<std::int64_t> there = std::make_shared<std::int64_t>(16);
    std::int64_t size() const override { return *there; }
    Batch get(std::int64_t i, Generator& rng) const override { return points.get(i, rng); }
  } data;
  for (const int workers : {0, 2}) {
    CAPTURE(workers);
    *data.there = 16;
    ToyModule model;
    data::DataLoader train(data, {.batch_size = 4, .shuffle = true, .num_workers = workers, .seed = 1});
    auto config = quiet({.max_epochs = 3});
    config.callbacks = {
        LambdaCallback({.on_train_epoch_end = [&](RunContext&) { *data.there = 8; }})};
    const std::string said = message_of<Error>([&] { Trainer(config).fit(model, train); });
    CHECK_MESSAGE(contains(said, "but the dataset has 8 samples"), said);
    CHECK(model.losses.size() == 4);
  }
}

TEST_CASE("faults: a SIGTERM in the middle of a save ends the run after it, and the next goes on to the same bits") {
  const TempDir whole_dir, cut_dir;
  const auto run = [](const fs::path& dir, bool struck, const std::string& ckpt) {
    manual_seed(4);
    struct StruckInSave : ToyModule {
      bool strikes = false;
      void on_save_checkpoint(StateMap&) override {
        if (std::exchange(strikes, false)) std::raise(SIGTERM);
      }
    } model;
    model.strikes = struck;
    data::DataLoader train(toy_points(23), {.batch_size = 4, .shuffle = true, .seed = 1});
    auto config = quiet({.max_epochs = 2});
    config.callbacks = {ModelCheckpoint({.dirpath = dir, .save_last = true, .every_n_train_steps = 3})};
    Trainer trainer(config);
    const DataModule data{.train = borrowed(train)};
    if (struck)
      CHECK_THROWS_AS(trainer.fit(model, data, ckpt), Interrupted);
    else
      trainer.fit(model, data, ckpt);
    return Fit{values_of(model), model.losses};
  };
  const Fit whole = run(whole_dir.path, false, "");
  CHECK(run(cut_dir.path, true, "").losses.size() == 3);
  const Fit rest = run(cut_dir.path, false, "last");
  CHECK(rest.losses.size() == 9);
  CHECK(rest.weights == whole.weights);
}

TEST_CASE(
    "faults: memory that ends anywhere in a step is one exception; nothing is lost and the step can be repeated") {
  manual_seed(1);
  ToyModule model({.dropout = 0.0});
  optim::SGD opt(model.parameters(), {.lr = 0.1});
  const Batch batch = *data::DataLoader(toy_points(64), {.batch_size = 64}).begin();
  StateDict before;
  for (const auto& [name, t] : model.state_dict()) before.set(name, t.clone());
  const auto step = [&] {
    opt.zero_grad();
    cross_entropy(model(batch[0]), batch[1]).backward();
    opt.step();
  };
  step();
  const auto expected = values_of(model);
  int refused = 0;
  for (std::size_t room = 0;; room += 512) {
    opt.zero_grad();
    model.load_state_dict(before);
    const std::size_t allocated = cpu_allocator::stats().allocated;
    cpu_allocator::set_cap(allocated + room + 1);
    bool failed = false;
    try {
      step();
    } catch (const OutOfMemory&) {
      failed = true;
    }
    cpu_allocator::set_cap(0);
    if (!failed) break;
    ++refused;
    opt.zero_grad();
    CHECK(cpu_allocator::stats().allocated == allocated);  // the step's memory is freed
    model.load_state_dict(before);
    step();
    CHECK(values_of(model) == expected);
  }
  CHECK(refused > 5);
  CHECK(values_of(model) == expected);
}

TEST_CASE("faults: two Trainers in two threads give the results of one") {
  const auto run = [](std::uint64_t seed, ToyModule& model) {
    data::DataLoader train(toy_points(32), {.batch_size = 4, .shuffle = true, .num_workers = 1, .seed = seed}),
        val(toy_points(8), {.batch_size = 4});
    Trainer trainer(quiet({.max_epochs = 3}));
    trainer.fit(model, train, val);
    return trainer.metrics().results(Split::validation);
  };
  const auto fresh = [] {
    manual_seed(1);
    return std::make_unique<ToyModule>(ToyOptions{.dropout = 0.0});
  };
  const auto a = fresh(), b = fresh(), c = fresh(), d = fresh();
  const auto values_a = run(5, *a), values_b = run(6, *b);
  std::map<std::string, double> values_c, values_d;
  std::thread other([&] { values_c = run(5, *c); });
  values_d = run(6, *d);
  other.join();
  CHECK(values_c == values_a);
  CHECK(values_d == values_b);
  CHECK(values_of(*c) == values_of(*a));
  CHECK(values_of(*d) == values_of(*b));
  CHECK(values_of(*a) != values_of(*b));
}

TEST_CASE("faults: a program that ends in the middle of a step ends with its own status") {
  const int status = status_of_child([] {
    struct Leaves : ToyModule {
      StepOutput training_step(const Batch&, int) override { std::exit(7); }
    } model;
    data::DataLoader train(toy_points(16), {.batch_size = 4, .num_workers = 2});
    Trainer(quiet({.max_epochs = 1})).fit(model, train);
  });
  CHECK(status == 7);
}

TEST_CASE("faults: time that is over inside a validation or a save: both are finished, then training stops") {
  const TempDir folder;
  const auto now = std::make_shared<double>(0.0);
  ToyModule model;
  data::DataLoader train(toy_points(16), {.batch_size = 4}), val(toy_points(8), {.batch_size = 4});
  auto config = quiet({.max_epochs = 9, .num_sanity_val_steps = 0});
  config.callbacks = {
      LambdaCallback({.on_save_checkpoint = [now](RunContext&, StateMap&) { *now += 100; },
                      .on_validation_batch_start = [now](RunContext&, const Batch&, int) { *now += 100; }}),
      Timer({.duration = std::chrono::seconds(50), .verbose = false, .clock = [now] { return *now; }}),
      ModelCheckpoint({.dirpath = folder.path})};
  Trainer trainer(config);
  trainer.fit(model, train, val);
  CHECK(trainer.global_step() == 5);  // the four of the epoch, and one after which the clock is looked at
  CHECK(trainer.state().samples == 20);
  CHECK(trainer.num_val_batches() == std::vector<std::int64_t>{2});
  CHECK(trainer.metrics().results(Split::validation).contains("val_loss"));
  CHECK(fs::exists(folder.path / "last"));
  CHECK(std::chrono::steady_clock::is_steady);  // Timer's own clock
}

TEST_CASE("faults: another locale, file mask, folder, no HOME, names with spaces and letters beyond ASCII") {
  const TempDir folder;
  const fs::path odd = folder.path / "kä se mit Löchern";
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const auto files = [&](const fs::path& dir, const std::string& ckpt) {
    manual_seed(1);
    ToyModule model;
    data::DataLoader train(toy_points(24), {.batch_size = 4}), val(toy_points(8), {.batch_size = 4});
    auto config = quiet({.max_epochs = ckpt.empty() ? 1 : 2, .default_root_dir = dir, .log_every_n_steps = 1});
    config.logger = true;
    config.loggers = {std::make_shared<JsonLinesLogger>(dir / "m.jsonl")};
    config.callbacks = {ModelCheckpoint({.dirpath = dir / "c", .monitor = "val_loss", .save_last = true})};
    Trainer(config).fit(model, train, val, ckpt);
    return io::read_text(dir / "metrics.csv") + io::read_text(dir / "m.jsonl");
  };
  const auto both = [&](const fs::path& dir) {
    const std::string first = files(dir, "");
    return first + files(dir, (dir / "c/last").string());
  };
  const std::string plain = both(folder.path / "plain");

  const auto home = std::string(std::getenv("HOME") ? std::getenv("HOME") : "");
  const auto here = fs::current_path();
  const mode_t mask = umask(0077);
  const std::locale locale = std::locale::global(std::locale(std::locale::classic(), new Comma));
  const std::string c_locale = std::setlocale(LC_ALL, nullptr);
  std::setlocale(LC_ALL, "de_DE.UTF-8");  // where the machine has it
  unsetenv("HOME");
  fs::create_directory(folder.path / "gone");
  fs::current_path(folder.path / "gone");
  fs::remove(folder.path / "gone");
  std::string found;
  const std::string failed = message_of<std::exception>([&] { found = both(odd); });
  fs::current_path(here);
  umask(mask);
  std::locale::global(locale);
  std::setlocale(LC_ALL, c_locale.c_str());
  if (!home.empty()) setenv("HOME", home.c_str(), 1);
  CHECK(failed == "nothing was thrown");
  CHECK(found == plain);
}
