#pragma once
// Runs the module's steps on all replicas of this process; with one replica, the steps themselves.

#include <levin/trainer/module.h>
#include <levin/trainer/strategies/replicas.h>
#include <levin/trainer/strategy.h>

#include <optional>

namespace levin {

/// Turns a scalar into one row.
inline Tensor as_rows(const Tensor& t) { return t.dim() == 0 ? t.reshape({1}) : t; }

/// One step on all replicas, or on one module with the parts of a batch in turn, whose number need not be known.
class ReplicaRun {
 public:
  ReplicaRun(LevinModule& module, std::size_t parts = 0) : module_(module), link_(module.link_), parts_(parts) {}

  /// Runs a step and keeps its logged values separate. Called for each replica, possibly concurrently.
  std::vector<Tensor> step(std::size_t number, LevinModule& replica, const Batch& batch, const Replicas::Step& step);
  /// Returns the values logged by the parts; metrics are merged into the module's own.
  std::vector<LogPart> logged();
  /// Logs those values.
  void finish() {
    const auto parts = logged();
    if (MetricStore* store = metrics()) store->log(parts);
  }
  /// Destination of logged values; null for none.
  MetricStore* metrics() const { return link_.metrics(); }

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

/// Concatenates the outputs; combines the values logged by replicas into one per name, and merges their metrics into
/// the module's.
std::vector<Tensor> run_on_replicas(LevinModule& module, Strategy& strategy, const Batch& batch,
                                    const Replicas::Step& step);

/// Runs training_step, then training_step_end: losses are weighted by the samples of their parts, or by their own
/// weights.
StepOutput run_training_step(LevinModule& module, Strategy& strategy, const Batch& batch, int index);

/// Throws ShapeError unless the loss is a scalar.
void check_loss(const Tensor& loss);

}  // namespace levin
