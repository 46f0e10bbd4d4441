#include "src/loops/replica_run.h"

#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace levin {
namespace {

/// Restores a module's link.
struct Lent {
  ModuleLink& link;
  ModuleLink before;
  ~Lent() { link = before; }
};

/// Calls a step of a module. An error that comes from a module below it says where that module is.
template <class F>
auto run_step(const LevinModule& module, const F& f) {
  try {
    return f();
  } catch (Error& e) {
    if (e.origin()) nn::add_origin(e, module);
    throw;
  }
}

}  // namespace

std::vector<Tensor> ReplicaRun::step(std::size_t number, LevinModule& replica, const Batch& batch,
                                     const Replicas::Step& step) {
  if (number >= parts_.size()) parts_.resize(number + 1);
  Part& part = parts_[number];
  part.replica = &replica;
  part.logged.emplace(batch.size());
  ModuleLink link = link_;
  if (link.metrics()) link.part = &*part.logged;
  if (&replica != &module_) link.original = &module_;
  const Lent lent{replica.link_, std::exchange(replica.link_, link)};
  return run_step(replica, [&] { return step(number, replica, batch); });
}

std::vector<LogPart> ReplicaRun::logged() {
  std::vector<LogPart> logged;
  for (Part& part : parts_) {
    if (!part.replica) continue;  // there were fewer parts than replicas
    if (part.replica != &module_) take_metrics(*part.replica);
    logged.push_back(std::move(*part.logged));
  }
  return logged;
}

void ReplicaRun::take_metrics(LevinModule& replica) {
  for (std::size_t i = 0; i < replica.metrics_.size(); ++i) {
    metrics::Metric& own = *replica.metrics_[i].metric;
    if (own.update_count() > 0) module_.metrics_[i].metric->merge(own);
    own.reset();
  }
}

std::vector<Tensor> run_on_replicas(LevinModule& module, Strategy& strategy, const Batch& batch,
                                    const Replicas::Step& step) {
  Replicas* const replicas = strategy.replicas();
  if (!replicas) return run_step(module, [&] { return step(0, module, batch); });
  ReplicaRun run(module, replicas->size());
  auto outputs = replicas->run(batch, [&](std::size_t number, LevinModule& replica, const Batch& part) {
    return run.step(number, replica, part, step);
  });
  run.finish();
  return outputs;
}

namespace {

Device device_of(const Batch& part) {
  const auto t = std::ranges::find_if(part.tensors, [](const Tensor& x) { return x.defined(); });
  return t == part.tensors.end() ? kCpu : t->device();
}

/// Returns the loss of a replica's part (0 if it has none), then the extras.
std::vector<Tensor> flat(const StepOutput& out, Device device) {
  std::vector<Tensor> tensors = {out.empty() ? zeros({1}, {.device = device}) : out.loss().reshape({1})};
  for (const auto& [name, t] : out.extras()) tensors.push_back(as_rows(t));
  return tensors;
}

/// Outputs of the replicas with their numbers of samples.
struct Given {
  std::vector<StepOutput> outputs;
  std::vector<double> samples;
  double weight(std::size_t r) const {
    return outputs[r].empty() ? 0.0 : outputs[r].weight().value_or(samples[r]);
  }
};

void check_names(const Given& given) {
  const auto& first = given.outputs[0].extras();
  for (std::size_t r = 0; r < given.outputs.size(); ++r) {
    const auto& other = given.outputs[r].extras();
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    if (given.samples[r] > 0 && !std::equal(first.begin(), first.end(), other.begin(), other.end(), same))
      throw UsageError("[training_step] the names of the extras differ between devices. Return the same names.");
  }
}

StepOutput whole(const Given& given, const std::vector<Tensor>& joined) {
  std::map<std::string, Tensor> extras;
  auto tensor = joined.begin() + 1;
  for (const auto& [name, t] : given.outputs[0].extras()) extras[name] = *tensor++;
  double total = 0;
  bool own_weight = false;
  std::vector<double> weights;
  for (std::size_t r = 0; r < given.outputs.size(); ++r) {
    if (given.samples[r] == 0 && r > 0) continue;
    weights.push_back(given.weight(r));
    total += weights.back();
    own_weight = own_weight || given.outputs[r].empty() || given.outputs[r].weight();
  }
  if (!(total > 0)) return {Tensor(), extras};
  for (double& w : weights) w /= total;
  const Tensor shares = from_data(weights, {static_cast<std::int64_t>(weights.size())});
  StepOutput out((joined[0] * shares.to(joined[0].device(), joined[0].dtype())).sum(), extras);
  return own_weight ? out.weight(total) : out;
}

}  // namespace

StepOutput run_training_step(LevinModule& module, Strategy& strategy, const Batch& batch, int index) {
  Replicas* const replicas = strategy.replicas();
  if (!replicas) return run_step(module, [&] { return module.training_step_end(module.training_step(batch, index)); });
  Given given{std::vector<StepOutput>(replicas->size()), std::vector<double>(replicas->size())};
  const auto joined =
      run_on_replicas(module, strategy, batch, [&](std::size_t number, LevinModule& replica, const Batch& part) {
        StepOutput& out = given.outputs[number] = replica.training_step(part, index);
        if (!out.empty()) check_loss(out.loss());
        given.samples[number] = static_cast<double>(part.size());
        return flat(out, device_of(part));
      });
  check_names(given);
  return module.training_step_end(whole(given, joined));
}

void check_loss(const Tensor& loss) {
  if (loss.numel() == 1) return;
  throw ShapeError(fmt::format("[training_step] the loss has shape {}. Return one number, e.g. its mean.",
                               to_string(loss.sizes())));
}

}  // namespace levin
