// A network with latency: what it gives, and how much of it a step of ddp sees.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <levin/autograd/autograd.h>
#include <levin/autograd/function.h>
#include <levin/distributed/ddp.h>
#include <levin/nn/nn.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

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

void in_slow_group(int n, Milliseconds latency, const std::string& transport,
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

/// A layer whose backward takes a while, but no core.
struct Slow : Function<Slow> {
  static Tensor forward(Context&, const Tensor& x) { return x * 1.0; }
  static Tensor backward(Context&, const Tensor& g) {
    std::this_thread::sleep_for(std::chrono::milliseconds(48));
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

TEST_CASE("transport: with latency every message arrives later, and sums stay what they are") {
  for (const std::string transport : {"tcp", "shared"}) {
    // Of the rank that began first; the others find messages under way.
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
    in_slow_group(3, Milliseconds(15), transport, [&](const std::shared_ptr<ProcessGroup>& group) {
      sum(*group, "many of three", 300'000, 6);  // a part of a rank is more than one message
      sum(*group, "few of three", 100, 6);
      if (const auto pair = group->new_group({0, 2})) sum(*pair, "many of two", 300'000, 3);
    });
    // Two times n - 1 rounds of a ring, with the first of which the announcements are under way. Over TCP few numbers
    // fit into a letter, and take one round.
    CHECK(longest["many of three"] >= 4 * 15);
    CHECK(longest["many of two"] >= 2 * 15);
    CHECK(longest["few of three"] >= 15);
  }
}

TEST_CASE("ddp: at most 40 % of what the exchange takes is seen by a step that overlaps it") {
  double exposed = 0, whole = 0;
  std::int64_t overlapped = 0;
  in_slow_group(2, Milliseconds(kLatency), "tcp", [&](const std::shared_ptr<ProcessGroup>& group) {
    Net net;
    bool behind = false;
    Reducer reducer(net.parameters(), group, {.bucket_cap_mb = 1e-3, .first_bucket_mb = 1e-3});  // one a layer
    reducer.register_comm_hook([&](ProcessGroup& g, const GradBucket& b) -> CommStages {
      if (behind) return {[&g, t = b.buffer] { g.all_reduce(t, ReduceOp::avg).wait(); }};
      const Work work = g.all_reduce(b.buffer, ReduceOp::avg);
      return {[work] { work.wait(); }};
    });
    const auto step = [&](bool exchanges, bool after) {
      behind = after;
      reducer.set_sync(exchanges);
      group->barrier().wait();
      const auto start = Clock::now();
      net(ones({2, 16})).sum().backward();
      const double took = ms_since(start);
      net.zero_grad(false);
      return took;
    };
    for (int i = 0; i < 2; ++i) step(true, false);  // they agree on the buckets
    double alone = 1e9, after = 1e9, during = 1e9;
    for (int round = 0; round < 3; ++round) {  // other programs may have the cores for a while
      alone = std::min(alone, step(false, false));
      after = std::min(after, step(true, true));
      during = std::min(during, step(true, false));
    }
    if (group->rank() != 0) return;
    exposed = during - alone;
    whole = after - alone;
    overlapped = reducer.overlapped();
  });
  MESSAGE(fmt::format("{:.0f} of {:.0f} ms are exposed", exposed, whole));
  CHECK(whole >= kLayers * kLatency);  // a letter each way for a bucket
  CHECK(exposed <= 0.4 * whole);
  CHECK(overlapped > 0);
}
