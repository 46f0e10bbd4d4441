#include <levin/data/loader_state.h>

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace levin::data {

LoaderState LoaderState::at_epoch(int64_t number) const {
  LoaderState s{
      .epoch = number, .seed = seed, .sampler_seed = sampler_seed, .samples = samples, .batch_size = batch_size};
  for (const LoaderState& part : parts) s.parts.push_back(part.at_epoch(number));
  s.ended.assign(parts.size(), 0);
  return s;
}

void LoaderState::take_seeds(const LoaderState& other) {
  seed = other.seed;
  sampler_seed = other.sampler_seed;
  for (std::size_t i = 0; i < std::min(parts.size(), other.parts.size()); ++i) parts[i].take_seeds(other.parts[i]);
}

StateMap LoaderState::to_map() const {
  StateMap m;
  m.set("epoch", epoch);
  m.set("batches", batches);
  m.set("seed", static_cast<int64_t>(seed));
  if (sampler_seed) m.set("sampler_seed", static_cast<int64_t>(*sampler_seed));
  m.set("samples", samples);
  m.set("batch_size", batch_size);
  if (turns > 0) m.set("turns", turns);
  if (!ended.empty()) m.set("ended", ended);
  if (!parts.empty()) m.set("parts", static_cast<int64_t>(parts.size()));
  for (std::size_t i = 0; i < parts.size(); ++i) m.put(fmt::format("part{}", i), parts[i].to_map());
  return m;
}

LoaderState LoaderState::from_map(const StateMap& m) {
  LoaderState s{.epoch = m.get<int64_t>("epoch"),
                .batches = m.get<int64_t>("batches"),
                .seed = static_cast<std::uint64_t>(m.get<int64_t>("seed")),
                .samples = m.get<int64_t>("samples"),
                .batch_size = m.get<int64_t>("batch_size")};
  if (m.has("sampler_seed")) s.sampler_seed = static_cast<std::uint64_t>(m.get<int64_t>("sampler_seed"));
  if (m.has("turns")) s.turns = m.get<int64_t>("turns");
  if (m.has("ended")) s.ended = m.get<std::vector<int64_t>>("ended");
  const int64_t parts = m.has("parts") ? m.get<int64_t>("parts") : 0;
  // With a damaged count the loop ends by an exception at the first missing part.
  for (int64_t i = 0; i < parts; ++i) s.parts.push_back(from_map(m.part(fmt::format("part{}", i))));
  return s;
}

bool operator==(const LoaderState& a, const LoaderState& b) {
  const auto all = [](const LoaderState& s) {
    return std::tie(s.epoch, s.batches, s.seed, s.sampler_seed, s.samples, s.batch_size, s.turns, s.parts, s.ended);
  };
  return all(a) == all(b);
}

}  // namespace levin::data
