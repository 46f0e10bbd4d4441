// What replicas log apart from each other becomes one value of their batch.
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/trainer/metric_store.h>

#include <algorithm>

namespace levin {
namespace {

struct Share {
  Tensor value;
  double weight;
};

/// On the first one's device, in float64.
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

void MetricStore::log(const std::vector<LogPart>& parts) {
  using Entry = LogPart::Entry;
  struct Value {
    Entry first;
    std::vector<Share> shares;
  };
  std::vector<Value> values;  // in the order in which the first replica, then the next, has logged them
  for (const LogPart& part : parts) {
    for (const Entry& e : part.entries_) {
      auto at = std::ranges::find_if(
          values, [&](const Value& v) { return v.first.name == e.name && v.first.nth == e.nth; });
      if (at == values.end()) at = values.insert(values.end(), {e, {}});
      const auto weight = static_cast<double>(e.options.batch_size.value_or(part.samples_));
      if (e.value.defined() && e.value.numel() == 1) at->shares.push_back({e.value, weight});
    }
  }
  for (const auto& [first, shares] : values) {
    if (first.object) {
      log(first.name, *first.object, shares.empty() ? Tensor() : combined(shares, Reduce::mean), first.options);
      continue;
    }
    LogOptions options = first.options;
    double samples = 0;
    for (const Share& s : shares) samples += s.weight;
    if (options.batch_size || options.reduce == Reduce::mean) options.batch_size = static_cast<std::int64_t>(samples);
    arrive(first.name, combined(shares, options.reduce), options);
  }
}

}  // namespace levin
