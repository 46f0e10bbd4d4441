// Runs the sample program as a user does: results, refusals, signals, resuming.
#include <levin/levin.h>

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "examples/program.h"
#include "support/text/pattern.h"

using namespace levin;
using levin::test::TempDir;
using levin::test::column;
namespace fs = std::filesystem;

namespace {

struct Ended {
  int status = -1;
  std::string out, err;

  std::map<std::string, std::string> result() const {
    std::map<std::string, std::string> values;
    const auto at = out.rfind("result: ");
    if (at == std::string::npos) return values;
    static const test::Pattern pair(R"((\w+)=(\S+))");
    for (const auto& m : pair.find_all(out.substr(at))) values[m[1]] = m[2];
    return values;
  }
};

/// Starts the program in `dir` with its two output streams redirected to files there.
pid_t start(const fs::path& dir, std::vector<std::string> arguments) {
  const auto names_data = [](const std::string& argument) { return argument.starts_with("--data"); };
  if (std::none_of(arguments.begin(), arguments.end(), names_data))
    arguments.insert(arguments.end(), {"--data", test::plain_fashion_mnist().string()});
  arguments.insert(arguments.begin(), (test::binary_dir() / "bin/mnist").string());
  std::vector<char*> argv;
  for (auto& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  if (chdir(dir.c_str()) != 0 || !freopen("out", "w", stdout) || !freopen("err", "w", stderr)) _exit(99);
  execv(argv[0], argv.data());
  _exit(98);
}

Ended finish(const fs::path& dir, pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), io::read_text(dir / "out"),
          io::read_text(dir / "err")};
}

Ended mnist(const fs::path& dir, const std::vector<std::string>& arguments) {
  return finish(dir, start(dir, arguments));
}

const std::vector<std::string> kShort = {"--limit-train-batches",
                                         "60",
                                         "--limit-val-batches",
                                         "2",
                                         "--limit-test-batches",
                                         "2",
                                         "--max-epochs",
                                         "2",
                                         "--model",
                                         "mlp"};

std::vector<std::string> with(std::vector<std::string> base, const std::vector<std::string>& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

bool one_line(const std::string& text) { return !text.empty() && text.find('\n') == text.size() - 1; }

}  // namespace

TEST_CASE("a short training learns, and leaves a checkpoint, a log and a summary") {
  const TempDir f;
  const Ended e = mnist(f.path, kShort);
  REQUIRE_MESSAGE(e.status == 0, e.err);
  auto r = e.result();
  for (const char* key :
       {"test_accuracy", "test_loss", "val_accuracy", "train_seconds", "startup_ms", "epochs", "model", "checkpoint"})
    CHECK_MESSAGE(r.count(key) == 1, key);
  CHECK(std::stod(r["test_accuracy"]) > 0.7);
  CHECK(r["model"] == "mlp");
  CHECK(r["epochs"] == "2");
  CHECK(e.out.find("epoch 2/2") != std::string::npos);
  const auto weights = interop::load_safetensors(f.path / r["checkpoint"] / "model.safetensors").tensors;
  CHECK(weights.size() == 6);
  CHECK(weights.at("net.1.weight").sizes() == Shape{512, 784});
  CHECK(weights.at("net.5.bias").sizes() == Shape{10});
  CHECK(column(f.path / "runs/mnist/metrics.csv", "train_loss").size() == 2);
  CHECK(fs::exists(f.path / "runs/mnist/summary.txt"));
}

TEST_CASE("the networks have PyTorch's parameter names") {
  const std::map<std::string, std::vector<std::string>> names = {
      {"lenet", {"net.0.weight", "net.3.weight", "net.7.weight", "net.9.weight"}},
      {"cnn", {"net.0.weight", "net.2.weight", "net.6.weight", "net.8.weight"}},
      {"fast", {"net.0.weight", "net.2.running_mean", "net.4.weight", "net.10.weight", "net.12.bias"}}};
  for (const auto& [model, expected] : names) {
    const TempDir f;
    const Ended e = mnist(f.path, {"--model", model, "--limit-train-batches", "2", "--limit-val-batches", "1",
                                   "--limit-test-batches", "1", "--max-epochs", "1", "--batch-size", "8"});
    REQUIRE_MESSAGE(e.status == 0, e.err);
    const auto weights = interop::load_safetensors(f.path / "runs/mnist/best/model.safetensors").tensors;
    CHECK(weights.size() == (model == "fast" ? 20 : 8));
    for (const auto& name : expected) CHECK_MESSAGE(weights.contains(name), name);
  }
}

