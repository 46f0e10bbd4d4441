#include "cases/cases.h"

#include <levin/autograd/ops.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace levin::test {

namespace {

/// NaN is larger than all numbers.
bool above(double a, double b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

/// Returns the values and indices of the first k elements along `axis` in stable order.
Tensors sorted_reference(const Tensor& x, int axis, int64_t k, bool descending) {
  const auto xs = x.to_vector<double>();
  const bool scalar = x.dim() == 0;
  int64_t outer = 1, inner = 1;
  const int64_t n = scalar ? 1 : x.size(axis);
  for (int d = 0; d < axis; ++d) outer *= x.size(d);
  for (int d = axis + 1; d < x.dim(); ++d) inner *= x.size(d);
  Shape sizes = x.sizes();
  if (!scalar) sizes[axis] = k;
  std::vector<double> values(static_cast<std::size_t>(sizes.numel()));
  std::vector<int64_t> places(values.size());
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t j = 0; j < inner; ++j) {
      const auto at = [&](int64_t i) { return xs[static_cast<std::size_t>((o * n + i) * inner + j)]; };
      std::vector<int64_t> order(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return descending ? above(at(a), at(b)) : above(at(b), at(a)); });
      for (int64_t i = 0; i < k; ++i) {
        const auto to = static_cast<std::size_t>((o * k + i) * inner + j);
        places[to] = order[static_cast<std::size_t>(i)];
        values[to] = at(places[to]);
      }
    }
  return {from_data(values, sizes), from_data(places, sizes)};
}

std::string truth(bool b) { return b ? "True" : "False"; }

Sample sort_sample(const Shape& x, int axis, bool descending) {
  Sample s = sample({x}, distinct());
  s.label = "axis " + std::to_string(axis) + (descending ? ", descending" : "");
  s.code = "sort(x0, " + std::to_string(axis) + (descending ? ", true).values" : ", false).values");
  s.op = [=](const Tensors& in) -> Tensors {
    const auto r = sort(in[0], axis, descending);
    return {r.values, r.indices};
  };
  s.reference = [=](const Tensors& in) {
    return sorted_reference(in[0], axis, in[0].dim() == 0 ? 1 : in[0].size(axis), descending);
  };
  s.torch = "torch.sort(x0, dim=" + std::to_string(axis) + ", descending=" + truth(descending) + ", stable=True)";
  return s;
}

OpCase sort_case() {
  return {.name = "sort",
          .samples = {sort_sample({}, 0, false), sort_sample({1}, 0, true), sort_sample({31}, 0, false),
                      sort_sample({33}, 0, true), sort_sample({7, 13}, 0, false), sort_sample({2, 3, 5}, 1, true),
                      sort_sample({4, 0, 3}, 1, false),
                      // From 128 elements on, lines are sorted by the digits of their keys.
                      sort_sample({127}, 0, false), sort_sample({128}, 0, true)},
          .draw =
              [](Draw& d) {
                const Shape sizes = d.shape();
                const int axis = static_cast<int>(d.below(sizes.size()));
                return sort_sample(sizes, axis, d.chance(50));
              },
          .large = {sort_sample({9000}, 0, false), sort_sample({41, 530}, 1, true), sort_sample({2047}, 0, true),
                    sort_sample({2048}, 0, false)},
          .limits = {sort_sample({8, 256}, 1, false), sort_sample({9, 256}, 1, false)},  // a task has 2,048 elements
          .dtypes = kAllTypes,
          .outputs = {Output::same, Output::index},
          .tolerance = {.ulps = 0},
          .torch = "torch.sort(x0, stable=True)",
          .errors = {{"axis", [] { sort(zeros({2}), 1); }}},
          .bench = {sort_sample({1024, 1024}, 1, false)}};
}

OpCase argsort_case() {
  const auto make = [](const Shape& x, int axis, bool descending) {
    Sample s = sort_sample(x, axis, descending);
    s.op = [=](const Tensors& in) -> Tensors { return {argsort(in[0], axis, descending)}; };
    s.reference = [r = s.reference](const Tensors& in) -> Tensors { return {r(in)[1]}; };
    s.torch.replace(0, 10, "torch.argsort");
    s.code = "argsort(x0, " + std::to_string(axis) + (descending ? ", true)" : ", false)");
    return s;
  };
  return {.name = "argsort",
          .samples = {make({33}, 0, false), make({7, 13}, 0, true), make({2, 3, 5}, 2, false)},
          .draw =
              [make](Draw& d) {
                const Shape sizes = d.shape();
                const int axis = static_cast<int>(d.below(sizes.size()));
                return make(sizes, axis, d.chance(50));
              },
          .dtypes = kAllTypes,
          .outputs = {Output::index},
          .differentiable = false,
          .torch = "torch.argsort(x0, stable=True)"};
}

Sample topk_sample(const Shape& x, int64_t k, int axis, bool largest) {
  Sample s = sample({x}, distinct());
  s.code = "topk(x0, " + std::to_string(k) + ", " + std::to_string(axis) + (largest ? "" : ", false") + ").values";
  s.label = "k " + std::to_string(k) + ", axis " + std::to_string(axis) + (largest ? "" : ", smallest");
  s.op = [=](const Tensors& in) -> Tensors {
    const auto r = topk(in[0], k, axis, largest);
    return {r.values, r.indices};
  };
  s.reference = [=](const Tensors& in) { return sorted_reference(in[0], axis, k, largest); };
  s.torch =
      "torch.topk(x0, " + std::to_string(k) + ", dim=" + std::to_string(axis) + ", largest=" + truth(largest) + ")";
  return s;
}

OpCase topk_case() {
  return {
      .name = "topk",
      .samples = {topk_sample({}, 1, 0, true), topk_sample({31}, 4, 0, true), topk_sample({33}, 33, 0, false),
                  topk_sample({7, 13}, 3, 0, true), topk_sample({2, 3, 5}, 2, 1, false), topk_sample({5}, 0, 0, true)},
      .draw =
          [](Draw& d) {
            const Shape sizes = d.shape();
            const int axis = static_cast<int>(d.below(sizes.size()));
            const int64_t most = sizes.empty() ? 1 : sizes[axis], k = sizes.empty() ? 1 : d.between(0, most);
            return topk_sample(sizes, k, axis, !d.chance(50));
          },
      .large = {topk_sample({41, 530}, 5, 1, true)},
      .dtypes = kWideFloats,  // others have ties, whose order PyTorch leaves open
      .outputs = {Output::same, Output::index},
      .tolerance = {.ulps = 0},
      .torch = "torch.topk(x0, 1)",
      .errors = {{"[topk] k = 4 is out of range: axis 0 of (3,) has 3 elements", [] { topk(zeros({3}), 4); }}},
      .bench = {topk_sample({1024, 1024}, 5, 1, true)}};
}

}  // namespace

std::vector<OpCase> sort_cases() { return {sort_case(), argsort_case(), topk_case()}; }

}  // namespace levin::test
