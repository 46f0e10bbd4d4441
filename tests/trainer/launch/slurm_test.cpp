// SIGUSR1 in a SLURM job, with a stand-in for scontrol.
#include <levin/trainer/checkpoint/checkpoint.h>

#include <csignal>
#include <cstdlib>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

namespace fs = std::filesystem;

/// A SLURM job for the time of a test: its variables, and a scontrol that writes down how it was called.
struct Job {
  explicit Job(int status = 0) {
    io::write_file(dir.path / "scontrol", "#!/bin/sh\necho \"$@\" >> " + (dir.path / "calls").string() + "\nexit " +
                                              std::to_string(status) + "\n");
    fs::permissions(dir.path / "scontrol", fs::perms::owner_all);
    set("PATH", dir.path.string() + ":" + path);
    set("SLURM_JOB_ID", "41");
    set("SLURM_JOB_NAME", "train");
  }
  ~Job() {
    set("PATH", path);
    for (const char* name : {"SLURM_JOB_ID", "SLURM_JOB_NAME", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID"})
      unsetenv(name);
  }
  static void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }
  std::string calls() const { return fs::exists(dir.path / "calls") ? io::read_text(dir.path / "calls") : ""; }
  TempDir dir;
  std::string path = std::getenv("PATH");
};

struct RaiseAt : Callback {
  RaiseAt(std::vector<std::int64_t> s, bool v) : steps(std::move(s)), in_validation(v) {}
  std::vector<std::int64_t> steps;
  bool in_validation;
  void on_train_batch_start(RunContext& run, const Batch&, int) override {
    if (!in_validation) raise_at(run.state.global_step);
  }
  void on_validation_batch_start(RunContext& run, const Batch&, int index) override {
    if (in_validation && index == 1) raise_at(run.state.global_step);
  }
  void raise_at(std::int64_t step) {
    if (std::erase(steps, step) > 0) std::raise(SIGUSR1);
  }
};

struct Result {
  std::vector<std::vector<float>> weights;
  std::vector<double> losses;
  std::string interrupted;
};

Result run(const fs::path& root, std::vector<std::int64_t> raise = {}, bool in_validation = false) {
  manual_seed(4);
  ToyModule model;
  data::DataLoader train(toy_points(23), {.batch_size = 4, .shuffle = true, .seed = 1}),
      val(toy_points(12), {.batch_size = 4});
  auto config = quiet({.max_epochs = 2, .default_root_dir = root});
  config.callbacks = {RaiseAt(std::move(raise), in_validation)};
  Trainer trainer(config);
  std::string text;
  try {
    trainer.fit(model, train, val);
  } catch (const Interrupted& e) {
    CHECK(e.signal() == SIGUSR1);
    text = e.what();
  }
  return {values_of(model), model.losses, text};
}

}  // namespace

TEST_CASE("slurm/requeue_called_once_with_ckpt") {
  const TempDir plain;
  const Result whole = run(plain.path);
  CHECK_FALSE(fs::exists(plain.path / "hpc_ckpt_1"));
  const Job job;
  for (const bool in_validation : {false, true}) {
    const TempDir f;
    const Result part = run(f.path, {6}, in_validation);
    CHECK(part.losses.size() == (in_validation ? 6u : 7u));
    CHECK_MESSAGE(contains(part.interrupted, "Job 41 is requeued and resumes from"), part.interrupted);
    CHECK(job.calls() == (in_validation ? "requeue 41\nrequeue 41\n" : "requeue 41\n"));
    CHECK(read_checkpoint(f.path / "hpc_ckpt_1").values.get<std::int64_t>("loop/global_step") ==
          static_cast<std::int64_t>(part.losses.size()));
    // The job resumes by itself where it stopped, and leaves nothing behind at its end.
    const Result rest = run(f.path);
    CHECK(rest.losses.size() + part.losses.size() == whole.losses.size());
    CHECK(rest.weights == whole.weights);
    CHECK(fs::is_empty(f.path));
  }
}

TEST_CASE("a job that is queued twice keeps one checkpoint; an array's tasks are told apart") {
  const TempDir f;
  const Job job;
  Job::set("SLURM_ARRAY_JOB_ID", "40");
  Job::set("SLURM_ARRAY_TASK_ID", "3");
  run(f.path, {2});
  run(f.path, {5});
  CHECK(job.calls() == "requeue 40_3\nrequeue 40_3\n");
  CHECK_FALSE(fs::exists(f.path / "hpc_ckpt_1"));
  CHECK(read_checkpoint(f.path / "hpc_ckpt_2").values.get<std::int64_t>("loop/global_step") == 6);
}

TEST_CASE("if scontrol fails, the checkpoint exists and training continues") {
  const TempDir plain, f, g;
  const Result whole = run(plain.path);
  const Job job(3);
  const Result r = run(f.path, {4});
  CHECK(r.interrupted.empty());
  CHECK(job.calls() == "requeue 41\n");
  CHECK(r.weights == whole.weights);
  fs::remove(job.dir.path / "scontrol");  // nor is there any
  Job::set("PATH", job.dir.path.string());
  CHECK(run(g.path, {4}).weights == whole.weights);
}

TEST_CASE("outside of SLURM and in an interactive job SIGUSR1 is left alone") {
  const auto ignored = [] {
    std::signal(SIGUSR1, SIG_IGN);
    const SignalGuard guard;
    std::raise(SIGUSR1);
    const bool asked = SignalGuard::requeue_asked();
    return !asked;
  };
  CHECK(ignored());
  const Job job;
  Job::set("SLURM_JOB_NAME", "bash");
  CHECK(ignored());
  Job::set("SLURM_JOB_NAME", "train");
  CHECK_FALSE(ignored());
  std::signal(SIGUSR1, SIG_DFL);
}
