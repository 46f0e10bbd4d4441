// All combinations of --accelerator, --devices, --strategy and --num-nodes: each trains, or is refused with its reason.
// The test case starts itself again for each kind of job, once per rank.
#include <levin/kernels/cuda.h>

#include <cmath>
#include <fstream>
#include <map>

#include "trainer/processes.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

struct MatrixRow {
  std::string accelerator, devices, strategy;
  int nodes;
  TrainerConfig config{};
};

std::vector<MatrixRow> matrix_rows() {
  std::vector<MatrixRow> rows;
  for (const char* accelerator : {"auto", "cpu", "gpu", "cuda", "tpu"})
    for (const char* devices : {"auto", "1", "-1", "2", "[0]"})
      for (const char* strategy : {"auto", "single", "ddp"})
        for (const int nodes : {1, 2}) {
          const std::string count = std::to_string(nodes);
          const char* const argv[] = {"program",    "--accelerator", accelerator,   "--devices",  devices,
                                      "--strategy", strategy,        "--num-nodes", count.c_str()};
          rows.push_back({accelerator, devices, strategy, nodes, parse_flags(9, argv, {})});
        }
  return rows;
}

/// Returns whether a row uses the CPU, where a process has one device.
bool is_on_cpu(const MatrixRow& row) {
  return row.accelerator == "cpu" || (row.accelerator == "auto" && choose_devices("auto", 1)[0] == kCpu);
}

/// Returns the expected reason of the refusal, according to docs/distributed.md; empty if the row trains.
std::string reason_to_refuse(const MatrixRow& row) {
  if (row.accelerator == "tpu") return "--accelerator tpu: ";
  const bool cpu = is_on_cpu(row);
  if (!cpu && !cuda::is_available()) return cuda::why_unavailable();
  if (cpu && row.devices == "[0]") return "the CPU is one device, which has no index";
  if (!cpu && row.devices == "2" && cuda::device_count() < 2) return "--devices 2";
  const bool all_of_several = !cpu && row.devices == "-1" && cuda::device_count() > 1;
  const bool several = row.devices == "2" || row.nodes == 2 || all_of_several;
  if (row.strategy == "single" && several) return "are more than one device. Use --strategy ddp.";
  return {};
}

/// The machines and the processes on each that a row is a job for.
struct Job {
  int nodes, local;
  int ranks() const { return nodes * local; }
  std::string name() const { return std::to_string(nodes) + "x" + std::to_string(local); }
  bool operator<(const Job& other) const { return std::pair(nodes, local) < std::pair(other.nodes, other.local); }
};
Job job_of(const MatrixRow& row) { return {row.nodes, row.devices == "2" ? 2 : 1}; }

/// Returns the weights before and after one step of one process with the batches of all ranks.
std::vector<std::vector<float>> one_step(TrainerConfig config, std::int64_t batch_size, const MatrixRow* row, Job job) {
  manual_seed(3);
  ToyModule model({.dropout = 0, .use_sgd = true});
  data::DataLoader train(toy_points(4 * job.ranks()), {.batch_size = batch_size});
  config = quiet(std::move(config));
  config.max_epochs = 1;
  config.timeout = 30;
  Trainer trainer(config);
  trainer.fit(model, train);
  CHECK(trainer.global_step() == 1);
  REQUIRE(model.losses.size() == 1);
  CHECK(std::isfinite(model.losses[0]));
  if (row != nullptr) {
    const Strategy& strategy = trainer.fabric().strategy();
    CHECK(strategy.name() == (row->strategy == "auto" ? (job.ranks() > 1 ? "ddp" : "single") : row->strategy));
    CHECK(strategy.world_size() == job.ranks());
    CHECK(strategy.node_rank() == rank() / job.local);
    CHECK(strategy.local_rank() == rank() % job.local);
    CHECK(strategy.device().type == (is_on_cpu(*row) ? DeviceType::cpu : DeviceType::cuda));
    CHECK(same_on_all(trainer.fabric().strategy(), values_of(model)));
  }
  return values_of(model);
}

/// Trains, within a rank, one step for each row of this job, and counts the rows.
int train_rows(Job job) {
  setenv("LOCAL_WORLD_SIZE", std::to_string(job.local).c_str(), 1);
  setenv("LOCAL_RANK", std::to_string(rank() % job.local).c_str(), 1);
  setenv("NODE_RANK", std::to_string(rank() / job.local).c_str(), 1);
  const auto whole = one_step({.accelerator = "cpu", .strategy = "single"}, 4 * job.ranks(), nullptr, job);
  CHECK(largest_difference(whole, values_of(ToyModule())) > 1e-3);
  int trained = 0;
  for (const MatrixRow& row : matrix_rows()) {
    if (!reason_to_refuse(row).empty() || job_of(row).name() != job.name()) continue;
    if (!is_on_cpu(row) && job.ranks() > 1) continue;  // counted by who started this
    INFO(row.accelerator, " ", row.devices, " ", row.strategy, " ", row.nodes);
    CHECK(largest_difference(one_step(row.config, 4, &row, job), whole) <= 1e-6);
    ++trained;
  }
  return trained;
}

}  // namespace

TEST_CASE("trainer/flag_matrix: each combination of flags trains a step, or is refused with its reason") {
  const CommonDir dir;
  if (distributed::is_launched()) {
    const std::string job = std::getenv("LEVIN_TEST_JOB");
    const int trained = train_rows({job[0] - '0', job[2] - '0'});
    std::ofstream(dir.path / (job + "." + std::to_string(rank()))) << trained;
    return;
  }
  std::map<Job, int> rows_of;
  int refused = 0, of_several_gpus = 0;
  for (const MatrixRow& row : matrix_rows()) {
    INFO(row.accelerator, " ", row.devices, " ", row.strategy, " ", row.nodes);
    const std::string reason = reason_to_refuse(row);
    const std::string said = message_of<UsageError>([&] { check_config(row.config); });
    if (reason.empty()) {
      CHECK(said == "nothing was thrown");
      // Several ranks need a GPU each: tests/nccl trains them, in the emulator too.
      const Job job = job_of(row);
      if (!is_on_cpu(row) && job.ranks() > 1)
        ++of_several_gpus;
      else
        ++rows_of[job];
      continue;
    }
    ++refused;
    CHECK_MESSAGE(contains(said, reason), said);
    CHECK_MESSAGE(said.starts_with("--"), said);
    CHECK_MESSAGE(said.find('\n') == std::string::npos, said);
    CHECK_MESSAGE(message_of<UsageError>([&] { Trainer trainer(row.config); }) == said, said);
  }
  REQUIRE(rows_of.size() == 4);
  int trained = 0;
  for (const auto& [job, rows] : rows_of) {
    CAPTURE(job.name());
    setenv("LEVIN_TEST_JOB", job.name().c_str(), 1);
    const RanksResult result = run_test_again(job.ranks());
    INFO(result.output);
    REQUIRE(result.launch.exit_status() == 0);
    for (int r = 0; r < job.ranks(); ++r) {
      int count = 0;
      std::ifstream(dir.path / (job.name() + "." + std::to_string(r))) >> count;
      CHECK(count == rows);
    }
    trained += rows;
  }
  CHECK(trained + of_several_gpus + refused == 150);
  if (!cuda::is_available()) CHECK(trained == 38);
}
