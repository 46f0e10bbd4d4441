#pragma once
// Datasets that record how a loader used them.

#include <levin/data/dataloader.h>

#include <functional>
#include <vector>

namespace levin::test {

/// Sample i is {i, a number of its generator}; `before` is a hook for tests.
class Numbers final : public data::Dataset {
 public:
  explicit Numbers(std::int64_t n, std::function<void(std::int64_t)> before = {}) : n_(n), before_(std::move(before)) {}
  std::int64_t size() const override { return n_; }
  Sample get(std::int64_t index, Generator& rng) const override {
    if (before_) before_(index);
    return {from_data<std::int64_t>({index}, {}), from_data<double>({rng.uniform()}, {})};
  }

 private:
  std::int64_t n_;
  std::function<void(std::int64_t)> before_;
};

/// The content of a batch of Numbers: the indices and the drawn numbers.
using Content = std::vector<std::pair<std::vector<std::int64_t>, std::vector<double>>>;

inline Content walk(data::DataLoader& loader) {
  Content all;
  for (auto& [x, r] : loader) all.emplace_back(x.to_vector<std::int64_t>(), r.to_vector<double>());
  return all;
}

inline std::vector<std::int64_t> indices(const Content& c) {
  std::vector<std::int64_t> list;
  for (const auto& [x, r] : c) list.insert(list.end(), x.begin(), x.end());
  return list;
}

}  // namespace levin::test
