#include <levin/trainer/metric_store.h>

#include <levin/trainer/strategy.h>

#include <algorithm>
#include <limits>

#include "src/metrics/log_options.h"

namespace levin {
namespace {

std::string quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

ReduceOp over_ranks(Reduce reduce) {
  constexpr ReduceOp ops[] = {ReduceOp::avg, ReduceOp::sum, ReduceOp::min, ReduceOp::max};  // in the order of Reduce
  return ops[static_cast<int>(reduce)];
}

std::string suffix_of(int dataloader) { return "/dataloader_idx_" + std::to_string(dataloader); }

/// Returns the neutral element, which a rank without values contributes.
double nothing_of(Reduce reduce) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  return reduce == Reduce::min ? inf : reduce == Reduce::max ? -inf : 0.0;
}

}  // namespace

void MetricStore::set_scope(Scope scope, Split split, std::int64_t batch_size, int dataloader) {
  dataloader_ = dataloader;
  scope_ = scope;
  split_ = split;
  batch_size_ = batch_size;
}

std::string MetricStore::suffix_for(const LogOptions& o) const {
  return dataloader_ >= 0 && o.add_dataloader_idx ? suffix_of(dataloader_) : std::string();
}

std::size_t MetricStore::index_of(std::string_view name, const LogOptions& o) {
  const std::string suffix = suffix_for(o);
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    const Metric& m = metrics_[i];
    if (m.split != split_ || m.name != name || m.suffix != suffix) continue;
    if (to_numbers(m) != to_numbers(o))
      throw ValueError("[log] " + quoted(name) +
                       " was logged before with other options. Give the second another name.");
    return i;
  }
  Metric m;
  m.name = name;
  m.suffix = suffix;
  m.split = split_;
  from_numbers(to_numbers(o), m);
  metrics_.push_back(std::move(m));
  return metrics_.size() - 1;
}

std::size_t MetricStore::open(std::string_view name, LogOptions o) {
  if (scope_ == Scope::closed)
    throw ValueError("[log] " + quoted(name) + " cannot be logged here. Log in a step or in an epoch hook.");
  o.on_step = o.on_step.value_or(scope_ == Scope::step);
  o.on_epoch = o.on_epoch.value_or(scope_ != Scope::step);
  if (*o.on_step && scope_ == Scope::epoch)
    throw ValueError("[log] " + quoted(name) + ": on_step makes no sense in an epoch hook. Leave it out.");
  if (!*o.on_step && !*o.on_epoch)
    throw ValueError("[log] " + quoted(name) + ": on_step and on_epoch are both false. Set one of them.");
  if (o.sync_dist && o.rank_zero_only)
    throw ValueError("[log] " + quoted(name) + ": sync_dist is a value of all ranks, and rank_zero_only of one. " +
                     "Set one of them.");
  return index_of(name, o);
}

template <class V>
void MetricStore::arrive(std::string_view name, const V& value, const LogOptions& o) {
  const double weight = static_cast<double>(o.batch_size.value_or(scope_ == Scope::epoch ? 1 : batch_size_));
  const std::size_t metric = open(name, o);
  if (o.rank_zero_only && ranks_ && !ranks_->is_global_zero()) return;
  arrivals_.push_back({metric, HostRead(value), weight, ++stamp_});
  // Reduce now, since the time at which a value is processed depends on when it arrives.
  if (o.sync_dist && ranks_ && ranks_->syncs_logs() && metrics_[metric].on_step)
    arrivals_.back().of_all_ranks = HostRead(ranks_->reduce(value, over_ranks(o.reduce)));
  settle(/*wait=*/false);
}
template void MetricStore::arrive(std::string_view, const double&, const LogOptions&);
template void MetricStore::arrive(std::string_view, const Tensor&, const LogOptions&);

void MetricStore::settle(bool wait) const {
  for (; !arrivals_.empty() && (wait || arrivals_.front().value.ready()); arrivals_.pop_front())
    take_in(arrivals_.front());
}

void MetricStore::take_in(const Arrival& a) const {
  Metric& m = metrics_[a.metric];
  const double value = a.value.value();
  m.stamp = a.stamp;
  if (m.on_step) {
    m.step = a.of_all_ranks ? a.of_all_ranks->value() : value;
    m.has_step = true;
  }
  if (!m.on_epoch) return;
  if (!std::exchange(m.has_sum, true)) {
    m.sum = m.reduce == Reduce::mean ? value * a.weight : value;
    m.weight = a.weight;
    return;
  }
  switch (m.reduce) {
    case Reduce::mean: m.sum += value * a.weight; break;
    case Reduce::sum: m.sum += value; break;
    case Reduce::min: m.sum = std::min(m.sum, value); break;
    case Reduce::max: m.sum = std::max(m.sum, value); break;
  }
  m.weight += a.weight;
}

