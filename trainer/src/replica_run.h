#pragma once
// The module's steps on all replicas of this process; with one, the steps themselves.

#include <levin/trainer/module.h>
#include <levin/trainer/strategy.h>

#include <optional>

namespace levin {

/// A number as one row.
inline Tensor as_rows(const Tensor& t) { return t.dim() == 0 ? t.reshape({1}) : t; }

/// One step of all replicas, or of one module with the parts of a batch in turn, whose number need not be known.
class ReplicaRun {
 public:
  ReplicaRun(LevinModule& module, std::size_t parts = 0) : module_(module), link_(module.link_), parts_(parts) {}

  /// What a step logs is kept apart. Called for each replica, also at the same time.
  std::vector<Tensor> step(std::size_t number, LevinModule& replica, const Batch& batch,
                           const Strategy::ReplicaStep& step);
  /// What the parts have logged; metrics gather in the module's own.
  std::vector<LogPart> logged();
  /// Logs it.
  void finish() {
    const auto parts = logged();
    if (link_.metrics) link_.metrics->log(parts);
  }
  /// Where values go; null for nowhere.
  MetricStore* metrics() const { return link_.metrics; }

 private:
  struct Part {
    LevinModule* replica = nullptr;
    std::optional<LogPart> logged{};
  };
  void take_metrics(LevinModule& replica);

  LevinModule& module_;
  const ModuleLink link_;
  std::vector<Part> parts_;
};

/// Outputs are joined; what the replicas log becomes one value a name, and their metrics gather in the module's.
std::vector<Tensor> run_on_replicas(LevinModule& module, Strategy& strategy, const Batch& batch,
                                    const Strategy::ReplicaStep& step);

/// training_step, then training_step_end: losses count by the samples of their parts, or by their own weights.
StepOutput run_training_step(LevinModule& module, Strategy& strategy, const Batch& batch, int index);

/// Throws ShapeError unless the loss is one number.
void check_loss(const Tensor& loss);

}  // namespace levin
