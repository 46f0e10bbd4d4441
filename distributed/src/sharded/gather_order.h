#pragma once
// Predicts the next unit to gather from the pass before.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace levin::distributed {

/// The order in which a pass needs units: a forward with its backward, or a forward alone. The prediction fails where a
/// pass departs from the order before; the next pass is predicted from it. Ranks with the same order predict the same.
class GatherOrder {
 public:
  explicit GatherOrder(bool with_backward) : with_backward_(with_backward) {}

  void needed(std::size_t unit, bool in_backward) {
    const bool again = !in_backward && std::find(now_.begin(), now_.end(), unit) != now_.end();
    if (again && !foreseen(unit)) begin_again();
    now_.push_back(unit);
  }
  /// Called when backward is done.
  void done() {
    former_.swap(now_);
    now_.clear();
  }
  /// Returns the unit needed after the last one, without units for which `passes_over(unit)` is true.
  template <class F>
  std::optional<std::size_t> next(const F& passes_over) const {
    const std::size_t count = now_.size();
    if (count == 0 || count > former_.size() || former_[count - 1] != now_[count - 1]) return std::nullopt;
    for (std::size_t i = count; i < former_.size(); ++i)
      if (!passes_over(former_[i])) return former_[i];
    return std::nullopt;
  }

 private:
  bool foreseen(std::size_t unit) const {
    if (former_.empty()) return with_backward_ && now_.size() < kLongest;
    return now_.size() < former_.size() && former_[now_.size()] == unit;
  }
  // Called at the start of a new pass: after a forward alone, or one whose backward was never run.
  void begin_again() {
    if (!with_backward_) former_ = now_;
    now_.clear();
  }

  static constexpr std::size_t kLongest = 1000;  // maximum length of a first pass
  bool with_backward_;
  std::vector<std::size_t> former_, now_;
};

}  // namespace levin::distributed
