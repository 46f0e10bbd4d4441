#pragma once
// State that a strategy keeps per optimizer, identified by its list of parameters.

#include <levin/core/state_dict.h>

#include <algorithm>
#include <list>
#include <memory>
#include <vector>

namespace levin {

inline std::vector<Parameter> trainable(std::vector<Parameter> parameters) {
  std::erase_if(parameters, [](const Parameter& p) { return !p.requires_grad(); });
  return parameters;
}

template <class T>
class ByParameters {
 public:
  /// Returns the state of this list; at first use `make` creates it and it replaces all that share one of the
  /// parameters.
  template <class F>
  T& of(const std::vector<Parameter>& parameters, const F& make) {
    const auto same = [](const Parameter& a, const Parameter& b) { return a.is_same(b); };
    for (Entry& e : entries_)
      if (std::ranges::equal(e.parameters, parameters, same)) return *e.value;
    const auto watched = [&](const Parameter& p) {
      return std::ranges::any_of(parameters, [&](const Parameter& q) { return same(p, q); });
    };
    std::erase_if(entries_, [&](const Entry& e) { return std::ranges::any_of(e.parameters, watched); });
    entries_.push_back({parameters, make()});
    return *entries_.back().value;
  }
  template <class F>
  void each(const F& f) {
    for (Entry& e : entries_) f(e.parameters, *e.value);
  }
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    std::vector<Parameter> parameters;
    std::unique_ptr<T> value;
  };
  std::list<Entry> entries_;
};

}  // namespace levin
