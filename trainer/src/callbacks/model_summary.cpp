#include <levin/trainer/callbacks/model_summary.h>

#include <levin/autograd/modes.h>
#include <levin/trainer/module.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>

#include "src/profilers/operation_watch.h"

namespace levin {
namespace {

std::string grouped(std::int64_t n) {
  std::string digits = std::to_string(n);
  for (auto at = std::ssize(digits) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

struct Shown {
  std::string operator()(const std::string& text) const { return text; }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    return fmt::format("[{}]", fmt::join(list, ", "));
  }
  template <class T>
  std::string operator()(const T& number) const {
    return fmt::format("{}", number);
  }
};

int depth_of(const std::string& name) {
  return name.empty() ? 0 : 1 + static_cast<int>(std::count(name.begin(), name.end(), '.'));
}

/// The last line of a summary.
std::string totals(const nn::Module& module) {
  std::int64_t trainable = 0, all = 0, bytes = 0;
  for (const auto& [name, p] : module.named_parameters()) {
    all += p.numel();
    bytes += p.numel() * size_of(p.dtype());
    if (p.requires_grad()) trainable += p.numel();
  }
  return fmt::format("{} parameters, {} of them trainable, {:.1f} MB\n", grouped(all), grouped(trainable),
                     static_cast<double>(bytes) / 1e6);
}

/// "1.25 G" for 1.25e9.
std::string scaled(double value) {
  for (const auto& [unit, prefix] : {std::pair(1e12, "T"), {1e9, "G"}, {1e6, "M"}, {1e3, "k"}})
    if (value >= unit) return fmt::format("{:.4g} {}", value / unit, prefix);
  return fmt::format("{:.4g} ", value);
}

/// The work of one module during the counted calls.
struct Use {
  int calls = 0;
  std::string shape{};  // of its last output
  double flops = 0, bytes = 0;
};

/// Sums the work of the kernels that this thread runs.
class WorkCount final : public OperationSink {
 public:
  void operation(const char*, Device, const kernels::Work& work, double, double) override {
    if (std::this_thread::get_id() != thread_) return;
    flops += work.flops;
    bytes += work.bytes;
  }
  double flops = 0, bytes = 0;

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
};

/// Puts a module into evaluation mode and, at the end, each of its modules into its former mode.
class EvaluationMode {
 public:
  explicit EvaluationMode(nn::Module& module) {
    for (const auto& [name, m] : module.named_modules()) modes_.emplace_back(m, m->is_training());
    module.eval();
  }
  ~EvaluationMode() {
    for (const auto& [m, training] : modes_) m->train(training);  // parents come first
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  std::vector<std::pair<nn::Module*, bool>> modes_;
};

/// Counts the work of each module by hooks, as long as it lives.
class UseCount {
 public:
  explicit UseCount(nn::Module& module) {
    for (const auto& [name, m] : module.named_modules()) {
      hooks_.push_back(m->register_forward_pre_hook([this](nn::Module& self, const std::vector<Tensor>&) {
        Use& use = uses_[&self];
        ++use.calls;
        use.flops -= work_.flops;
        use.bytes -= work_.bytes;
      }));
      hooks_.push_back(m->register_forward_hook(
          [this](nn::Module& self, const std::vector<Tensor>&, const std::vector<Tensor>& outputs) {
            Use& use = uses_[&self];
            use.flops += work_.flops;
            use.bytes += work_.bytes;
            use.shape.clear();
            for (const Tensor& t : outputs) use.shape += (use.shape.empty() ? "" : " ") + to_string(t.sizes());
          }));
    }
  }
  ~UseCount() {
    for (HookHandle& hook : hooks_) hook.remove();
  }
  UseCount(const UseCount&) = delete;
  UseCount& operator=(const UseCount&) = delete;

  const Use& of(const nn::Module* module) { return uses_[module]; }

 private:
  WorkCount work_;
  const OperationWatch watch_{work_};
  std::map<const nn::Module*, Use> uses_;
  std::vector<HookHandle> hooks_;
};

}  // namespace

std::string summary(const nn::Module& module, int max_depth) {
  std::string out;
  for (const auto& [name, m] : module.named_modules()) {
    const int depth = depth_of(name);
    if (depth == 0 || (max_depth >= 0 && depth > max_depth)) continue;
    out += fmt::format("  {:<14} {:<16} {:>12}\n", name, m->type_name(), grouped(m->parameter_count()));
  }
  return out + totals(module);
}

std::string summary(nn::Module& module, const std::vector<Tensor>& inputs, int max_depth) {
  const no_grad guard;
  const EvaluationMode mode(module);
  UseCount uses(module);
  module.call(inputs);
  std::string out = fmt::format("  {:<22} {:<20} {:<20} {:>12} {:>12} {:>12}\n", "name", "type", "output", "parameters",
                                "FLOP", "bytes");
  for (const auto& [name, m] : module.named_modules()) {
    if (max_depth >= 0 && depth_of(name) > max_depth) continue;
    const Use& use = uses.of(m);
    out += fmt::format("  {:<22} {:<20} {:<20} {:>12} {:>12} {:>12}\n", name.empty() ? "(whole)" : name, m->type_name(),
                       use.calls == 0 ? "not called" : use.shape, grouped(m->parameter_count()), scaled(use.flops),
                       scaled(use.bytes) + "B");
  }
  return out + totals(module);
}

std::string summary(nn::Module& module, const Tensor& input, int max_depth) {
  return summary(module, std::vector<Tensor>{input}, max_depth);
}

void ModelSummary::on_fit_start(RunContext& run) {
  fmt::print(options_.out, "{}\n{}", run.module.type_name(), summary(run.module, options_.max_depth));
  if (const auto& values = run.module.hparams().values(); !values.empty()) {
    std::string line;
    for (const auto& [name, value] : values)
      line += fmt::format("{}{}={}", line.empty() ? "" : ", ", name, std::visit(Shown{}, value));
    fmt::print(options_.out, "hyper-parameters: {}\n", line);
  }
  std::fflush(options_.out);
}

}  // namespace levin
