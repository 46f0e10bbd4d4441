// Data parallelism without the Trainer: launch processes, form a process group, wrap the network, and shard the data.
//
//   ddp_by_hand --processes 2                     starts its own ranks
//   mpirun -n 2 ddp_by_hand                       a launcher starts the ranks
//   torchrun --nproc-per-node 2 --no-python ddp_by_hand
#include <fmt/format.h>
#include <levin/distributed/distributed.h>
#include <levin/levin.h>

using namespace levin;
using namespace levin::distributed;

namespace {

struct Options {
  std::int64_t processes = 2, batch_size = 96, steps = 100;
  std::string accelerator = "cpu";
  std::string data = data::kFashionMnistDir;
};

int train(const Options& o) {
  // 2. The ranks find each other through the store and form a process group.
  const RankInfo me = rank_info(environment());
  const bool several = me.world_size > 1, on_gpus = o.accelerator == "cuda";
  const Device device = on_gpus ? cuda(me.local_rank) : kCpu;
  const auto store = several ? open_store(me) : nullptr;
  if (several) join(*store, me);
  const auto group = make_process_group(
      on_gpus ? "cpu:gloo,cuda:nccl" : "gloo",
      {.store = store, .rank = me.rank, .world_size = me.world_size, .device = static_cast<int>(device.index)});

  // 3. The wrapper broadcasts rank 0's parameters to all replicas and averages the gradients while backward runs.
  manual_seed(static_cast<std::uint64_t>(me.rank));
  nn::Sequential net(nn::Flatten(), nn::Linear(784, 128), nn::ReLU(), nn::Linear(128, 10));
  net.to(device);
  DistributedDataParallel ddp(net, group);
  optim::SGD optimizer(net.parameters(), {.lr = 0.1, .momentum = 0.9});

  // 4. Every rank loads its own shard of each epoch; the shards' batches together make the global batch.
  const auto images = data::share(data::FashionMnist("train", o.data));
  const auto sampler = std::make_shared<data::DistributedSampler>(images->size(), me.world_size, me.rank);
  data::DataLoader loader(images, {.batch_size = o.batch_size / me.world_size, .sampler = sampler});

  Tensor loss = zeros({});
  std::int64_t step = 0;
  for (auto& [x, y] : loader) {
    if (step++ == o.steps) break;
    loss = cross_entropy(ddp(x.to(device)), y.to(device));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  ddp.check_parameters();  // throws if the replicas differ in a single bit
  const Tensor mean = loss.detach().clone();
  group->all_reduce(mean, distributed::ReduceOp::avg).wait();
  if (me.rank == 0) fmt::print("result: ranks={} loss={:.6f}\n", me.world_size, mean.item<double>());
  return 0;
}

int run(int argc, char** argv) {
  Options o;
  CommandLine line("Trains a small network on Fashion-MNIST in several processes.");
  line.add("processes", o.processes, "Number of processes, unless a launcher starts them", 1);
  line.add("batch-size", o.batch_size, "Images per step, over all processes", 1);
  line.add("steps", o.steps, "Training steps", 1);
  line.add("accelerator", o.accelerator, "cpu, or cuda with one device per process");
  line.add_path("data", o.data, "Folder of the IDX files");
  if (!line.parse(argc, argv)) return 0;
  if (o.accelerator != "cpu" && o.accelerator != "cuda")
    throw UsageError(fmt::format("--accelerator {}: choose cpu or cuda.", o.accelerator));
  // 1. Start this program again, once for each rank.
  if (o.processes > 1 && !has_launcher(environment()))
    return launch({.processes = static_cast<int>(o.processes)}).exit_status();
  return train(o);
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
