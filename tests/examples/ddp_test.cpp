// The sample programs on several processes, started by themselves and by launchers.
#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>

#include "examples/program.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::test;

namespace {

constexpr const char* kShort =
    " --max-epochs 1 --limit-train-batches 20 --limit-val-batches 4 --limit-test-batches 4 --model mlp --threads 1"
    " --accelerator cpu --default-root-dir runs";

/// Runs mnist twice in parallel, each with its own environment variables.
void two_of_mnist(const TempDir& dir, const std::string& first, const std::string& second, const std::string& options) {
  const auto one = [&](const std::string& variables, const char* out) {
    return "env " + variables + " timeout 100 " + (binary_dir() / "bin/mnist").string() + " --batch-size 32 " +
           options + kShort + " " + data_option("mnist", "") + " > " + out + " 2> " + out + ".err";
  };
  const std::string command = "cd " + dir.path.string() + " && { " + one(second, "second") + " & " +
                              one(first, "first") + "; a=$?; wait $!; b=$?; exit $((a + b)); }";
  const int status = std::system(("bash -c '" + command + "'").c_str());
  INFO(io::read_text(dir.path / "first.err"), io::read_text(dir.path / "second.err"));
  CHECK(status == 0);
  const Ended ended{status, io::read_text(dir.path / "first"), io::read_text(dir.path / "second")};
  CHECK(ended.number("test_accuracy") > 0.3);
  CHECK(ended.err.find("result: ") == std::string::npos);
}

std::string some_port() { return "MASTER_PORT=" + std::to_string(20000 + getpid() % 10000); }

/// Returns the environment variables that mpirun gives to one of two processes.
std::string by_mpirun(const std::string& rank) {
  return some_port() + " OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_RANK=" + rank +
         " OMPI_COMM_WORLD_LOCAL_RANK=" + rank;
}

}  // namespace

TEST_CASE("examples/ddp_by_hand: two and three processes give the loss of one on the whole batch") {
  const TempDir dir;
  const auto alone = run_program(dir, "ddp_by_hand", "--processes 1 --steps 30");
  REQUIRE(alone.status == 0);
  for (const int n : {2, 3}) {
    const auto together = run_program(dir, "ddp_by_hand", "--steps 30 --processes " + std::to_string(n));
    CHECK_MESSAGE(together.status == 0, together.err);
    CHECK(together.number("ranks") == n);
    CHECK(together.number("loss") == approx(alone.number("loss"), {.relative = 1e-4}));
  }
}

TEST_CASE("mnist --strategy ddp --devices 2 trains, validates, tests and prints the result once") {
  const TempDir dir;
  const auto alone = run_program(dir, "mnist", "--batch-size 64" + std::string(kShort));
  CHECK_MESSAGE(alone.status == 0, alone.err);
  const auto together = run_program(dir, "mnist", "--batch-size 32 --strategy ddp --devices 2" + std::string(kShort));
  CHECK_MESSAGE(together.status == 0, together.err);
  CHECK(together.number("test_accuracy") == approx(alone.number("test_accuracy"), {.relative = 0.02}));
  CHECK(together.out.find("result: ") == together.out.rfind("result: "));
  CHECK(std::filesystem::exists(dir.path / "runs" / "best" / "model.safetensors"));
  // ddp_spawn starts ranks for each call of the Trainer: the numbers are the same, printed by the calling process.
  const auto spawned =
      run_program(dir, "mnist", "--batch-size 32 --strategy ddp_spawn --devices 2" + std::string(kShort));
  CHECK_MESSAGE(spawned.status == 0, spawned.err);
  CHECK(spawned.result("test_loss") == together.result("test_loss"));
}

TEST_CASE("mnist under the variables of mpirun, srun, torchrun and of several machines") {
  const TempDir dir;
  const auto two = [&](const std::string& first, const std::string& second, const std::string& options) {
    two_of_mnist(dir, first, second, "--strategy ddp " + options);
  };
  const std::string port = some_port();
  two(by_mpirun("0"), by_mpirun("1"), "");
  const auto slurm = [&](const char* rank) {
    return port + " MASTER_ADDR=127.0.0.1 SLURM_NTASKS=2 SLURM_PROCID=" + rank + " SLURM_LOCALID=" + rank;
  };
  two(slurm("0"), slurm("1"), "--devices 2");
  const auto torchrun = [&](const char* rank) {
    return port +
           " TORCHELASTIC_USE_AGENT_STORE=True MASTER_ADDR=localhost WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 RANK=" + rank +
           " LOCAL_RANK=" + rank;
  };
  two(torchrun("0"), torchrun("1"), "");
  const auto machine = [&](const char* node) { return port + " MASTER_ADDR=127.0.0.1 NODE_RANK=" + std::string(node); };
  two(machine("0"), machine("1"), "--num-nodes 2 --devices 1");
}

TEST_CASE("mnist --strategy horovod under the variables of mpirun, and by itself") {
  const TempDir dir;
  two_of_mnist(dir, by_mpirun("0"), by_mpirun("1"), "--strategy horovod --gradient-compression fp16");
  const auto alone = run_program(dir, "mnist", "--batch-size 32 --strategy horovod --devices 2" + std::string(kShort));
  CHECK_MESSAGE(alone.status == 0, alone.err);
  CHECK(alone.number("test_accuracy") > 0.3);
}

TEST_CASE("three machines of which one is missing: the others name its rank") {
  const TempDir dir;
  const std::string port = std::to_string(20000 + getpid() % 10000);
  const std::string command =
      "cd " + dir.path.string() + " && bash -c 'export MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
      "; for n in 0 1; do NODE_RANK=$n timeout 60 " + (binary_dir() / "bin/mnist").string() +
      " --strategy ddp --num-nodes 3 --devices 1 --timeout 3" + kShort + " > out$n 2> err$n & done; wait'";
  CHECK(std::system(command.c_str()) == 0);
  for (const char* file : {"err0", "err1"}) {
    const auto text = io::read_text(dir.path / file);
    CHECK_MESSAGE(text.find("1 of 3 ranks did not join") != std::string::npos, text);
    CHECK_MESSAGE(text.find("rank 2") != std::string::npos, text);
  }
}
