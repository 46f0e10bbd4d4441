// Combines the values that replicas log separately into one value of their batch.
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/trainer/metric_store.h>

#include <algorithm>
#include <iterator>

#include "src/metrics/log_options.h"

namespace levin {
namespace {

struct Share {
  Tensor value;
  double weight;
};

/// Returns a float64 tensor on the device of the first value.
Tensor combined(const std::vector<Share>& shares, Reduce reduce) {
  const no_grad guard;
  const auto here = [&](const Share& s) { return s.value.to(shares[0].value.device()).to(kFloat64).reshape({}); };
  if (shares.size() == 1) return here(shares[0]);
  double whole = 0;
  for (const Share& s : shares) whole += s.weight;
  Tensor result;
  for (const Share& s : shares) {
    const Tensor value = reduce == Reduce::mean ? here(s) * (s.weight / whole) : here(s);
    if (!result.defined())
      result = value;
    else if (reduce == Reduce::min)
      result = minimum(result, value);
    else if (reduce == Reduce::max)
      result = maximum(result, value);
    else
      result = result + value;
  }
  return result;
}

}  // namespace

void LogPart::add(std::string_view name, double value, const LogOptions& options) {
  add(Entry{std::string(name), full({}, value, {.dtype = kFloat64}), nullptr, options});
}

void LogPart::add(Entry entry) {
  entry.nth = static_cast<int>(std::ranges::count(entries_, entry.name, &Entry::name));
  entries_.push_back(std::move(entry));
}

std::vector<MetricStore::Joined> MetricStore::join(const std::vector<LogPart>& parts) {
  using Entry = LogPart::Entry;
  struct Value {
    Entry first;
    std::vector<Share> shares;
  };
  std::vector<Value> values;  // in order of first log, replica by replica
  for (const LogPart& part : parts) {
    for (const Entry& e : part.entries_) {
      auto at =
          std::ranges::find_if(values, [&](const Value& v) { return v.first.name == e.name && v.first.nth == e.nth; });
      if (at == values.end()) at = values.insert(values.end(), {e, {}});
      const auto weight = static_cast<double>(e.options.batch_size.value_or(part.samples_));
      if (e.value.defined() && e.value.numel() == 1) at->shares.push_back({e.value, weight});
    }
  }
  std::vector<Joined> result;
  for (const auto& [first, shares] : values) {
    Joined& j = result.emplace_back(Joined{first.name, {}, first.object, first.options});
    if (!shares.empty() || !first.object)
      j.value = combined(shares, first.object ? Reduce::mean : first.options.reduce);
    double samples = 0;
    for (const Share& s : shares) samples += s.weight;
    if (!first.object && (j.options.batch_size || j.options.reduce == Reduce::mean))
      j.options.batch_size = static_cast<std::int64_t>(samples);
  }
  return result;
}

void MetricStore::log(const Joined& value) {
  if (value.object)
    log(value.name, *value.object, value.value, value.options);
  else
    arrive(value.name, value.value, value.options);
}

void MetricStore::log(const std::vector<LogPart>& parts) {
  for (const Joined& value : join(parts)) log(value);
}

StateMap MetricStore::joined(const std::vector<LogPart>& parts) const {
  std::vector<std::string> names, objects;
  std::vector<double> values;
  std::vector<std::int64_t> options, batch_sizes, indexed, defined;
  for (const Joined& j : join(parts)) {
    names.push_back(j.name);
    objects.push_back(object_name(j.object));
    defined.push_back(j.value.defined());
    values.push_back(j.value.defined() ? j.value.item<double>() : 0.0);
    const LogOptions& o = j.options;
    std::ranges::copy(to_numbers(o), std::back_inserter(options));
    batch_sizes.push_back(o.batch_size.value_or(-1));
    indexed.push_back(o.add_dataloader_idx);
  }
  StateMap out;
  out.set("names", names);
  out.set("objects", objects);
  out.set("values", values);
  out.set("defined", defined);
  out.set("options", options);
  out.set("batch_sizes", batch_sizes);
  out.set("indexed", indexed);
  return out;
}

void MetricStore::log(const StateMap& joined) {
  const auto names = joined.get<std::vector<std::string>>("names");
  const auto objects = joined.get<std::vector<std::string>>("objects");
  const auto values = joined.get<std::vector<double>>("values");
  const auto defined = joined.get<std::vector<std::int64_t>>("defined");
  const auto options = joined.get<std::vector<std::int64_t>>("options");
  const auto batch_sizes = joined.get<std::vector<std::int64_t>>("batch_sizes");
  const auto indexed = joined.get<std::vector<std::int64_t>>("indexed");
  for (std::size_t i = 0; i < names.size(); ++i) {
    Joined value{.name = names[i],
                 .value = defined[i] != 0 ? full({}, values[i], {.dtype = kFloat64}) : Tensor(),
                 .object = nullptr,
                 .options = {.batch_size = batch_sizes[i] < 0 ? std::nullopt : std::optional(batch_sizes[i]),
                             .add_dataloader_idx = indexed[i] != 0}};
    from_numbers(numbers_at(options, i), value.options);
    for (const auto& [name, object] : objects_)
      if (!name.empty() && name == objects[i]) value.object = object;
    log(value);
  }
}

}  // namespace levin