void MetricStore::start_epoch(Split split) {
  settle();
  for (auto& m : metrics_) {
    if (m.split != split) continue;
    m.has_sum = m.has_step = false;
    m.computed = -1;
    if (m.object) m.object->reset();
  }
}

void MetricStore::finish_epoch(Split split) {
  settle();
  const bool evaluates_on_ranks = split != Split::train && ranks_ && ranks_->data_ranks() > 1;
  if (evaluates_on_ranks) learn_of_ranks(split);
  for (auto& m : metrics_) {
    if (m.split != split) continue;
    if (!m.object)
      finish_sum(m);
    else if (m.has_sum || (evaluates_on_ranks && m.on_epoch))
      finish_object(m);
  }
}

void MetricStore::finish_sum(Metric& m) {
  double sum = m.has_sum ? m.sum : nothing_of(m.reduce), weight = m.has_sum ? m.weight : 0.0;
  bool known = m.has_sum;
  if (ranks_ && ranks_->syncs_logs() && m.sync_dist && m.on_epoch) {
    // Reduce even without a value: the other ranks wait for this one.
    weight = ranks_->reduce(weight, ReduceOp::sum);
    sum = ranks_->reduce(sum, m.reduce == Reduce::mean ? ReduceOp::sum : over_ranks(m.reduce));
    known = weight > 0;
  }
  if (!known) return;
  m.epoch = m.reduce == Reduce::mean ? sum / weight : sum;
  m.has_epoch = true;
  m.stamp = ++stamp_;
}

void MetricStore::clear() {
  arrivals_.clear();
  for (auto& m : metrics_)
    if (m.object) m.object->reset();
  metrics_.clear();
  scope_ = Scope::closed;
}

std::optional<double> MetricStore::find(std::string_view name) const {
  settle();
  std::optional<double> found;
  std::uint64_t newest = 0;
  const auto offer = [&](const Metric& m, double value) {
    if (found && m.stamp < newest) return;
    found = value;
    newest = m.stamp;
  };
  for (const auto& m : metrics_) {
    if (m.rank_zero_only || !name.starts_with(m.name) || !name.substr(m.name.size()).ends_with(m.suffix)) continue;
    const auto rest = name.substr(m.name.size(), name.size() - m.name.size() - m.suffix.size());
    const bool step_counts = m.has_step && m.split == Split::train;
    if (rest.empty() && m.on_epoch && m.has_epoch) offer(m, m.epoch);
    else if (rest.empty() && step_counts) offer(m, m.step);
    else if (rest == "_step" && m.on_epoch && step_counts) offer(m, m.step);
    else if (rest == "_epoch" && m.on_step && m.has_epoch) offer(m, m.epoch);
  }
  return found;
}

std::vector<std::string> MetricStore::names() const {
  std::vector<std::string> out;
  for (const auto& m : metrics_) {
    const std::string forms[] = {m.name + m.suffix, m.name + "_step" + m.suffix, m.name + "_epoch" + m.suffix};
    for (const auto& form : forms)
      if (find(form) && std::find(out.begin(), out.end(), form) == out.end()) out.push_back(form);
  }
  return out;
}

bool MetricStore::only_on_rank_zero(std::string_view name) const {
  return std::any_of(metrics_.begin(), metrics_.end(), [&](const Metric& m) {
    return m.rank_zero_only && (name == m.name + m.suffix || name == m.step_name() || name == m.epoch_name());
  });
}

MetricStore::Values MetricStore::progress_bar_values(std::optional<Split> only) const {
  settle();
  Values out;
  for (const auto& m : metrics_) {
    if (!m.prog_bar || (only && m.split != *only)) continue;
    if (m.has_step) out.emplace_back(m.step_name(), m.step);
    if (m.has_epoch) out.emplace_back(m.epoch_name(), m.epoch);
  }
  return out;
}

MetricStore::Values MetricStore::step_values() const {
  settle();
  Values out;
  for (const auto& m : metrics_)
    if (m.split == Split::train && m.logger && m.has_step) out.emplace_back(m.step_name(), m.step);
  return out;
}

MetricStore::Values MetricStore::epoch_values(Split split) const {
  settle();
  Values out;
  for (const auto& m : metrics_)
    if (m.split == split && m.logger && m.has_epoch) out.emplace_back(m.epoch_name(), m.epoch);
  return out;
}

std::map<std::string, double> MetricStore::results(Split split) const {
  settle();
  std::map<std::string, double> out;
  for (const auto& m : metrics_)
    if (m.split == split && m.has_epoch) out[m.name + m.suffix] = m.epoch;
  return out;
}

