#include <levin/trainer/module.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/core/capture/host_capture.h>
#include <levin/nn/container.h>
#include <levin/optim/clip.h>
#include <levin/trainer/callback.h>

#include <fmt/format.h>

#include <cmath>

namespace levin {

MetricStore* ModuleLink::metrics() const { return run && !run->config.barebones ? &run->metrics : nullptr; }

StepOutput::StepOutput(Tensor loss, std::map<std::string, Tensor> extras)
    : loss_(std::move(loss)), extras_(std::move(extras)) {}

StepOutput StepOutput::detached() const {
  StepOutput out = *this;
  if (!empty()) out.loss_ = loss_.detach();
  for (auto& [name, t] : out.extras_) t = t.detach();
  return out;
}

StepOutput StepOutput::copied() const {
  const no_grad guard;
  StepOutput out = *this;
  if (!empty()) out.loss_ = loss_.clone();
  for (auto& [name, t] : out.extras_) t = t.clone();
  return out;
}

StepOutput LevinModule::training_step(const Batch&, int) {
  throw UsageError(fmt::format("[fit] {} has no training_step. Write one.", type_name()));
}

Tensor LevinModule::predict_step(const Batch& batch, int) { return (*this)(batch[0]); }
Tensor LevinModule::predict_step(const Batch& batch, int index, int) { return predict_step(batch, index); }

Optimizers LevinModule::configure_optimizers() {
  throw UsageError(fmt::format("[fit] {} has no configure_optimizers. Write one.", type_name()));
}

void LevinModule::log(std::string_view name, const Tensor& value, const LogOptions& options) {
  if (link_.part) return link_.part->add(name, value, options);
  if (MetricStore* store = link_.metrics()) store->log(name, value, options);
}

void LevinModule::log(std::string_view name, double value, const LogOptions& options) {
  detail::require_not_captured("log", "a number of the host would be logged again by each replay. Log a tensor");
  if (link_.part) return link_.part->add(name, value, options);
  if (MetricStore* store = link_.metrics()) store->log(name, value, options);
}

void LevinModule::log(std::string_view name, metrics::Metric& metric, const LogOptions& options) {
  detail::require_not_captured("log", "a metric would not be updated by replays. Log a tensor, such as accuracy()");
  if (link_.part) return link_.part->add(name, metric, of_run(metric), options);
  if (MetricStore* store = link_.metrics()) store->log(name, metric, options);
}

Tensor LevinModule::log(const Tensor& x) { return levin::log(x); }
double LevinModule::log(double x) { return std::log(x); }

/// Maps a replica's metric to that of the original module.
metrics::Metric& LevinModule::of_run(metrics::Metric& own) {
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    if (link_.original && metrics_[i].metric.get() == &own) return *link_.original->metrics_[i].metric;
  return own;
}

void LevinModule::log_dict(const std::vector<std::pair<std::string, Tensor>>& values, const LogOptions& options) {
  for (const auto& [name, value] : values) log(name, value, options);
}

StepOutput LevinModule::training_step_end(const StepOutput& whole) { return whole; }

nn::Sequential* LevinModule::pipeline_module() {
  nn::Sequential* largest = nullptr;
  for (const auto& [name, child] : named_children()) {
    auto* const found = dynamic_cast<nn::Sequential*>(child);
    if (found && (!largest || found->parameter_count() > largest->parameter_count())) largest = found;
  }
  return largest;
}

std::int64_t LevinModule::current_epoch() const { return link_.run ? link_.run->state.epoch : 0; }

std::int64_t LevinModule::global_step() const { return link_.run ? link_.run->state.global_step : 0; }

std::int64_t LevinModule::estimated_stepping_batches() const {
  return link_.run && link_.run->estimated_stepping_batches ? link_.run->estimated_stepping_batches() : 0;
}

bool LevinModule::is_last_batch() const { return link_.run && link_.run->is_last_batch; }

ManualOptimization& LevinModule::manual_steps(const char* what) const {
  if (!link_.run || !link_.run->manual)
    throw UsageError(
        fmt::format("[{}] is for manual optimization during fit. Set automatic_optimization to false in "
                    "the constructor of {}.",
                    what, type_name()));
  return *link_.run->manual;
}

void LevinModule::check_count(const char* what, std::size_t requested, std::size_t returned) {
  if (requested != returned)
    throw UsageError(fmt::format("[{}] {} are requested, but configure_optimizers returned {}. Request {}.", what,
                                 requested, returned, returned));
}

void LevinModule::manual_backward(const Tensor& loss) { manual_steps("manual_backward").backward(loss); }

void LevinModule::keep_metric(const std::string& name, std::unique_ptr<metrics::Metric> metric) {
  for (const auto& [known, _] : metrics_)
    if (known == name)
      throw ValueError(
          fmt::format("[add_metric] there is a metric \"{}\" already. Give the second another name.", name));
  metrics_.push_back({name, std::move(metric)});
  attach_metrics();
}

void LevinModule::attach_metrics() {
  MetricStore* const store = link_.metrics();
  if (!store) return;
  MetricStore::Objects objects;
  for (const auto& [name, metric] : metrics_) objects.emplace_back(name, metric.get());
  store->attach(std::move(objects));
}

void LevinModule::save_hyperparameters(const StateMap& values) {
  for (const auto& [name, value] : values.values()) hparams_.set(name, value);
}

RunContext* LevinModule::set_run(RunContext* run) {
  MetricStore* const before = link_.metrics();
  const ModuleLink link{.run = run};
  if (before && !link.metrics()) before->attach({});  // the store may outlive this module
  if (!before && link.metrics())
    for (const auto& [name, metric] : metrics_) metric->reset();  // a new run begins
  until_next_run_.reset();
  RunContext* const old = std::exchange(link_, link).run;
  attach_metrics();
  return old;
}

std::weak_ptr<const void> LevinModule::until_next_run() {
  until_next_run_ = std::make_shared<const bool>(true);
  return until_next_run_;
}

void LevinModule::optimizer_zero_grad(optim::Optimizer& optimizer) { optimizer.zero_grad(); }

void LevinModule::backward(const Tensor& loss) { loss.backward(); }

void LevinModule::configure_gradient_clipping(optim::Optimizer& optimizer, std::optional<double> value,
                                              const std::string& algorithm, Strategy& strategy) {
  if (!value) return;
  const auto parameters = optimizer.parameters();
  if (algorithm == "value")
    optim::clip_grad_value_(parameters, *value);
  else
    strategy.clip_grad_norm(parameters, *value);
}

void LevinModule::optimizer_step(optim::Optimizer& optimizer, const Tensor& found_inf) {
  base_has_stepped_ = true;
  if (found_inf.defined())
    optimizer.step_unless(found_inf);
  else
    optimizer.step();
}

void LevinModule::lr_scheduler_step(const SchedulerHandle& scheduler, std::optional<double> metric) {
  scheduler.step(metric);
}

Tensor accuracy(const Tensor& logits, const Tensor& target) {
  const no_grad guard;
  return argmax(logits, 1).eq(target).to(kFloat32).mean();
}

}  // namespace levin
