#pragma once
// Simple loops over coordinates, for the references of operations that move elements.

#include <levin/core/tensor.h>

#include <functional>
#include <optional>
#include <vector>

namespace levin::test {

/// Returns the row-major index of the coordinates.
inline int64_t flat(const Shape& sizes, const Shape& at) {
  int64_t i = 0;
  for (int d = 0; d < sizes.size(); ++d) i = i * sizes[d] + at[d];
  return i;
}

/// Calls f(coordinates) in row-major order.
template <class F>
void each_place(const Shape& sizes, F&& f) {
  for (int64_t i = 0; i < sizes.numel(); ++i) {
    Shape at = sizes;
    int64_t rest = i;
    for (int d = sizes.size() - 1; d >= 0; --d) {
      at[d] = rest % sizes[d];
      rest /= sizes[d];
    }
    f(at);
  }
}

inline double& value_at(std::vector<double>& values, const Shape& sizes, const Shape& at) {
  return values[static_cast<std::size_t>(flat(sizes, at))];
}

/// Returns y[at] = x[source(at)], or `outside` if source returns nothing.
inline Tensor moved(const Tensor& x, const Shape& sizes,
                    const std::function<std::optional<Shape>(const Shape&)>& source, double outside = 0) {
  auto xs = x.to_vector<double>();
  std::vector<double> y;
  each_place(sizes, [&](const Shape& at) {
    const auto from = source(at);
    y.push_back(from ? value_at(xs, x.sizes(), *from) : outside);
  });
  return from_data(y, sizes);
}

}  // namespace levin::test
