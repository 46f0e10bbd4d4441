// Benchmarks all-reduce over the ranks of one host, by size: Levin's transports (shared memory with tensors of
// shared_empty() and with ordinary ones, TCP), and Gloo's ring over loopback.
// usage: levin_bench_all_reduce [--ranks N] [--rounds N] [--bytes N] [--only NAME,...]
//        prints: transport  bytes  ms  GB/s (bytes reduced per second), and the ratio of TCP's GB/s to Gloo's by size
//        levin_bench_all_reduce [--ranks N] --latency-ms T
//        measures TCP for tools/cost_model.py: small messages that are delayed by T ms, or large ones without delay
//        if T is 0. "ring" is an all-reduce, "tree" a broadcast and the last rank's answer.

#include <gloo/allreduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <levin/autograd/ops.h>
#include <levin/distributed/distributed.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>

#include "../median.h"

using namespace levin;
using namespace levin::distributed;
using bench::median;

namespace {

constexpr int64_t kSizes[] = {4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 40'000'000};  // in bytes
constexpr double kBytesARound = 20e6;

/// An implementation of all-reduce. All ranks make the same calls.
struct Contender {
  const char* name;
  std::function<void(const Tensor&)> all_reduce;
  std::function<void()> barrier;
  std::function<Tensor(int64_t)> zeros = [](int64_t elements) { return levin::zeros({elements}); };
};

void print(int rank, const char* name, int64_t bytes, double s) {
  if (rank != 0) return;
  std::printf("%s %lld %.4f %.3f\n", name, static_cast<long long>(bytes), 1e3 * s,
              1e-9 * static_cast<double>(bytes) / s);
  std::fflush(stdout);
}

std::shared_ptr<ProcessGroup> group_over(const RankInfo& me, const std::shared_ptr<Store>& store, const char* name,
                                         const char* transport, int latency_ms = 0) {
  return make_process_group("gloo", {.store = std::make_shared<PrefixStore>(name, store),
                                     .rank = me.rank,
                                     .world_size = me.world_size,
                                     .transport = transport,
                                     .latency = std::chrono::milliseconds(latency_ms)});
}

Contender levin_by(const char* name, const std::shared_ptr<ProcessGroup>& group) {
  return {name, [group](const Tensor& t) { group->all_reduce(t).wait(); }, [group] { group->barrier().wait(); }};
}

/// Reduces tensors in memory that all ranks map, as the buckets of DistributedDataParallel are.
Contender in_place(const std::shared_ptr<ProcessGroup>& group) {
  Contender c = levin_by("in_place", group);
  c.zeros = [group](int64_t elements) {
    const Tensor t = group->shared_empty({elements});
    t.zero_();
    return t;
  };
  return c;
}

void time_slow(const RankInfo& me, const std::shared_ptr<Store>& store, int latency_ms) {
  const auto group = group_over(me, store, "tcp", "tcp", latency_ms);
  const auto line = group_over(me, store, "line", "shared");  // a barrier at which all ranks start together
  const auto best = [&](const auto& call) {
    double least = 1e9;
    for (int i = 0; i < 8; ++i) {
      line->barrier().wait();
      const double start = monotonic_seconds();
      call();
      least = std::min(least, monotonic_seconds() - start);
    }
    return least;
  };
  const int last = me.world_size - 1;
  const Tensor answer = zeros({1});
  const std::vector<int64_t> few = {4 << 10, 256 << 10, 1 << 20}, many = {16 << 20, 40'000'000};
  for (const int64_t bytes : latency_ms > 0 ? few : many) {
    const Tensor t = zeros({bytes / 4});
    print(me.rank, "ring", bytes, best([&] { group->all_reduce(t).wait(); }));
    print(me.rank, "tree", bytes, best([&] {
            group->broadcast(t, 0).wait();
            if (me.rank == last) group->send(answer, 0).wait();
            if (me.rank == 0) group->recv(answer, last).wait();
          }));
  }
}

Contender raw_gloo(const RankInfo& me, Store& meeting) {
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("levin-bench-" + std::to_string(me.store_port))).string();
  if (me.rank == 0) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    meeting.set("folder", folder);
  }
  meeting.wait({"folder"});
  gloo::rendezvous::FileStore store(folder);
  auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
  auto context = std::make_shared<gloo::rendezvous::Context>(me.rank, me.world_size);
  context->connectFullMesh(store, device);
  const auto reduce = [context](float* p, std::size_t n) {
    gloo::AllreduceOptions options(context);
    options.setOutput(p, n);
    options.setReduceFunction([](void* to, const void* a, const void* b, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) {
        static_cast<float*>(to)[i] = static_cast<const float*>(a)[i] + static_cast<const float*>(b)[i];
      }
    });
    gloo::allreduce(options);
  };
  const auto barrier = [reduce] {
    float one = 0;
    reduce(&one, 1);
  };
  barrier();
  if (me.rank == 0) std::filesystem::remove_all(folder);
  return {"gloo", [reduce](const Tensor& t) { reduce(t.data<float>(), static_cast<std::size_t>(t.numel())); }, barrier};
}

