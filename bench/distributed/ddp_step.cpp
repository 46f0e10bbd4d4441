// Benchmarks a training step of data parallelism with one process per device and one thread each; tools/ddp_step.py
// compares it with PyTorch's (bench/peers/torch_ddp.py).
// usage: levin_bench_ddp_step [--ranks N] [--net mlp|lenet|cnn] [--steps N]
// prints "levin RANKS NET HOW MS", medians, where HOW is
//   alone   every process trains its own network without communication
//   behind  gradients are averaged after backward
//   ddp     gradients are averaged while backward runs

#include <levin/autograd/ops.h>
#include <levin/core/side_by_side.h>
#include <levin/distributed/distributed.h>
#include <levin/optim/optim.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "../compare/nets.h"
#include "../median.h"

using namespace levin;
using namespace levin::distributed;

namespace {

constexpr int kWarmUp = 8;
constexpr int64_t kBatch = 128;  // per rank

nn::Sequential make_net(const std::string& name) {
  if (name == "cnn") return bench::make_cnn();
  return name == "lenet" ? bench::make_lenet() : bench::make_mlp();
}

/// A network with its optimizer and the measured times of its steps.
class Training {
 public:
  Training(std::string how, const std::string& net, const std::shared_ptr<ProcessGroup>& group)
      : how_(std::move(how)), net_(make_net(net)), optimizer_(net_.parameters(), {.lr = 1e-3}) {
    if (how_ == "alone") return;
    share_module(net_, *group);
    reducer_ = std::make_unique<Reducer>(net_.parameters(), group);
    if (how_ == "behind")
      reducer_->register_comm_hook([](ProcessGroup& g, const GradBucket& bucket) -> CommStages {
        return {[&g, t = bucket.buffer] { g.all_reduce(t, ReduceOp::avg).wait(); }};
      });
  }
  void step(const Tensor& x, const Tensor& y) {
    const auto start = std::chrono::steady_clock::now();
    optimizer_.zero_grad();
    cross_entropy(net_(x), y).backward();
    optimizer_.step();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    took_.push_back(took.count());
  }
  double ms() const { return bench::median({took_.begin() + kWarmUp, took_.end()}); }
  const std::string& how() const { return how_; }

 private:
  std::string how_;
  nn::Sequential net_;
  optim::Adam optimizer_;
  std::unique_ptr<Reducer> reducer_;
  std::vector<double> took_;
};

}  // namespace

int main(int argc, char** argv) {
  int ranks = 2, steps = 60;
  std::string net = "mlp";
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--ranks") ranks = std::atoi(argv[i + 1]);
    if (option == "--steps") steps = std::atoi(argv[i + 1]);
    if (option == "--net") net = argv[i + 1];
  }
  if (!is_launched()) return launch({.processes = ranks}).exit_status();
  limit_thread(1);
  const RankInfo me = rank_info(environment());
  const auto store = open_store(me);
  join(*store, me);
  const auto group = make_process_group("gloo", {.store = store, .rank = me.rank, .world_size = me.world_size});
  const Tensor x = randn({kBatch, 1, 28, 28}), y = randint(0, 10, {kBatch});
  std::vector<std::unique_ptr<Training>> all;
  for (const char* how : {"alone", "behind", "ddp"})
    if (ranks > 1 || std::string(how) == "alone") all.push_back(std::make_unique<Training>(how, net, group));
  for (int i = 0; i < kWarmUp + steps; ++i) {  // interleaved, because the machine's load varies
    for (const auto& training : all) {
      group->barrier().wait();
      training->step(x, y);
    }
  }
  group->barrier().wait();
  if (me.rank != 0) return 0;
  for (const auto& training : all)
    std::printf("levin %d %s %s %.4f\n", ranks, net.c_str(), training->how().c_str(), training->ms());
  return 0;
}
