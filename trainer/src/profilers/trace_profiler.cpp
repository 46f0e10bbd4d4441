#include <levin/core/io.h>
#include <levin/trainer/profilers/advanced_profiler.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <thread>

#include "src/profilers/operation_watch.h"
#include "src/profilers/stage_file.h"

namespace levin {
namespace {

std::size_t thread_number() { return std::hash<std::thread::id>()(std::this_thread::get_id()) % 1'000'000; }

}  // namespace

struct TraceProfiler::Data final : OperationSink {
  struct Event {
    std::string name;
    const char* category;
    double start, seconds;
    std::size_t thread;
    kernels::Work work{};
  };
  struct Open {
    std::string action;
    Phase phase;
    double start;
  };

  explicit Data(TraceProfilerOptions options_) : options(std::move(options_)) {}

  void add(Event event) {
    const std::lock_guard lock(mutex);
    if (events.size() < options.max_events)
      events.push_back(std::move(event));
    else
      ++left_out;
  }
  void operation(const char* kernel, Device, const kernels::Work& work, double start, double seconds) override {
    add({kernel, "kernel", start, seconds, thread_number(), work});
  }
  void close() {
    const Open o = open.back();
    open.pop_back();
    add({o.action, name_of(o.phase), o.start, options.clock() - o.start, thread_number()});
  }

  TraceProfilerOptions options;
  std::filesystem::path file;
  std::mutex mutex;
  std::vector<Event> events;
  std::size_t left_out = 0;
  std::vector<Open> open;
  std::unique_ptr<OperationWatch> watch;
};

TraceProfiler::TraceProfiler(TraceProfilerOptions options) : data_(std::make_unique<Data>(std::move(options))) {}
TraceProfiler::~TraceProfiler() = default;

void TraceProfiler::setup(Stage stage, const std::string& root) {
  data_->watch.reset();
  data_->file = stage_file(std::filesystem::path(root) / data_->options.filename, stage);
  data_->events.clear();
  data_->open.clear();
  data_->left_out = 0;
  if (data_->options.operations) data_->watch = std::make_unique<OperationWatch>(*data_);
}

void TraceProfiler::start(const std::string& action, Phase phase) {
  data_->open.push_back({action, phase, data_->options.clock()});
}

void TraceProfiler::stop(const std::string& action) {
  if (!data_->open.empty() && data_->open.back().action == action) data_->close();
}

std::string TraceProfiler::summary() const {
  const std::string more = data_->left_out > 0 ? fmt::format(", {} left out", data_->left_out) : "";
  return fmt::format("{}: {} events{}", data_->file.string(), data_->events.size(), more);
}

// Writes complete events ("ph": "X") with microseconds relative to the first one.
void TraceProfiler::teardown(Stage) {
  data_->watch.reset();
  while (!data_->open.empty()) data_->close();
  double first = data_->events.empty() ? 0 : data_->events[0].start;
  for (const auto& e : data_->events) first = std::min(first, e.start);
  nlohmann::json list = nlohmann::json::array();
  for (const auto& e : data_->events) {
    list.push_back({{"name", e.name},
                    {"cat", e.category},
                    {"ph", "X"},
                    {"ts", (e.start - first) * 1e6},
                    {"dur", e.seconds * 1e6},
                    {"pid", 0},
                    {"tid", e.thread}});
    if (e.work.bytes > 0) list.back()["args"] = {{"bytes", e.work.bytes}, {"flops", e.work.flops}};
  }
  std::filesystem::create_directories(data_->file.parent_path());
  io::write_file(data_->file, nlohmann::json{{"traceEvents", std::move(list)}, {"displayTimeUnit", "ms"}}.dump());
}

}  // namespace levin