/// Interleaves the contenders, so that the machine's load affects all equally. Times are those of the best round,
/// ratios medians over all rounds.
void compare(const RankInfo& me, const std::vector<Contender>& contenders, int rounds, int64_t only) {
  for (const int64_t bytes : kSizes) {
    if (only != 0 && only != bytes) continue;
    std::map<std::string, Tensor> tensors;
    for (const Contender& c : contenders) tensors[c.name] = c.zeros(bytes / 4);
    const int calls = static_cast<int>(std::clamp(kBytesARound / static_cast<double>(bytes), 1.0, 100.0));
    std::map<std::string, std::vector<double>> took;  // seconds per call
    for (int round = 0; round <= rounds; ++round) {
      for (const Contender& c : contenders) {
        c.barrier();
        c.all_reduce(tensors[c.name]);  // brings the tensor back into the caches
        const double start = monotonic_seconds();
        for (int i = 0; i < calls; ++i) c.all_reduce(tensors[c.name]);
        if (round > 0) took[c.name].push_back((monotonic_seconds() - start) / calls);  // the first round is the warm-up
      }
    }
    for (const Contender& c : contenders) print(me.rank, c.name, bytes, *std::ranges::min_element(took[c.name]));
    std::vector<double> ratios;
    const std::vector<double>&tcp = took["tcp"], &gloo = took["gloo"];
    for (std::size_t i = 0; i < std::min(tcp.size(), gloo.size()); ++i) ratios.push_back(gloo[i] / tcp[i]);
    if (me.rank != 0 || ratios.empty()) continue;
    std::printf("tcp/gloo %lld %.3f\n", static_cast<long long>(bytes), median(ratios));
  }
}

}  // namespace

int main(int argc, char** argv) {
  int ranks = 2, latency = -1, rounds = 25;
  int64_t bytes = 0;
  std::string names;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--ranks") ranks = std::atoi(argv[i + 1]);
    if (std::string(argv[i]) == "--latency-ms") latency = std::atoi(argv[i + 1]);
    if (std::string(argv[i]) == "--rounds") rounds = std::atoi(argv[i + 1]);
    if (std::string(argv[i]) == "--bytes") bytes = std::atoll(argv[i + 1]);
    if (std::string(argv[i]) == "--only") names = argv[i + 1];
  }
  if (!is_launched()) return launch({.processes = ranks}).exit_status();
  const RankInfo me = rank_info(environment());
  const auto store = open_store(me);
  join(*store, me);
  if (latency >= 0) {
    time_slow(me, store, latency);
    return 0;
  }
  std::vector<Contender> all = {in_place(group_over(me, store, "in_place", "shared")),
                                levin_by("shared", group_over(me, store, "shared", "shared")),
                                levin_by("tcp", group_over(me, store, "tcp", "tcp")), raw_gloo(me, *store)};
  const auto is_left_out = [&](const Contender& c) {
    return ("," + names + ",").find("," + std::string(c.name) + ",") == std::string::npos;
  };
  if (!names.empty()) std::erase_if(all, is_left_out);
  compare(me, all, rounds, bytes);
  return 0;
}
