#include "emulator/film/costs.h"

#include <algorithm>
#include <set>

namespace levin::emulator::film {

namespace {

/// Calls f(lane) for the lanes in a mask.
template <class F>
void for_lanes(std::uint32_t mask, F f) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if (mask >> lane & 1) f(static_cast<std::size_t>(lane));
  }
}

/// Calls f(word) for each word of 4 bytes that an access touches.
template <class F>
void for_words(std::uint32_t offset, unsigned bytes, F f) {
  for (std::uint32_t word = offset / kBankBytes; word * kBankBytes < offset + bytes; ++word) f(word);
}

void find_passes(Access& a, std::uint32_t active) {
  const int lanes = std::clamp(kLanes * kBankBytes / static_cast<int>(std::max(a.bytes, 1u)), 1, kLanes);
  for (int first = 0; first < kLanes; first += lanes) {
    const std::uint32_t together = lanes == kLanes ? ~0u : ((1u << lanes) - 1) << first;
    std::array<std::set<std::uint32_t>, kBanks> words;
    for_lanes(active & together, [&](std::size_t lane) {
      for_words(a.offsets[lane], a.bytes, [&](std::uint32_t word) { words[word % kBanks].insert(word); });
    });
    std::size_t passes = 0;
    for (const auto& bank : words) passes = std::max(passes, bank.size());
    a.cost += static_cast<int>(passes);
    a.least += passes > 0 ? 1 : 0;
  }
}

void find_sectors(Access& a, std::uint32_t active) {
  std::set<std::uint32_t> sectors, bytes;
  for_lanes(active, [&](std::size_t lane) {
    for (std::uint32_t at = a.offsets[lane]; at < a.offsets[lane] + a.bytes; ++at) {
      sectors.insert(at / kSectorBytes);
      bytes.insert(at);
    }
  });
  a.cost = static_cast<int>(sectors.size());
  a.least = (static_cast<int>(bytes.size()) + kSectorBytes - 1) / kSectorBytes;
}

}  // namespace

void find_cost(Access& access, std::uint32_t active) {
  access.cost = access.least = 0;
  if (access.memory == Memory::shared) find_passes(access, active);
  if (access.memory == Memory::global) find_sectors(access, active);
}

void Races::add(Access& access, std::uint32_t active, int warp) {
  const int interval = intervals_[warp];
  std::set<std::uint32_t> found;
  for_lanes(active, [&](std::size_t lane) {
    const int thread = warp * kLanes + static_cast<int>(lane);
    for_words(access.offsets[lane], access.bytes, [&](std::uint32_t word) {
      std::vector<Use>& uses = words_[{access.array, word}];
      for (const Use& other : uses) {
        const bool ordered = other.warp == warp && other.interval != interval;
        if (other.thread != thread && !ordered && (other.write || access.write)) found.insert(word);
      }
      uses.push_back({thread, warp, interval, access.write});
    });
  });
  access.races.assign(found.begin(), found.end());
}

}  // namespace levin::emulator::film
