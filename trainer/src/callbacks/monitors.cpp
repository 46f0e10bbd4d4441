#include <levin/trainer/callbacks/monitors.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/autograd/row_gradient.h>
#include <levin/trainer/optimizers.h>
#include <levin/trainer/strategies/sharded_optimizer.h>
#include <levin/trainer/strategy.h>

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace levin {
namespace {

/// True if the loggers write the values of the step that is running or has just finished.
bool logs_step(const RunContext& run, bool finished) {
  return (run.state.global_step + (finished ? 0 : 1)) % run.config.log_every_n_steps == 0;
}

}  // namespace

GradientNormMonitor::GradientNormMonitor(GradientNormMonitorOptions options) : options_(options) {
  if (!(options_.norm_type > 0))
    throw UsageError(fmt::format("[GradientNormMonitor] norm_type is {}. Give a number above 0.", options_.norm_type));
}

void GradientNormMonitor::on_before_optimizer_step(RunContext& run) {
  if (!logs_step(run, /*finished=*/false)) return;
  const no_grad guard;
  const std::string prefix = fmt::format("grad_{:.1f}_norm", options_.norm_type);
  std::vector<std::string> names;
  std::vector<Tensor> list;
  const ShardedOptimizer* const sharded = run.strategy->sharded_optimizer();
  const bool stages = run.strategy->stages() != nullptr;
  bool shards = stages;
  for (std::size_t i = 0; i < run.optimizers->size(); ++i)
    for (const Parameter& p : run.optimizers->optimizer(i).parameters()) {
      const Tensor grad = gradient_values(p);
      if (!grad.defined() && !(stages && p.requires_grad())) continue;
      names.push_back(p.name);
      list.push_back(grad.defined() && p.numel() > 0 ? norm(grad.to(kFloat32), options_.norm_type)
                                                     : zeros({}, {.device = p.device()}));
      shards = shards || (sharded && !sharded->full_parameters({p}).front().is_same(p));
    }
  if (list.empty()) return;
  Tensor norms = stack(list, 0);
  if (shards) norms = sharded->full_norms(norms, options_.norm_type);
  for (std::size_t i = 0; options_.per_parameter && i < names.size(); ++i)
    run.metrics.log(prefix + "/" + names[i], norms.select(0, static_cast<int>(i)), {.on_step = true});
  run.metrics.log(prefix + "_total", norm(norms, options_.norm_type), {.on_step = true});
}

ThroughputMonitor::ThroughputMonitor(ThroughputMonitorOptions options) : options_(std::move(options)) {
  if (options_.window < 1)
    throw UsageError(fmt::format("[ThroughputMonitor] window is {}. Give 1 or more.", options_.window));
  if (options_.available_flops < 0)
    throw UsageError(
        fmt::format("[ThroughputMonitor] available_flops is {}. Give 0 or more.", options_.available_flops));
  if (!options_.batch_size_fn) options_.batch_size_fn = [](const Batch& batch) { return batch.size(); };
  if (!options_.clock) options_.clock = monotonic_seconds;
}

StateMap ThroughputMonitor::state() const {
  StateMap s;
  s.set("time", total_.time);
  s.set("flops", total_.flops);
  s.set("counts", std::vector<std::int64_t>{total_.batches, total_.samples, total_.lengths});
  return s;
}

void ThroughputMonitor::load_state(const StateMap& s) {
  const auto counts = s.get<std::vector<std::int64_t>>("counts");
  if (counts.size() != 3)
    throw StateError("[ThroughputMonitor] its saved state has different counts. Start a new training.");
  total_ = {s.get<double>("time"), s.get<double>("flops"), counts[0], counts[1], counts[2]};
}

void ThroughputMonitor::on_train_start(RunContext& run) {
  if (!run.resumed) total_ = {};
  marks_ = {total_};
  last_ = options_.clock();
  paused_ = 0;
}

void ThroughputMonitor::on_validation_start(RunContext&) { paused_ -= options_.clock(); }
void ThroughputMonitor::on_validation_end(RunContext&) { paused_ += options_.clock(); }

void ThroughputMonitor::on_train_batch_end(RunContext& run, const StepOutput&, const Batch& batch, int) {
  const double now = options_.clock();
  total_.time += now - last_ - std::exchange(paused_, 0.0);
  last_ = now;
  ++total_.batches;
  total_.samples += options_.batch_size_fn(batch);
  if (options_.length_fn) total_.lengths += options_.length_fn(batch);
  if (options_.flops_fn) total_.flops += options_.flops_fn(batch);
  marks_.push_back(total_);
  if (std::ssize(marks_) > options_.window + 1) marks_.pop_front();
  if (run.state.micro == 0 && logs_step(run, /*finished=*/true)) log(run);
}

void ThroughputMonitor::log(RunContext& run) const {
  const auto give = [&](const char* name, double value) { run.log(std::string("train/") + name, value); };
  const auto number = [](std::int64_t count) { return static_cast<double>(count); };
  give("time", total_.time);
  give("batches", number(total_.batches));
  give("samples", number(total_.samples));
  if (options_.length_fn) give("lengths", number(total_.lengths));
  const Sums& first = marks_.front();
  const double seconds = total_.time - first.time;
  if (!(seconds > 0)) return;
  give("device/batches_per_sec", number(total_.batches - first.batches) / seconds);
  give("device/samples_per_sec", number(total_.samples - first.samples) / seconds);
  if (options_.length_fn) give("device/items_per_sec", number(total_.lengths - first.lengths) / seconds);
  if (!options_.flops_fn) return;
  const double flops = (total_.flops - first.flops) / seconds;
  give("device/flops_per_sec", flops);
  if (options_.available_flops > 0) give("device/mfu", flops / options_.available_flops);
}

namespace {

using Stats = std::vector<std::pair<std::string, double>>;

void add_memory(Stats& stats) {
  double total = 0, available = 0, swap = 0, swap_free = 0, value = 0;
  std::ifstream info("/proc/meminfo");
  std::string key, unit;
  while (info >> key >> value && std::getline(info, unit)) {
    if (key == "MemTotal:") total = value;
    if (key == "MemAvailable:") available = value;
    if (key == "SwapTotal:") swap = value;
    if (key == "SwapFree:") swap_free = value;
  }
  if (total > 0) stats.emplace_back("cpu_vm_percent", 100.0 * (total - available) / total);
  stats.emplace_back("cpu_swap_percent", swap > 0 ? 100.0 * (swap - swap_free) / swap : 0.0);
  double pages = 0, resident = 0;
  std::ifstream own("/proc/self/statm");
  if (own >> pages >> resident)
    stats.emplace_back("process_rss_bytes", resident * static_cast<double>(sysconf(_SC_PAGESIZE)));
}

/// Returns the busy and total ticks of all cores since boot.
std::pair<double, double> cpu_ticks() {
  std::ifstream in("/proc/stat");
  std::string word;
  in >> word;  // "cpu", then user nice system idle iowait irq softirq steal
  double all = 0, idle = 0, value = 0;
  for (int i = 0; i < 8 && in >> value; ++i) {
    all += value;
    if (i == 3 || i == 4) idle += value;
  }
  return {all - idle, all};
}

}  // namespace

void DeviceStatsMonitor::log(RunContext& run, const char* hook) {
  Stats stats;
  const Device device = run.strategy->device();
  const MemoryStats memory = device_backend(device).memory_stats(device.index);
  stats.emplace_back("allocated_bytes", static_cast<double>(memory.allocated));
  stats.emplace_back("peak_allocated_bytes", static_cast<double>(memory.peak_allocated));
  if (options_.cpu_stats.value_or(device == kCpu)) {
    const auto [busy, all] = cpu_ticks();
    if (all > all_) stats.emplace_back("cpu_percent", 100.0 * (busy - busy_) / (all - all_));
    busy_ = busy;
    all_ = all;
    add_memory(stats);
  }
  for (const auto& [key, value] : stats) {
    const auto asked = [&name = key](const std::string& part) { return name.find(part) != std::string::npos; };
    if (options_.filter_keys.empty() || std::ranges::any_of(options_.filter_keys, asked))
      run.log(fmt::format("DeviceStatsMonitor.{}/{}", hook, key), value);
  }
}

void DeviceStatsMonitor::on_train_batch_start(RunContext& run, const Batch&, int) {
  if (logs_step(run, /*finished=*/false)) log(run, "on_train_batch_start");
}

void DeviceStatsMonitor::on_train_batch_end(RunContext& run, const StepOutput&, const Batch&, int) {
  if (run.state.micro == 0 && logs_step(run, /*finished=*/true)) log(run, "on_train_batch_end");
}

}  // namespace levin
