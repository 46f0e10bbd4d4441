// Benchmarks a step of DistributedDataParallel with and without overlap, over a network with latency.
// usage: levin_bench_overlap [--ranks N] [--layers N] [--latency-ms T] [--trace FILE]
//        FILE gets a trace for chrome://tracing or Perfetto
// prints: the step without communication, with communication after backward, with communication during backward, and
// the exposed communication, in milliseconds. Values are those of the best rounds, because the machine's load varies. A
// step ends when all ranks are done, also without communication, so that waiting for a slower rank is not counted as
// communication.

#include <levin/autograd/ops.h>
#include <levin/core/side_by_side.h>
#include <levin/distributed/distributed.h>
#include <levin/nn/nn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <thread>

using namespace levin;
using namespace levin::distributed;

namespace {

constexpr int kWidth = 256, kRounds = 40;
constexpr double kLayer = kWidth * (kWidth + 1) * 4.0 / (1024 * 1024);  // MiB; each layer is one bucket
constexpr int64_t kBatch = 4096;

double ms() { return 1000 * monotonic_seconds(); }

struct Span {
  std::string name;
  double begin, end;
  int row;  // 0: the step, 1: the exchange
};

enum class Mode { no_exchange, behind, during };

/// One rank's network and the measured times of its steps.
class Rank {
 public:
  /// `line` is the group whose barrier starts and ends the steps.
  Rank(int layers, std::shared_ptr<ProcessGroup> group, std::shared_ptr<ProcessGroup> line)
      : group_(std::move(group)), line_(std::move(line)) {
    for (int i = 0; i < layers; ++i) {
      net_.push_back(nn::Linear(kWidth, kWidth));
      net_.push_back(nn::ReLU());
    }
    share_module(net_, *group_);
    const DistributedDataParallelOptions options{.bucket_cap_mb = kLayer, .first_bucket_mb = kLayer};
    reducer_ = std::make_unique<Reducer>(net_.parameters(), group_, options);
    reducer_->register_comm_hook([this](ProcessGroup& g, const GradBucket& b) { return exchange(g, b); });
  }
  ~Rank() { join_watchers(); }

  double step(Mode mode) {
    mode_ = mode;
    reducer_->set_sync(mode != Mode::no_exchange);
    line_->barrier().wait();
    const double start = ms();
    const Tensor loss = square(net_(x_)).mean();
    const double middle = ms();
    loss.backward();
    line_->barrier().wait();
    const double end = ms();
    net_.zero_grad(false);
    join_watchers();
    if (tracing_) {
      spans_.push_back({"forward", start, middle, 0});
      spans_.push_back({"backward", middle, end, 0});
    }
    return end - start;
  }

  std::size_t buckets() const { return reducer_->buckets().size(); }
  void trace(const std::string& path) {
    tracing_ = true;
    step(Mode::during);
    std::ofstream out(path);
    out << "[";
    for (std::size_t i = 0; i < spans_.size(); ++i) {
      const Span& s = spans_[i];
      out << (i ? ",\n" : "\n") << R"({"ph":"X","pid":)" << group_->rank() << R"(,"tid":)" << s.row << R"(,"name":")"
          << s.name << R"(","ts":)" << static_cast<std::int64_t>(1e3 * s.begin) << R"(,"dur":)"
          << static_cast<std::int64_t>(1e3 * (s.end - s.begin)) << "}";
    }
    out << "\n]\n";
  }

 private:
  CommStages exchange(ProcessGroup& group, const GradBucket& bucket) {
    if (mode_ == Mode::behind) return {[&group, t = bucket.buffer] { group.all_reduce(t, ReduceOp::avg).wait(); }};
    const Work work = group.all_reduce(bucket.buffer, ReduceOp::avg);
    if (tracing_)
      watchers_.emplace_back([this, work, begin = ms(), name = "bucket " + std::to_string(bucket.index)] {
        work.wait();
        const std::lock_guard lock(mutex_);
        spans_.push_back({name, begin, ms(), 1});
      });
    return {[work] { work.wait(); }};
  }
  void join_watchers() {
    for (std::thread& t : watchers_) t.join();
    watchers_.clear();
  }

  std::shared_ptr<ProcessGroup> group_, line_;
  nn::Sequential net_;
  Tensor x_ = randn({kBatch, kWidth});
  std::unique_ptr<Reducer> reducer_;
  Mode mode_ = Mode::during;
  bool tracing_ = false;
  std::mutex mutex_;
  std::vector<std::thread> watchers_;
  std::vector<Span> spans_;
};

}  // namespace

int main(int argc, char** argv) {
  int ranks = 2, layers = 16, latency = 2;
  std::string trace;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--ranks") ranks = std::atoi(argv[i + 1]);
    if (option == "--layers") layers = std::atoi(argv[i + 1]);
    if (option == "--latency-ms") latency = std::atoi(argv[i + 1]);
    if (option == "--trace") trace = argv[i + 1];
  }
  if (!is_launched()) return launch({.processes = ranks}).exit_status();
  limit_thread(1);
  const RankInfo me = rank_info(environment());
  const auto store = open_store(me);
  join(*store, me);
  const auto group = [&](const char* transport, int delay) {
    return make_process_group("gloo", {.store = std::make_shared<PrefixStore>(transport, store),
                                       .rank = me.rank,
                                       .world_size = me.world_size,
                                       .transport = transport,
                                       .latency = std::chrono::milliseconds(delay)});
  };
  Rank rank(layers, group("tcp", latency), group("shared", 0));
  for (int i = 0; i < 2; ++i) rank.step(Mode::during);  // the ranks agree on the buckets
  double alone = 1e9, behind = 1e9, during = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    alone = std::min(alone, rank.step(Mode::no_exchange));
    behind = std::min(behind, rank.step(Mode::behind));
    during = std::min(during, rank.step(Mode::during));
  }
  if (!trace.empty()) rank.trace(trace + (me.rank == 0 ? "" : "." + std::to_string(me.rank)));
  if (me.rank != 0) return 0;
  const double whole = behind - alone, exposed = during - alone;
  std::printf("%d ranks, %d ms of latency, %zu buckets of %.2f MiB\n", me.world_size, latency, rank.buckets(), kLayer);
  std::printf("no exchange %.1f ms, behind backward %.1f ms, during backward %.1f ms\n", alone, behind, during);
  std::printf("exposed %.1f of %.1f ms: %.0f %%\n", exposed, whole, 100 * exposed / whole);
  return 0;
}
