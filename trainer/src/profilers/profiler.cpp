#include <levin/trainer/profilers/advanced_profiler.h>

#include <fmt/format.h>

#include "src/logging.h"

namespace levin {

namespace detail {
constinit thread_local Profiler* current_profiler = nullptr;
}

const char* name_of(Phase phase) {
  constexpr const char* kNames[] = {"loop",      "data",       "transfer",   "forward", "backward",
                                    "optimizer", "evaluation", "checkpoint", "logging", "hooks"};
  return kNames[static_cast<int>(phase)];
}

void NvtxProfiler::start(const std::string& action, Phase) { options_.push(action.c_str()); }
void NvtxProfiler::stop(const std::string&) { options_.pop(); }

std::shared_ptr<Profiler> make_profiler(const ProfilerChoice& choice) {
  const std::string& name = choice.name();
  if (choice.object()) return choice.object();
  if (name.empty() || name == "none") return nullptr;
  if (name == "simple") return std::make_shared<SimpleProfiler>();
  if (name == "advanced") return std::make_shared<AdvancedProfiler>();
  if (name == "trace") return std::make_shared<TraceProfiler>();
  if (name == "nvtx") return std::make_shared<NvtxProfiler>();
  throw UsageError(fmt::format("--profiler {}: there are simple, advanced, trace and nvtx. Use one of them.", name));
}

void ProfileScope::begin(std::string action, Phase phase) {
  action_ = std::move(action);
  profiler_->start(action_, phase);
}

ProfilerGuard::ProfilerGuard(Profiler* profiler, Stage stage, const std::string& root)
    : profiler_(profiler), former_(detail::current_profiler), stage_(stage) {
  if (!profiler_) return;
  profiler_->setup(stage, root);
  detail::current_profiler = profiler_;
}

ProfilerGuard::~ProfilerGuard() {
  if (!profiler_) return;
  detail::current_profiler = former_;
  try {
    profiler_->teardown(stage_);
  } catch (const std::exception& e) {
    logging::warn("the profile is incomplete: {}", e.what());  // must not end the run
  }
}

}  // namespace levin
