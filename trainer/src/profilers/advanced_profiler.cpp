#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/trainer/profilers/advanced_profiler.h>

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "src/profilers/operation_watch.h"

namespace levin {
namespace {

/// Returns the minimum time of a few calls, after a warm-up.
template <class F>
double least_seconds(Device device, const F& f) {
  const auto wait = [&] { device_backend(device).synchronize(device.index); };
  f();
  double least = 1e30;
  for (int i = 0; i < 5; ++i) {
    wait();
    const double start = monotonic_seconds();
    f();
    wait();
    least = std::min(least, monotonic_seconds() - start);
  }
  return least;
}

double per_second(double work, double seconds) { return seconds > 0 ? work / seconds : 0; }

}  // namespace

Roof measure_roof(Device device, DType dtype) {
  const no_grad guard;
  const std::int64_t n = device.type == DeviceType::cpu ? 768 : 4096;
  const bool floating = dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
  const TensorOptions options{.dtype = floating ? dtype : DType::f32, .device = device};
  const Tensor from = zeros({16 << 20}, {.device = device}), to = empty({16 << 20}, {.device = device});
  const Tensor a = ones({n, n}, options);
  const double moved = 2.0 * 4.0 * static_cast<double>(from.numel());
  const double multiplied = 2.0 * static_cast<double>(n * n * n);
  return {.bytes = moved / least_seconds(device, [&] { to.copy_(from); }),
          .flops = multiplied / least_seconds(device, [&] { matmul(a, a); })};
}

double AdvancedProfiler::Operation::share(const Roof& roof) const {
  const double needed = std::max(per_second(bytes, roof.bytes), per_second(flops, roof.flops));
  return per_second(needed, seconds);
}

bool operator==(const AdvancedProfiler::Key& a, const AdvancedProfiler::Key& b) = default;
std::strong_ordering operator<=>(const AdvancedProfiler::Key& a, const AdvancedProfiler::Key& b) = default;

struct AdvancedProfiler::Gathered {
  std::mutex mutex;
  std::map<Key, Operation> operations;
};

struct AdvancedProfiler::Watch final : OperationSink {
  explicit Watch(AdvancedProfiler& profiler_) : profiler(profiler_), watch(*this) {}
  void operation(const char* kernel, Device device, const kernels::Work& work, double, double seconds) override {
    const std::lock_guard lock(profiler.gathered_->mutex);
    Operation& o = profiler.gathered_->operations[{kernel, work.dtype, device.type}];
    ++o.calls;
    o.seconds += seconds;
    o.bytes += work.bytes;
    o.flops += work.flops;
  }
  AdvancedProfiler& profiler;
  OperationWatch watch;
};

AdvancedProfiler::AdvancedProfiler(AdvancedProfilerOptions options)
    : SimpleProfiler(options.table), options_(std::move(options)), gathered_(std::make_unique<Gathered>()) {}
AdvancedProfiler::~AdvancedProfiler() = default;

std::map<AdvancedProfiler::Key, AdvancedProfiler::Operation> AdvancedProfiler::operations() const {
  const std::lock_guard lock(gathered_->mutex);
  return gathered_->operations;
}

void AdvancedProfiler::setup(Stage stage, const std::string& root) {
  SimpleProfiler::setup(stage, root);
  watch_.reset();
  gathered_->operations.clear();
  watch_ = std::make_unique<Watch>(*this);
}

void AdvancedProfiler::teardown(Stage stage) {
  watch_.reset();
  SimpleProfiler::teardown(stage);
}

std::string AdvancedProfiler::summary() const {
  const auto all = operations();
  std::vector<std::pair<Key, Operation>> rows(all.begin(), all.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  double total = 0;
  for (const auto& [key, o] : rows) total += o.seconds;
  std::map<std::pair<DeviceType, DType>, Roof> roofs;
  std::string out = SimpleProfiler::summary();
  out += fmt::format("\n{:<28} {:>5} {:>9} {:>11} {:>9} {:>7} {:>9} {:>9} {:>6}  {}\n", "operation", "type", "calls",
                     "total ms", "mean us", "%", "GB/s", "GFLOP/s", "roof %", "bound by");
  for (std::size_t i = 0; i < std::min(rows.size(), options_.rows); ++i) {
    const auto& [key, o] = rows[i];
    const auto [roof, fresh] = roofs.try_emplace({key.device, key.dtype});
    if (fresh) roof->second = options_.roof(Device{key.device, 0}, key.dtype);
    const Roof& r = roof->second;
    const bool by_flops = per_second(o.flops, r.flops) > per_second(o.bytes, r.bytes);
    out += fmt::format("{:<28} {:>5} {:9} {:11.3f} {:9.2f} {:7.2f} {:9.2f} {:9.2f} {:6.1f}  {}\n", key.kernel,
                       name_of(key.dtype), o.calls, 1e3 * o.seconds, 1e6 * o.seconds / static_cast<double>(o.calls),
                       100 * per_second(o.seconds, total), per_second(o.bytes, o.seconds) / 1e9,
                       per_second(o.flops, o.seconds) / 1e9, 100 * o.share(r), by_flops ? "flops" : "bytes");
  }
  if (rows.size() > options_.rows) out += fmt::format("and {} more\n", rows.size() - options_.rows);
  for (const auto& [key, r] : roofs)
    out += fmt::format("roof of {} {}: {:.1f} GB/s by a copy, {:.1f} GFLOP/s by a matrix product\n",
                       to_string(Device{key.first, 0}), name_of(key.second), r.bytes / 1e9, r.flops / 1e9);
  return out;
}

}  // namespace levin