TEST_CASE("examples/plain_equals_trainer: the raw loop has the Trainer's losses bit for bit") {
  const TempDir a, b;
  const Ended trainer = mnist(a.path, kShort), raw = mnist(b.path, with(kShort, {"--raw"}));
  REQUIRE(trainer.status == 0);
  REQUIRE_MESSAGE(raw.status == 0, raw.err);
  for (const char* name : {"train_loss", "val_loss", "val_acc"}) {
    const auto left = column(a.path / "runs/mnist/metrics.csv", name);
    CHECK(left.size() == 2);
    CHECK_MESSAGE(left == column(b.path / "runs/mnist/metrics.csv", name), name);
  }
  for (const char* key : {"test_accuracy", "test_loss", "val_accuracy"})
    CHECK(trainer.result()[key] == raw.result()[key]);
}

TEST_CASE("results do not depend on the number of threads") {
  const TempDir a, b;
  const Ended one = mnist(a.path, with(kShort, {"--threads", "1"})),
              three = mnist(b.path, with(kShort, {"--threads", "3"}));
  CHECK(column(a.path / "runs/mnist/metrics.csv", "train_loss") ==
        column(b.path / "runs/mnist/metrics.csv", "train_loss"));
  CHECK(one.result()["test_loss"] == three.result()["test_loss"]);
}

TEST_CASE("a signal ends with a checkpoint, status 130 or 143, and the resumed run ends like the whole one") {
  const TempDir whole;
  const auto expected = mnist(whole.path, kShort).result();
  for (const auto& [signal, status] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    const TempDir f;
    const pid_t child = start(f.path, kShort);
    // The log's first row is written at the epoch's end; the summary line is printed before the first step.
    for (int i = 0; i < 2000 && (!fs::exists(f.path / "out") || fs::file_size(f.path / "out") == 0); ++i) usleep(2000);
    kill(child, signal);
    const Ended e = finish(f.path, child);
    REQUIRE_MESSAGE(e.status == status, e.err);
    CHECK(one_line(e.err));
    CHECK(e.err.find("error: interrupted by") == 0);
    REQUIRE(fs::exists(f.path / "runs/mnist/last/state.json"));
    const Ended rest = mnist(f.path, with(kShort, {"--resume", "last"}));
    REQUIRE_MESSAGE(rest.status == 0, rest.err);
    for (const char* key : {"test_accuracy", "test_loss", "val_accuracy"})
      CHECK(rest.result()[key] == expected.at(key));
  }
}

