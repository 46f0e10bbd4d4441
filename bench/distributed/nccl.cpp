// Benchmarks copies and NCCL for ./run silicon: copies between host and device, a group of one rank and DDP on it, and
// with several GPUs all-reduce by size and DDP by the number of GPUs. Ranks are threads.
// --check runs small sizes without timings, which would mean nothing in the emulator.
#include <levin/kernels/cuda.h>
#include <levin/levin.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

namespace levin::bench {
namespace {

using Json = nlohmann::json;
using distributed::ProcessGroup;

struct Options {
  bool check = false;
  std::string json;
};

/// Returns the median seconds per call including the device's work, measured on this thread; nothing under --check.
std::optional<double> seconds_of(const Options& o, const std::function<void()>& call) {
  call();
  if (o.check) return std::nullopt;
  std::vector<double> times;
  for (int i = 0; i < 11; ++i) {
    cuda::synchronize();
    const auto start = std::chrono::steady_clock::now();
    call();
    cuda::synchronize();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + 5, times.end());
  return times[5];
}

Json with_seconds(Json row, const std::optional<double>& seconds) {
  if (seconds) row["seconds"] = *seconds;
  return row;
}

std::vector<std::int64_t> sizes(const Options& o, std::int64_t from, std::int64_t to) {
  if (o.check) return {1000};
  std::vector<std::int64_t> all;
  for (std::int64_t n = from; n <= to; n *= 4) all.push_back(n);
  return all;
}

Json copy_row(const Options& o, const std::string& name, const Tensor& to, const Tensor& from) {
  const no_grad guard;
  to.zero_();
  const auto seconds = seconds_of(o, [&] { to.copy_(from); });
  const bool same = to.cpu().eq(from.cpu()).all().item<bool>();
  return with_seconds({{"name", name}, {"bytes", from.numel() * 4}, {"ok", same}}, seconds);
}

Json copy_rows(const Options& o) {
  Json rows = Json::array();
  for (const std::int64_t n : sizes(o, 1 << 18, 1 << 26)) {
    const Tensor values = arange(n).to(kFloat32), pinned = cuda::pin_memory(values), there = values.to(cuda(0));
    const Tensor room = empty({n}), device_room = empty({n}, {.device = cuda(0)});
    rows.push_back(copy_row(o, "pageable to device", device_room, values));
    rows.push_back(copy_row(o, "pinned to device", device_room, pinned));
    rows.push_back(copy_row(o, "device to pageable", room, there));
    rows.push_back(copy_row(o, "device to pinned", cuda::pin_memory(room), there));
    rows.push_back(copy_row(o, "device to device", device_room, there));
    if (cuda::device_count() < 2) continue;
    rows.push_back(copy_row(o, "device 0 to device 1", empty({n}, {.device = cuda(1)}), there));
  }
  return rows;
}

nn::Sequential net_of(const Options& o, int device) {
  const std::int64_t width = o.check ? 8 : 2048;
  manual_seed(1);
  nn::Sequential net{nn::Linear(width, width), nn::ReLU(), nn::Linear(width, width), nn::ReLU(),
                     nn::Linear(width, width)};
  net.to(cuda(device));
  return net;
}

/// The weights after some steps on this rank's inputs, and the time of a step.
struct Trained {
  std::vector<float> weights{};
  std::optional<double> seconds{};
};
Trained train(const Options& o, const std::shared_ptr<ProcessGroup>& group, bool timed) {
  const int device = cuda::current_device();
  nn::Sequential net = net_of(o, device);
  std::optional<distributed::DistributedDataParallel> ddp;
  if (group) ddp.emplace(net, group);
  optim::SGD sgd(net.parameters(), {.lr = 0.01, .momentum = 0.9});
  Generator rng(7);
  const Tensor x = randn({o.check ? 4 : 256, net.parameters()[0].size(1)}, {.generator = &rng}).to(cuda(device));
  const auto step = [&] {
    sgd.zero_grad();
    square((ddp ? (*ddp)(x) : net(x)) - 1.0).mean().backward();
    sgd.step();
  };
  for (int i = 0; i < 3; ++i) step();
  Trained trained{.weights = net.parameters()[0].detach().to_vector<float>()};
  if (timed) trained.seconds = seconds_of(o, step);
  return trained;
}

Json check_rows(const Options& o) {
  Json rows = Json::array();
  const cuda::DeviceGuard guard(0);
  const std::shared_ptr<ProcessGroup> group = distributed::make_process_group("cpu:gloo,cuda:nccl");
  const Tensor t = arange(1000).to(kFloat32).to(cuda(0)), out = empty({1000}, {.device = cuda(0)});
  group->all_reduce(t, distributed::ReduceOp::avg).wait();
  group->broadcast(t, 0).wait();
  group->all_gather(out, t).wait();
  const bool same = out.eq(arange(1000).to(kFloat32).to(cuda(0))).all().item<bool>();
  rows.push_back({{"name", "all_reduce, broadcast and all_gather of one rank return their input"}, {"ok", same}});
  const bool equal = train(o, group, false).weights == train(o, nullptr, false).weights;
  rows.push_back({{"name", "DDP matches the weights of the plain loop bit for bit"}, {"ok", equal}});
  return rows;
}

/// Runs `body` on n ranks, rank r on cuda:r, and rethrows an exception of a rank.
void on_ranks(int n, const std::function<void(const std::shared_ptr<ProcessGroup>&)>& body) {
  const distributed::TcpStore table("127.0.0.1", 0, {.server = true});
  std::vector<std::string> errors(static_cast<std::size_t>(n));
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r) {
    threads.emplace_back([&, r] {
      try {
        const cuda::DeviceGuard guard(r);
        const auto store = std::make_shared<distributed::TcpStore>("127.0.0.1", table.port());
        body(distributed::make_process_group("cpu:gloo,cuda:nccl",
                                             {.store = store, .rank = r, .world_size = n, .device = r}));
      } catch (const std::exception& e) {
        errors[static_cast<std::size_t>(r)] = e.what();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& e : errors) {
    if (!e.empty()) throw DeviceError(e);
  }
}

void sum_rows(const Options& o, int ranks, Json& rows) {
  on_ranks(ranks, [&](const std::shared_ptr<ProcessGroup>& group) {
    const Device device = cuda(cuda::current_device());
    for (const std::int64_t n : sizes(o, 1 << 10, 1 << 26)) {
      const Tensor t = full({n}, group->rank() + 1.0, {.device = device});
      group->all_reduce(t).wait();
      const bool right = t.eq(ranks * (ranks + 1) / 2.0).all().item<bool>();
      t.zero_();
      group->barrier().wait();
      const auto seconds = seconds_of(o, [&] { group->all_reduce(t).wait(); });
      if (group->rank() == 0)
        rows.push_back(with_seconds({{"ranks", ranks}, {"bytes", n * 4}, {"ok", right}}, seconds));
    }
  });
}

/// All ranks get the same inputs, so the weights equal those of a single rank.
void ddp_row(const Options& o, int ranks, const std::vector<float>& expected, Json& rows) {
  on_ranks(ranks, [&](const std::shared_ptr<ProcessGroup>& group) {
    const Trained trained = train(o, group, true);
    bool close = true;
    for (std::size_t i = 0; i < expected.size(); ++i)
      close = close && std::abs(trained.weights[i] - expected[i]) < 1e-4f;
    if (group->rank() == 0) rows.push_back(with_seconds({{"ranks", ranks}, {"ok", close}}, trained.seconds));
  });
}

Json measure(const Options& o) {
  Json report{
      {"copies", copy_rows(o)}, {"checks", Json::array()}, {"all_reduce", Json::array()}, {"ddp", Json::array()}};
  try {
    distributed::make_process_group("nccl", {.device = 0});
  } catch (const DeviceError& e) {
    report["missing"] = e.what();
    return report;
  }
  report["checks"] = check_rows(o);
  const int devices = cuda::device_count();
  if (devices < 2) return report;
  const auto expected = train(o, nullptr, false).weights;
  ddp_row(o, 1, expected, report["ddp"]);
  for (int n = 2; n <= devices; n = n < devices ? std::min(2 * n, devices) : n + 1) {
    sum_rows(o, n, report["all_reduce"]);
    ddp_row(o, n, expected, report["ddp"]);
  }
  return report;
}

int run(int argc, char** argv) {
  Options o;
  CommandLine line("Benchmarks copies and NCCL collectives on the GPUs of this machine.");
  line.add_flag("check", o.check, "Small sizes, no times");
  line.add_path("json", o.json, "File to write the rows to");
  if (!line.parse(argc, argv)) return 0;
  if (!cuda::is_available()) throw DeviceError(cuda::why_unavailable());
  if (!o.check && std::string(cuda::flavour()) == "EMULATE")
    throw UsageError("[levin_bench_nccl] the emulator's times say nothing about a GPU: give --check.");
  const Json report = measure(o);
  if (!o.json.empty()) io::write_file(o.json, report.dump(1) + "\n");
  std::size_t rows = 0, wrong = 0;
  for (const char* part : {"copies", "checks", "all_reduce", "ddp"}) {
    for (const Json& row : report[part]) {
      ++rows;
      if (!row["ok"]) ++wrong;
    }
  }
  const std::string missing = report.value("missing", "");
  std::printf("%zu rows, %zu wrong%s%s\n", rows, wrong, missing.empty() ? "" : ", no NCCL: ", missing.c_str());
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace levin::bench

int main(int argc, char** argv) {
  return levin::run_main([&] { return levin::bench::run(argc, argv); });
}
