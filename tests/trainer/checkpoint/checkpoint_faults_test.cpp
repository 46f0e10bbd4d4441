// Faults while checkpoints are written, and the state that is left.
#include <levin/core/io.h>
#include <levin/trainer/checkpoint/checkpoint.h>

#include <cerrno>
#include <set>

#include <sys/wait.h>
#include <unistd.h>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

namespace fs = std::filesystem;

Checkpoint numbered(std::int64_t n) {
  Checkpoint c;
  c.model.set("weight", full({50000}, static_cast<double>(n)));  // 200 kB: four writes
  c.values.set("number", n);
  return c;
}

std::set<std::string> names_in(const fs::path& dir) {
  std::set<std::string> out;
  for (const auto& e : fs::directory_iterator(dir)) out.insert(e.path().filename().string());
  return out;
}

/// Runs `save` in children that are killed at their first, second, ... operation on files, until one comes through;
/// after each, `check` looks at what is there.
template <class Prepare, class Save, class Check>
int killed_everywhere(const Prepare& prepare, const Save& save, const Check& check) {
  for (std::int64_t operations = 0;; ++operations) {
    const TempDir f;
    prepare(f.path);
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      io::kill_process_after(operations);
      save(f.path);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    INFO("killed at operation ", operations);
    recover_checkpoints(f.path);
    check(f.path);
    if (WIFEXITED(status)) {
      CHECK(WEXITSTATUS(status) == 0);
      return static_cast<int>(operations);
    }
    CHECK(WTERMSIG(status) == SIGKILL);
  }
}

struct FillsUp : Callback {
  FillsUp(std::int64_t e, int error_ = 0) : epoch(e), error(error_) {}
  std::int64_t epoch;
  int error;
  void on_train_epoch_start(RunContext& run) override {
    io::fail_writes_after(run.state.epoch == epoch ? 100 : -1, error);
  }
};

}  // namespace

TEST_CASE("kill -9 anywhere in saving the next and removing the former: `last` always loads, and nothing stays half") {
  const auto first = [](const fs::path& dir) {
    write_checkpoint(dir / "a", numbered(1));
    io::write_pointer(dir / "last", "a");
  };
  const EncodedCheckpoint next = encode_checkpoint(numbered(2));  // a child has none of the threads that fill tensors
  const int operations = killed_everywhere(
      first,
      [&](const fs::path& dir) {
        write_checkpoint(dir / "b", next);
        io::write_pointer(dir / "last", "b");
        remove_checkpoint(dir / "a");
      },
      [](const fs::path& dir) {
        const Checkpoint c = read_checkpoint(dir / "last");
        CHECK(c.model.at("weight").to_vector<float>() ==
              std::vector<float>(50000, static_cast<float>(c.values.get<std::int64_t>("number"))));
        for (const auto& name : names_in(dir)) {
          CHECK_MESSAGE((name == "a" || name == "b" || name == "last"), name);
          CHECK(read_checkpoint(dir / name).model.size() == 1);
        }
      });
  CHECK(operations > 20);
}

TEST_CASE("kill -9 anywhere in replacing a checkpoint of the same name: the old or the new one is there") {
  const EncodedCheckpoint next = encode_checkpoint(numbered(2));
  killed_everywhere([](const fs::path& dir) { write_checkpoint(dir / "a", numbered(1)); },
                    [&](const fs::path& dir) { write_checkpoint(dir / "a", next); },
                    [](const fs::path& dir) {
                      const auto n = read_checkpoint(dir / "a").values.get<std::int64_t>("number");
                      CHECK((n == 1 || n == 2));
                      CHECK(names_in(dir) == std::set<std::string>{"a"});
                    });
}

TEST_CASE("only checkpoints are removed") {
  const TempDir f;
  fs::create_directory(f.path / "mine");
  io::write_file(f.path / "mine/notes", std::string("x"));
  write_checkpoint(f.path / "a", numbered(1));
  io::write_pointer(f.path / "last", "a");
  remove_checkpoint(f.path / "mine");
  remove_checkpoint(f.path / "none");
  remove_checkpoint(f.path / "last");
  CHECK(names_in(f.path) == std::set<std::string>{"a", "mine"});
  remove_checkpoint(f.path / "a");
  CHECK(names_in(f.path) == std::set<std::string>{"mine"});
}

TEST_CASE("a disk that fails in one epoch: with continue_on_error training goes on, and later epochs are saved") {
  const TempDir f;
  manual_seed(1);
  ToyModule model;
  data::DataLoader train(toy_points(8), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
  for (const int error : {ENOSPC, EIO}) {
    const auto dir = f.path / std::to_string(error);
    const auto policy = std::make_shared<ModelCheckpoint>(
        ModelCheckpointOptions{.dirpath = dir, .save_top_k = -1, .continue_on_error = true});
    auto config = quiet({.max_epochs = 3});
    config.callbacks = {FillsUp(1, error), policy};
    Trainer(config).fit(model, train, val);
    CHECK(names_in(dir) == std::set<std::string>{"best", "last", "epoch=0-step=2", "epoch=2-step=6"});
    CHECK(policy->best_k_models().size() == 2);
    CHECK(read_checkpoint(dir / "last").values.get<std::int64_t>("loop/epoch") == 2);
  }
}

TEST_CASE("an error in writing names the folder, its size and the reason") {
  const TempDir f;
  io::fail_writes_after(1000, EIO);
  const auto said = message_of<IoError>([&] { write_checkpoint(f.path / "a", numbered(1)); });
  io::fail_writes_after(-1);
  CHECK_MESSAGE(contains(said, "[checkpoint] " + (f.path / "a").string() + " was not saved (200"), said);
  CHECK_MESSAGE(contains(said, "Input/output error"), said);
}

TEST_CASE("a run that has gone further than max_epochs is refused") {
  const TempDir f;
  const auto fit = [&](std::int64_t epochs, const std::string& ckpt) {
    manual_seed(1);
    ToyModule model;
    data::DataLoader train(toy_points(8), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
    auto config = quiet({.max_epochs = epochs});
    config.callbacks = {ModelCheckpoint({.dirpath = f.path})};
    Trainer(config).fit(model, train, val, ckpt);
    return model.losses.size();
  };
  CHECK(fit(3, "") == 6);
  const auto said = message_of<UsageError>([&] { fit(2, "last"); });
  CHECK_MESSAGE(contains(said, "has finished 3 epochs, but max_epochs is 2"), said);
  CHECK(fit(3, "last") == 0);
  CHECK(fit(4, "last") == 2);
}
