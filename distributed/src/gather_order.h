#pragma once
// What will be gathered next, as the pass before had it.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace levin::distributed {

/// Units in the order in which a pass needs them: a forward and the backward of it, or a forward alone. What comes in
/// another order is not foreseen, and the next pass is foreseen by it. Ranks that need the same foresee the same.
class GatherOrder {
 public:
  explicit GatherOrder(bool with_backward) : with_backward_(with_backward) {}

  void needed(std::size_t unit, bool in_backward) {
    const bool again = !in_backward && std::find(now_.begin(), now_.end(), unit) != now_.end();
    if (again && !foreseen(unit)) begin_again();
    now_.push_back(unit);
  }
  /// Backward is through.
  void done() {
    former_.swap(now_);
    now_.clear();
  }
  /// What is needed after the last one; `passes_over(unit)` tells which are whole until then.
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
  // A forward alone, or one whose backward never came.
  void begin_again() {
    if (!with_backward_) former_ = now_;
    now_.clear();
  }

  static constexpr std::size_t kLongest = 1000;  // of a first pass
  bool with_backward_;
  std::vector<std::size_t> former_, now_;
};

}  // namespace levin::distributed
