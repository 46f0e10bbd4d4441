// The part of MetricStore that makes all ranks know the same metrics: a rank that had no batch has logged none, and the
// others wait for its part of their values.
#include <levin/trainer/metric_store.h>
#include <levin/trainer/strategy.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>

#include "src/metrics/log_options.h"

namespace levin {
namespace {

/// Checks in one exchange whether all ranks have the same number: no bit may differ.
bool same_on_all(const Strategy& ranks, std::uint64_t number) {
  std::array<std::uint8_t, 128> bits{};
  for (std::size_t i = 0; i < 64; ++i) bits[(number >> i & 1) ? i : 64 + i] = 1;
  ranks.any(bits);
  for (std::size_t i = 0; i < 64; ++i)
    if (bits[i] && bits[64 + i]) return false;
  return true;
}

}  // namespace

std::string MetricStore::key_of(const Metric& m) const {
  return m.name + '\n' + m.suffix + '\n' + object_name(m.object);
}

StateMap MetricStore::known_in(Split split) const {
  std::vector<std::string> names, suffixes, objects;
  std::vector<std::int64_t> options;
  for (const Metric& m : metrics_) {
    if (m.split != split) continue;
    names.push_back(m.name);
    suffixes.push_back(m.suffix);
    objects.push_back(object_name(m.object));
    std::ranges::copy(to_numbers(m), std::back_inserter(options));
  }
  StateMap out;
  out.set("names", names);
  out.set("suffixes", suffixes);
  out.set("objects", objects);
  out.set("options", options);
  return out;
}

std::vector<MetricStore::Metric> MetricStore::without_values(const StateMap& known, Split split) const {
  const auto names = known.get<std::vector<std::string>>("names");
  const auto suffixes = known.get<std::vector<std::string>>("suffixes");
  const auto objects = known.get<std::vector<std::string>>("objects");
  const auto options = known.get<std::vector<std::int64_t>>("options");
  std::vector<Metric> out(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    Metric& m = out[i];
    m.name = names[i];
    m.suffix = suffixes[i];
    m.split = split;
    from_numbers(numbers_at(options, i), m);
    for (const auto& [name, object] : objects_)
      if (name == objects[i]) m.object = object;
  }
  return out;
}

void MetricStore::learn_of_ranks(Split split) {
  std::string keys;
  for (const Metric& m : metrics_)
    if (m.split == split) keys += key_of(m) + '\n';
  if (same_on_all(*ranks_, std::hash<std::string>{}(keys))) return;

  // Order of the metrics on all ranks: as rank 0 logged them, followed by the additional ones of rank 1, and so on.
  std::vector<Metric> all;
  const auto find = [this](std::vector<Metric>& in, const Metric& m) {
    return std::ranges::find_if(in, [&](const Metric& other) {
      return other.split == m.split && key_of(other) == key_of(m);
    });
  };
  for (const StateMap& known : ranks_->gather(known_in(split)))
    for (Metric& m : without_values(known, split))
      if (find(all, m) == all.end()) all.push_back(std::move(m));
  for (Metric& m : all)
    if (const auto own = find(metrics_, m); own != metrics_.end()) m = *own;
  std::erase_if(metrics_, [&](const Metric& m) { return m.split == split; });
  metrics_.insert(metrics_.end(), all.begin(), all.end());
}

}  // namespace levin