std::vector<std::map<std::string, double>> MetricStore::results_by_loader(Split split, std::size_t loaders) const {
  settle();
  std::vector<std::map<std::string, double>> out(loaders);
  for (const auto& m : metrics_) {
    if (m.split != split || !m.has_epoch) continue;
    // A pass over other loaders may have logged other names, whose values are not of this one.
    const bool of_other_ranks = ranks_ && ranks_->data_ranks() > 1;  // a rank may have had no batch
    if (!m.has_sum && !of_other_ranks) continue;
    for (std::size_t k = 0; k < loaders; ++k)
      if (m.suffix.empty() || m.suffix == suffix_of(static_cast<int>(k))) out[k][m.name + m.suffix] = m.epoch;
  }
  return out;
}

StateMap MetricStore::state() const {
  settle();
  std::vector<std::string> names, suffixes, objects;
  std::vector<std::int64_t> flags, ranks;
  std::vector<double> numbers;
  for (const auto& m : metrics_) {
    names.push_back(m.name);
    suffixes.push_back(m.suffix);
    objects.push_back(object_name(m.object));
    const auto [reduce, prog_bar, logger, on_step, on_epoch, of_ranks] = to_numbers(m);
    ranks.push_back(of_ranks);
    flags.insert(flags.end(), {static_cast<std::int64_t>(m.split), reduce, static_cast<std::int64_t>(m.stamp), prog_bar,
                               logger, on_step, on_epoch, m.has_step, m.has_sum, m.has_epoch});
    numbers.insert(numbers.end(), {m.step, m.sum, m.weight, m.epoch});
  }
  StateMap out;
  out.set("names", names);
  out.set("suffixes", suffixes);
  out.set("flags", flags);
  out.set("numbers", numbers);
  out.set("ranks", ranks);
  out.set("stamp", static_cast<std::int64_t>(stamp_));
  out.set("objects", objects);
  out.put("object", object_states());
  return out;
}

void MetricStore::load_state(const StateMap& state) {
  const auto names = state.get<std::vector<std::string>>("names");
  const auto suffixes =
      state.has("suffixes") ? state.get<std::vector<std::string>>("suffixes") : std::vector<std::string>(names.size());
  const auto flags = state.get<std::vector<std::int64_t>>("flags");
  const auto numbers = state.get<std::vector<double>>("numbers");
  const auto ranks =
      state.has("ranks") ? state.get<std::vector<std::int64_t>>("ranks") : std::vector<std::int64_t>(names.size());
  if (suffixes.size() != names.size() || ranks.size() != names.size() || flags.size() != names.size() * 10 ||
      numbers.size() != names.size() * 4)
    throw StateError("[state] the saved metrics have lists of different lengths. Another version wrote them.");
  arrivals_.clear();
  metrics_.clear();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto* f = &flags[i * 10];
    const auto* n = &numbers[i * 4];
    Metric m;
    m.name = names[i];
    m.suffix = suffixes[i];
    m.split = static_cast<Split>(f[0]);
    m.stamp = static_cast<std::uint64_t>(f[2]);
    from_numbers({f[1], f[3], f[4], f[5], f[6], ranks[i]}, m);
    m.has_step = f[7] != 0;
    m.has_sum = f[8] != 0;
    m.has_epoch = f[9] != 0;
    m.step = n[0];
    m.sum = n[1];
    m.weight = n[2];
    m.epoch = n[3];
    metrics_.push_back(std::move(m));
  }
  stamp_ = static_cast<std::uint64_t>(state.get<std::int64_t>("stamp"));
  if (state.has("objects")) load_objects(state);
}

LogPart::LogPart(std::int64_t samples) : samples_(samples) {}
LogPart::~LogPart() = default;
LogPart::LogPart(const LogPart&) = default;
LogPart::LogPart(LogPart&&) noexcept = default;
LogPart& LogPart::operator=(const LogPart&) = default;
LogPart& LogPart::operator=(LogPart&&) noexcept = default;

void LogPart::add(std::string_view name, const Tensor& value, const LogOptions& options) {
  add(Entry{std::string(name), value.detach(), nullptr, options});
}

void LogPart::add(std::string_view name, const metrics::Metric& own, metrics::Metric& of_run,
                  const LogOptions& options) {
  add(Entry{std::string(name), own.last(), &of_run, options});
}

std::string MetricStore::Metric::step_name() const { return name + (on_epoch ? "_step" : "") + suffix; }
std::string MetricStore::Metric::epoch_name() const { return name + (on_step ? "_epoch" : "") + suffix; }

}  // namespace levin
