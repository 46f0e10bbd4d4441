// Ctrl-C and SIGTERM: after the current step, with a checkpoint, and the continued run has the same bits.
#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

struct RaiseAt : Callback {
  RaiseAt(int s, std::int64_t t, bool v = false) : signal(s), step(t), in_validation(v) {}
  int signal;
  std::int64_t step;
  bool in_validation;
  void on_train_batch_start(RunContext& run, const Batch&, int) override {
    if (!in_validation && run.state.global_step == step) std::raise(signal);
  }
  void on_validation_batch_start(RunContext& run, const Batch&, int index) override {
    if (in_validation && run.state.global_step == step && index == 1) std::raise(signal);
  }
};

struct Result {
  std::vector<std::vector<float>> weights;
  std::vector<double> losses;
  std::map<std::string, double> validation;
};

Result run(const std::filesystem::path& dir, std::optional<RaiseAt> raise, const std::string& ckpt = {}) {
  manual_seed(4);
  ToyModule model;
  data::DataLoader train(toy_points(23), {.batch_size = 4, .shuffle = true, .seed = 1}),
      val(toy_points(12), {.batch_size = 4});
  auto config = quiet({.max_epochs = 2});
  config.callbacks = {ModelCheckpoint({.dirpath = dir})};
  if (raise) config.callbacks.push_back(*raise);
  Trainer trainer(config);
  if (!raise) {
    trainer.fit(model, train, val, ckpt);
  } else {
    try {
      trainer.fit(model, train, val, ckpt);
      FAIL("the signal did not end the run");
    } catch (const Interrupted& e) {
      CHECK(e.signal() == raise->signal);
      CHECK(contains(e.what(), "Resume from"));
    }
  }
  return {values_of(model), model.losses, trainer.metrics().results(Split::validation)};
}

}  // namespace

TEST_CASE("a signal in training ends after the step; the resumed run is bit-equal") {
  const TempDir plain, cut;
  const Result whole = run(plain.path, std::nullopt);
  const Result part = run(cut.path, RaiseAt(SIGINT, 8));
  CHECK(part.losses.size() == 9);  // the step in which the signal came is finished
  const Result rest = run(cut.path, std::nullopt, "last");
  CHECK(rest.losses.size() == 3);
  CHECK(rest.weights == whole.weights);
  CHECK(rest.validation == whole.validation);
}

TEST_CASE("a signal in validation ends it; the resumed run repeats the validation") {
  const TempDir plain, cut;
  const Result whole = run(plain.path, std::nullopt);
  const Result part = run(cut.path, RaiseAt(SIGTERM, 6, true));
  CHECK(part.losses.size() == 6);
  const Result rest = run(cut.path, std::nullopt, "last");
  CHECK(rest.losses.size() == 6);
  CHECK(rest.weights == whole.weights);
  CHECK(rest.validation == whole.validation);
}

TEST_CASE("the previous handlers are restored, and a later run starts without the old signal") {
  std::signal(SIGINT, SIG_IGN);
  {
    const SignalGuard guard;
    std::raise(SIGINT);
    CHECK(SignalGuard::received() == SIGINT);
    const SignalGuard inner;
    CHECK(SignalGuard::received() == SIGINT);
  }
  CHECK(SignalGuard::received() == 0);
  const bool ignored_again = std::signal(SIGINT, SIG_DFL) == SIG_IGN;
  CHECK(ignored_again);
}

TEST_CASE("a second signal ends the process at once") {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const SignalGuard guard;
    std::raise(SIGTERM);
    std::raise(SIGTERM);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
}

TEST_CASE("signal handling can be turned off") {
  std::signal(SIGINT, SIG_IGN);
  manual_seed(1);
  ToyModule model;
  data::DataLoader train(toy_points(16), {.batch_size = 4});
  auto config = quiet({.max_epochs = 1});
  config.handle_signals = false;
  config.callbacks = {RaiseAt(SIGINT, 1)};
  Trainer(config).fit(model, train);
  CHECK(model.losses.size() == 4);
  std::signal(SIGINT, SIG_DFL);
}
