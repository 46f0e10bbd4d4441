#pragma once
// Encodes log options as numbers, for checkpoints and other ranks.

#include <levin/trainer/metric_store.h>

#include <algorithm>
#include <array>

namespace levin {

/// reduce, prog_bar, logger, on_step, on_epoch (-1 if unset), and 1 for sync_dist + 2 for rank_zero_only. This is the
/// format in checkpoints.
using LogNumbers = std::array<std::int64_t, 6>;

/// Encodes LogOptions, or a store's record of them.
template <class Options>
LogNumbers to_numbers(const Options& o) {
  const auto flag = [](std::optional<bool> f) { return f ? std::int64_t{*f} : -1; };
  return {static_cast<std::int64_t>(o.reduce), o.prog_bar, o.logger, flag(o.on_step), flag(o.on_epoch),
          o.sync_dist + 2 * o.rank_zero_only};
}

template <class Options>
void from_numbers(const LogNumbers& n, Options& o) {
  const auto set = [](auto& flag, std::int64_t number) {
    if (number >= 0) flag = number != 0;
  };
  o.reduce = static_cast<Reduce>(n[0]);
  o.prog_bar = n[1] != 0;
  o.logger = n[2] != 0;
  set(o.on_step, n[3]);
  set(o.on_epoch, n[4]);
  o.sync_dist = (n[5] & 1) != 0;
  o.rank_zero_only = (n[5] & 2) != 0;
}

/// Returns the numbers of the i-th value of a list.
inline LogNumbers numbers_at(const std::vector<std::int64_t>& list, std::size_t i) {
  LogNumbers n;
  std::copy_n(list.begin() + static_cast<std::ptrdiff_t>(i * n.size()), n.size(), n.begin());
  return n;
}

}  // namespace levin
