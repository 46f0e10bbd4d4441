// Sums over the ranks of one host, by size: our transports, and Gloo's own ring over loopback.
// usage: levin_bench_all_reduce [--ranks N]        prints: transport  bytes  ms  GB/s (bytes summed up a second)
//        levin_bench_all_reduce [--ranks N] --latency-ms T        the same over TCP whose messages set out T ms later:
//        "ring" is the sum, "tree" a broadcast and the answer of the last rank (tools/cost_model.py)

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

using namespace levin;
using namespace levin::distributed;

namespace {

constexpr int64_t kSizes[] = {4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 40'000'000};  // bytes
constexpr int kRounds = 5;
constexpr double kBytesARound = 100e6;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// The best round's seconds a call. All ranks call alike.
template <class Call, class Barrier>
double time_of(int64_t bytes, const Call& call, const Barrier& barrier) {
  const int calls = static_cast<int>(std::clamp(kBytesARound / static_cast<double>(bytes), 3.0, 100.0));
  double best = 1e9;
  for (int round = 0; round <= kRounds; ++round) {
    barrier();
    const double start = seconds();
    for (int i = 0; i < calls; ++i) call();
    const double took = (seconds() - start) / calls;
    if (round > 0) best = std::min(best, took);  // the first one warms up
  }
  return best;
}

void print(int rank, const char* name, int64_t bytes, double s) {
  if (rank != 0) return;
  std::printf("%s %lld %.4f %.3f\n", name, static_cast<long long>(bytes), 1e3 * s,
              1e-9 * static_cast<double>(bytes) / s);
  std::fflush(stdout);
}

void time_levin(const RankInfo& me, const std::shared_ptr<Store>& store, const char* transport) {
  const auto own = std::make_shared<PrefixStore>(transport, store);
  const auto group =
      make_process_group("gloo", {.store = own, .rank = me.rank, .world_size = me.world_size, .transport = transport});
  for (const int64_t bytes : kSizes) {
    const Tensor t = zeros({bytes / 4});
    const double s = time_of(
        bytes, [&] { group->all_reduce(t).wait(); }, [&] { group->barrier().wait(); });
    print(me.rank, transport, bytes, s);
  }
}

void time_slow(const RankInfo& me, const std::shared_ptr<Store>& store, int latency_ms) {
  const auto group = make_process_group("gloo", {.store = store,
                                                 .rank = me.rank,
                                                 .world_size = me.world_size,
                                                 .transport = "tcp",
                                                 .latency = Milliseconds(latency_ms)});
  const auto best = [&](const auto& call) {
    double least = 1e9;
    for (int i = 0; i < 8; ++i) {
      group->barrier().wait();
      const double start = seconds();
      call();
      least = std::min(least, seconds() - start);
    }
    return least;
  };
  const int last = me.world_size - 1;
  const Tensor answer = zeros({1});
  for (const int64_t bytes : {4 << 10, 256 << 10, 1 << 20, 4 << 20}) {
    const Tensor t = zeros({bytes / 4});
    print(me.rank, "ring", bytes, best([&] { group->all_reduce(t).wait(); }));
    print(me.rank, "tree", bytes, best([&] {
            group->broadcast(t, 0).wait();
            if (me.rank == last) group->send(answer, 0).wait();
            if (me.rank == 0) group->recv(answer, last).wait();
          }));
  }
}

void time_gloo(const RankInfo& me, Store& meeting) {
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
  for (const int64_t bytes : kSizes) {
    std::vector<float> data(static_cast<std::size_t>(bytes / 4));
    float one = 0;
    const auto reduce = [&](float* p, std::size_t n) {
      gloo::AllreduceOptions options(context);
      options.setOutput(p, n);
      options.setReduceFunction([](void* to, const void* a, const void* b, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
          static_cast<float*>(to)[i] = static_cast<const float*>(a)[i] + static_cast<const float*>(b)[i];
        }
      });
      gloo::allreduce(options);
    };
    const double s = time_of(
        bytes, [&] { reduce(data.data(), data.size()); }, [&] { reduce(&one, 1); });
    print(me.rank, "gloo", bytes, s);
  }
  if (me.rank == 0) std::filesystem::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  int ranks = 2, latency = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--ranks") ranks = std::atoi(argv[i + 1]);
    if (std::string(argv[i]) == "--latency-ms") latency = std::atoi(argv[i + 1]);
  }
  if (!is_launched()) return launch({.processes = ranks}).exit_status();
  const RankInfo me = rank_info(environment());
  const auto store = open_store(me);
  join(*store, me);
  if (latency > 0) {
    time_slow(me, store, latency);
    return 0;
  }
  time_levin(me, store, "shared");
  time_levin(me, store, "tcp");
  time_gloo(me, *store);
  return 0;
}
