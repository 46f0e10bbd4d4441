// Compares a step with DataParallel (one process) and DistributedDataParallel (one process per device) on this CPU.
// usage: levin_bench_dp_ddp [--devices N]        prints: ms per step, and the bytes that N separate devices would move

#include <levin/autograd/ops.h>
#include <levin/core/parallel.h>
#include <levin/core/side_by_side.h>
#include <levin/distributed/distributed.h>
#include <levin/nn/nn.h>
#include <levin/optim/optim.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

using namespace levin;
using namespace levin::distributed;

namespace {

constexpr int64_t kBatch = 512, kIn = 784, kHidden = 1024, kOut = 10;
constexpr int kSteps = 30;

struct Net : nn::Module {
  nn::Linear& fc1 = add<nn::Linear>("fc1", kIn, kHidden);
  nn::Linear& fc2 = add<nn::Linear>("fc2", kHidden, kHidden);
  nn::Linear& fc3 = add<nn::Linear>("fc3", kHidden, kOut);
  Tensor forward(const Tensor& x) override { return fc3(relu(fc2(relu(fc1(x))))); }
};

/// Returns the time of the fastest step, in ms.
template <class Forward, class Before>
double time_steps(Net& net, const Tensor& x, const Tensor& y, const Forward& forward, const Before& before) {
  optim::SGD optimizer(net.parameters(), {.lr = 0.01});
  double best = 1e9;
  for (int i = 0; i < kSteps; ++i) {
    before();
    const auto start = std::chrono::steady_clock::now();
    optimizer.zero_grad();
    cross_entropy(forward(x), y).backward();
    optimizer.step();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (i > 2) best = std::min(best, took.count());
  }
  return best;
}

/// Prints the bytes that n devices would move per step. dp scatters the batch, replicates the parameters, gathers the
/// outputs, and moves the gradients of both back. ddp loads parts of the batch and all-reduces the gradients over a
/// ring.
void print_bytes(const Net& net, double n) {
  double parameters = 0;
  for (const Parameter& p : net.parameters()) parameters += static_cast<double>(p.numel()) * 4;
  const double inputs = kBatch * kIn * 4.0, outputs = kBatch * kOut * 4.0, away = (n - 1) / n, mib = 1024.0 * 1024.0;
  const double dp = inputs + 2 * (n - 1) * parameters + away * (inputs + 2 * outputs);
  std::printf("bytes per step: dp %.2f MiB, all through the first device; ddp %.2f MiB, %.2f per device\n", dp / mib,
              (inputs + 2 * (n - 1) * parameters) / mib, (inputs / n + 2 * away * parameters) / mib);
}

}  // namespace

int main(int argc, char** argv) {
  const int n = argc == 3 && std::string(argv[1]) == "--devices" ? std::atoi(argv[2]) : 2;
  if (!is_launched()) return launch({.processes = n}).exit_status();
  const RankInfo me = rank_info(environment());
  const auto store = open_store(me);
  join(*store, me);
  const auto group = make_process_group("gloo", {.store = store, .rank = me.rank, .world_size = me.world_size});
  const Tensor x = randn({kBatch, kIn}), y = randint(0, kOut, {kBatch});
  const auto nothing = [] {};
  double one = 0, dp = 0;
  if (me.rank == 0) {  // the other ranks wait for it
    Net net;
    one = time_steps(net, x, y, [&](const Tensor& t) { return net(t); }, nothing);
    Net wrapped;
    DataParallel parallel(wrapped, std::vector<Device>(static_cast<std::size_t>(n), kCpu));
    dp = time_steps(wrapped, x, y, [&](const Tensor& t) { return parallel(t); }, nothing);
  }
  group->barrier().wait();
  limit_thread(std::max(1, num_threads() / n));
  Net net;
  DistributedDataParallel ddp(net, group);
  const int64_t part = kBatch / n;
  const double of_ddp = time_steps(
      net, x.narrow(0, me.rank * part, part), y.narrow(0, me.rank * part, part),
      [&](const Tensor& t) { return ddp(t); }, [&] { group->barrier().wait(); });
  if (me.rank != 0) return 0;
  std::printf("ms per step on %d devices: one device with all threads %.2f, dp %.2f, ddp %.2f\n", n, one, dp, of_ddp);
  print_bytes(net, n);
  return 0;
}
