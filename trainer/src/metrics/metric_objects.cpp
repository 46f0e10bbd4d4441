// The part of MetricStore that handles metric objects.
#include <levin/autograd/ops.h>
#include <levin/trainer/metric_store.h>
#include <levin/trainer/strategy.h>

#include <algorithm>

namespace levin {
namespace {

std::string in_quotes(std::string_view name) { return "\"" + std::string(name) + "\""; }

/// For each state, "STATE" holds the numbers and "STATE/sizes" the shape.
void put_metric(StateMap& out, const StateDict& state) {
  for (const auto& [key, t] : state) {
    if (is_floating(t.dtype()))
      out.set(key, t.to_vector<double>());
    else
      out.set(key, t.to_vector<std::int64_t>());
    out.set(key + "/sizes", std::vector<std::int64_t>(t.sizes().begin(), t.sizes().end()));
  }
}

StateDict metric_state(const StateMap& saved) {
  StateDict dict;
  for (const auto& [key, value] : saved.values()) {
    if (key.ends_with("/sizes")) continue;
    const auto sizes = saved.get<std::vector<std::int64_t>>(key + "/sizes");
    const Shape shape{std::span<const std::int64_t>(sizes)};
    if (const auto* floats = std::get_if<std::vector<double>>(&value))
      dict.set(key, from_data(*floats, shape, {.dtype = kFloat64}));
    else
      dict.set(key, from_data(saved.get<std::vector<std::int64_t>>(key), shape));
  }
  return dict;
}

}  // namespace

void MetricStore::attach(Objects objects) {
  objects_ = std::move(objects);
  for (auto& m : metrics_)  // remove those of a module that no longer exists
    if (object_name(m.object).empty()) m.object = nullptr;
}

std::string MetricStore::object_name(const metrics::Metric* object) const {
  const auto at = std::find_if(objects_.begin(), objects_.end(), [&](const auto& o) { return o.second == object; });
  return at == objects_.end() ? std::string() : at->first;
}

void MetricStore::log(std::string_view name, metrics::Metric& object, const Tensor& last, const LogOptions& o) {
  if (object_name(&object).empty())
    throw ValueError("[log] " + in_quotes(name) + ": this metric belongs to no module. Make it by add_metric, so " +
                     "that checkpoints keep it.");
  for (const auto& m : metrics_)
    if (m.object == &object && (m.name != name || m.split != split_ || m.suffix != suffix_for(o)))
      throw ValueError("[log] " + in_quotes(name) + ": this metric is logged as " + in_quotes(m.name) +
                       " already. Make one for each name and each of training, validation and test.");
  const bool in_step = scope_ == Scope::step || scope_ == Scope::eval_step;
  if (in_step && o.on_step.value_or(scope_ == Scope::step) && !last.defined())
    throw ValueError("[log] " + in_quotes(name) +
                     ": the metric has no value of this step. Call it, metric(preds, target)," +
                     " in place of update, or log it with on_epoch only.");
  Metric& m = metrics_[open(name, o)];
  m.object = &object;
  m.stamp = ++stamp_;
  if (m.on_step) {
    m.step = last.item<double>();
    m.has_step = true;
  }
  m.has_sum = m.on_epoch;
}

void MetricStore::finish_object(Metric& m) {
  const bool changed = m.has_sum && m.object->update_count() != m.computed;
  if (!(ranks_ ? ranks_->any(changed) : changed)) return;
  m.computed = m.object->update_count();
  m.epoch = value_of_all(*m.object);
  m.has_epoch = true;
  m.stamp = ++stamp_;
}

/// Computes the metric from the samples of all ranks, merged in rank order; its own states do not change.
double MetricStore::value_of_all(metrics::Metric& object) const {
  if (!ranks_ || ranks_->world_size() == 1) return object.value();
  if (ranks_->data_ranks() == 1) {  // rank zero has seen every sample
    const double own = ranks_->is_global_zero() ? object.value() : 0.0;
    return ranks_->broadcast(full({}, own, {.dtype = kFloat64}), 0).item<double>();
  }
  const StateDict own = object.state_dict();
  StateMap part;
  put_metric(part, own);
  const auto parts = ranks_->gather(part);
  object.load_state_dict(metric_state(parts[0]));
  for (std::size_t r = 1; r < parts.size(); ++r) object.merge_state_dict(metric_state(parts[r]));
  const double value = object.value();
  object.load_state_dict(own);
  return value;
}

StateMap MetricStore::object_states() const {
  StateMap out;
  for (const auto& [name, object] : objects_) {
    if (object->update_count() == 0) continue;
    StateMap part;
    put_metric(part, object->state_dict());
    out.put(name, part);
  }
  return out;
}

void MetricStore::load_objects(const StateMap& state) {
  const auto logged = state.get<std::vector<std::string>>("objects");
  for (std::size_t i = 0; i < std::min(logged.size(), metrics_.size()); ++i)
    for (const auto& [name, object] : objects_)
      if (name == logged[i]) metrics_[i].object = object;

  for (const auto& [name, object] : objects_) {
    const StateMap saved = state.part("object/" + name);
    object->reset();
    if (!saved.empty()) object->load_state_dict(metric_state(saved));
  }
}

}  // namespace levin