TEST_CASE(
    "SIGUSR1 in a SLURM job ends with a checkpoint and status 138; the job that begins again ends like a whole one") {
  const TempDir whole, f;
  const auto expected = mnist(whole.path, kShort).result();
  io::write_file(f.path / "scontrol", std::string("#!/bin/sh\necho \"$@\" >> calls\n"));
  fs::permissions(f.path / "scontrol", fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  setenv("PATH", (f.path.string() + ":" + path).c_str(), 1);
  setenv("SLURM_JOB_ID", "7", 1);
  const pid_t child = start(f.path, kShort);
  for (int i = 0; i < 2000 && (!fs::exists(f.path / "out") || fs::file_size(f.path / "out") == 0); ++i) usleep(2000);
  kill(child, SIGUSR1);
  const Ended e = finish(f.path, child);
  CHECK_MESSAGE(e.status == 138, e.err);
  CHECK(io::read_text(f.path / "calls") == "requeue 7\n");
  CHECK(fs::exists(f.path / "runs/mnist/hpc_ckpt_1/state.json"));
  const Ended rest = mnist(f.path, kShort);
  unsetenv("SLURM_JOB_ID");
  setenv("PATH", path.c_str(), 1);
  REQUIRE_MESSAGE(rest.status == 0, rest.err);
  for (const char* key : {"test_accuracy", "test_loss", "val_accuracy"}) CHECK(rest.result()[key] == expected.at(key));
  CHECK_FALSE(fs::exists(f.path / "runs/mnist/hpc_ckpt_1"));
}

TEST_CASE("misuse ends with status 2, failure with 1, each with one sentence") {
  const TempDir f;
  io::write_file(f.path / "train-images-idx3-ubyte", std::string("\0\0\x08\x03 cut", 8));
  io::write_file(f.path / "train-labels-idx1-ubyte", std::string("wrong magic, long enough"));
  fs::create_directories(f.path / "empty");
  struct Row {
    std::vector<std::string> arguments;
    int status;
    const char* part;
  };
  const std::vector<Row> rows = {
      {{"--batch-size", "0"}, 2, "--batch-size 0: give a whole number of 1 or more."},
      {{"--max-epochs", "0"}, 2, "--max-epochs 0"},
      {{"--max-epoch", "3"}, 2, "--max-epoch: this option is unknown. Did you mean --max-epochs?"},
      {{"--devices", "[0]", "--accelerator", "cpu"}, 2, "--devices [0]: the CPU is one device, which has no index."},
      {{"--model", "resnet"}, 2, "choose one of mlp|lenet|cnn|fast"},
      {{"--lr", "0"}, 2, "give a number above 0"},
      {{"--dataset", "mnist"}, 2, "give its folder with --data"},
      {{"--raw", "--resume", "last"}, 2, "--raw cannot --resume"},
      {{"--data", "empty"}, 1, "was not found"},
      {{"--data", "."}, 1, "train-"},
      {{"--resume", "best"}, 1, "no checkpoint \"best\""},
      {{"--resume", "empty"}, 1, "state.json"},
  };
  for (const auto& row : rows) {
    INFO(row.part);
    const Ended e = mnist(f.path, row.arguments);
    CHECK(e.status == row.status);
    CHECK_MESSAGE(one_line(e.err), e.err);
    CHECK(e.err.starts_with("error: "));
    CHECK_MESSAGE(e.err.find(row.part) != std::string::npos, e.err);
  }
}

TEST_CASE("a checkpoint that is damaged or of another network is refused and left unchanged") {
  const TempDir f;
  REQUIRE(mnist(f.path, kShort).status == 0);
  const Ended other = mnist(f.path, {"--resume", "last", "--model", "lenet"});
  CHECK(other.status == 1);
  CHECK(one_line(other.err));
  CHECK(other.err.find("belongs to another network") != std::string::npos);
  const auto file = f.path / "runs/mnist/last/model.safetensors";
  auto bytes = io::read_file(file);
  bytes[bytes.size() / 2] ^= std::byte{4};
  io::write_file(file, bytes);
  const Ended damaged = mnist(f.path, with(kShort, {"--resume", "last"}));
  CHECK(damaged.status == 1);
  CHECK(one_line(damaged.err));
  CHECK(damaged.err.find("is damaged") != std::string::npos);
  CHECK(io::read_file(file) == bytes);
}

TEST_CASE("--fast-dev-run writes nothing, --help lists every option") {
  const TempDir f;
  const Ended e = mnist(f.path, {"--fast-dev-run", "--model", "mlp"});
  CHECK_MESSAGE(e.status == 0, e.err);
  CHECK(e.result()["checkpoint"] == "none");
  CHECK_FALSE(fs::exists(f.path / "runs"));
  const Ended help = mnist(f.path, {"--help"});
  CHECK(help.status == 0);
  for (const char* option :
       {"model mlp|lenet|cnn|fast", "max-epochs", "batch-size", "lr", "seed", "threads", "data", "dataset",
        "checkpoint", "resume", "limit-train-batches", "limit-val-batches", "limit-test-batches", "fast-dev-run",
        "raw"})
    CHECK_MESSAGE(help.out.find(std::string("--") + option) != std::string::npos, option);
}
