// A network with latency: its effect on messages, and how much of it a DDP step exposes.
#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>
#include <levin/autograd/function.h>
#include <levin/distributed/ddp.h>
#include <levin/nn/nn.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "distributed/groups.h"

using namespace levin;
using namespace levin::distributed;
using levin::test::on_threads;

namespace {

constexpr int kLayers = 4, kLatency = 36;

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void in_slow_group(int n, Duration latency, const std::string& transport,
                   const std::function<void(const std::shared_ptr<ProcessGroup>&)>& body) {
  const TcpStore table("127.0.0.1", 0, {.server = true});
  on_threads(n, [&](int rank) {
    const auto store = std::make_shared<TcpStore>("127.0.0.1", table.port());
    body(make_process_group("gloo", {.store = store,
                                     .rank = rank,
                                     .world_size = n,
                                     .timeout = std::chrono::seconds(20),
                                     .transport = transport,
                                     .latency = latency}));
  });
}

/// Reductions that this rank has started and whose end backward has not seen, and the number of those it has seen.
thread_local std::vector<Work> begun;
thread_local int ended_in_backward = 0;

/// A layer whose backward lasts until the reductions of the layers behind it have ended. If these made no progress, it
/// would last ten seconds.
struct Slow : Function<Slow> {
  static Tensor forward(Context&, const Tensor& x) { return x * 1.0; }
  static Tensor backward(Context&, const Tensor& g) {
    const auto start = Clock::now();
    const auto ended = [](const Work& w) { return w.is_completed(); };
    while (!std::ranges::all_of(begun, ended) && ms_since(start) < 10'000)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ended_in_backward += static_cast<int>(std::erase_if(begun, ended));
    return g;
  }
};
struct Net : nn::Module {
  std::vector<nn::Linear*> layers;
  Net() {
    for (int i = 0; i < kLayers; ++i) layers.push_back(&add<nn::Linear>(std::to_string(i), 16, 16));
  }
  Tensor forward(const Tensor& x) override {
    Tensor y = x;
    for (nn::Linear* layer : layers) y = Slow::apply((*layer)(y));
    return y;
  }
};

}  // namespace

TEST_CASE("transport: with latency every message arrives later, and sums are unchanged") {
  for (const std::string transport : {"tcp", "shared"}) {
    // The time of the rank that started first; the others find messages in flight.
    std::mutex mutex;
    std::map<std::string, double> longest;
    const auto sum = [&](ProcessGroup& group, const std::string& name, int64_t count, double of_ranks) {
      const Tensor t = arange(count).to(kFloat32) * static_cast<double>(group.rank() + 1);
      const auto start = Clock::now();
      group.all_reduce(t).wait();
      const double took = ms_since(start);
      CHECK(t.to_vector<float>() == (arange(count).to(kFloat32) * of_ranks).to_vector<float>());
      const std::lock_guard lock(mutex);
      longest[name] = std::max(longest[name], took);
    };
    in_slow_group(3, std::chrono::milliseconds(15), transport, [&](const std::shared_ptr<ProcessGroup>& group) {
      sum(*group, "many of three", 300'000, 6);  // a rank's part takes more than one message
      sum(*group, "few of three", 100, 6);
      if (const auto pair = group->new_group({0, 2})) sum(*pair, "many of two", 300'000, 3);
    });
    // A ring takes 2 (n - 1) rounds, and the headers are in flight with the first one. Over TCP, few numbers are
    // reduced eagerly in one round.
    CHECK(longest["many of three"] >= 4 * 15);
    CHECK(longest["many of two"] >= 2 * 15);
    CHECK(longest["few of three"] >= 15);
  }
}

TEST_CASE("ddp: three of four all-reduces end while backward runs, so a step waits for a quarter of them") {
  in_slow_group(2, std::chrono::milliseconds(kLatency), "tcp", [&](const std::shared_ptr<ProcessGroup>& group) {
    Net net;
    Reducer reducer(net.parameters(), group, {.bucket_cap_mb = 1e-3, .first_bucket_mb = 1e-3});  // one per layer
    reducer.register_comm_hook([&](ProcessGroup& g, const GradBucket& b) -> CommStages {
      begun.push_back(g.all_reduce(b.buffer, ReduceOp::avg));
      return {[work = begun.back()] { work.wait(); }};
    });
    for (int step = 0; step < 4; ++step) {
      begun.clear();
      ended_in_backward = 0;
      net(ones({2, 16})).sum().backward();
      net.zero_grad(false);
      if (step < 2) continue;  // the ranks agree on the buckets first
      CHECK(ended_in_backward == kLayers - 1);
      CHECK(begun.size() == 1);
    }
    CHECK(reducer.overlapped() >= 2 * (kLayers - 1));
  });
}
