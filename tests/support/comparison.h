#pragma once
// Comparisons that a wrong result does not pass by accident: a value that is not finite, lists of different sizes and
// lists without elements count as infinitely different.
//
//   CHECK(loss == approx(0.25, {.relative = 1e-6}));
//   CHECK(largest_difference(weights, expected) <= 1e-6);

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <ostream>
#include <type_traits>

namespace levin::test {

/// The allowed difference to the expected value: relative * |expected| + absolute.
struct Within {
  double relative = 0;
  double absolute = 0;
};

/// A number that others equal if they are finite and within a tolerance. Made by approx().
struct Approximation {
  double expected;
  Within within;

  double allowed() const { return within.relative * std::abs(expected) + within.absolute; }

  template <class T>
    requires std::is_arithmetic_v<T>
  friend bool operator==(T actual, const Approximation& a) {
    return std::isfinite(a.expected) && std::abs(static_cast<double>(actual) - a.expected) <= a.allowed();
  }
  /// A value that is not finite would differ from everything: assert what it is instead.
  template <class T>
  friend bool operator!=(T actual, const Approximation& a) = delete;

  friend std::ostream& operator<<(std::ostream& out, const Approximation& a) {
    return out << a.expected << " within " << a.allowed();
  }
};

/// Returns `expected` with the tolerance; parts that are not given are 0.
inline Approximation approx(double expected, Within within) { return {expected, within}; }

/// The largest of the values added; infinity where one of them was not finite or none was added.
class Largest {
 public:
  void add(double value) {
    value_ = std::max(value_, std::isfinite(value) ? value : std::numeric_limits<double>::infinity());
    empty_ = false;
  }
  double value() const { return empty_ ? std::numeric_limits<double>::infinity() : value_; }

 private:
  double value_ = -std::numeric_limits<double>::infinity();
  bool empty_ = true;
};

/// The largest |actual - expected| of two numbers, tensors, lists, or lists of such, element by element; infinity where
/// sizes differ, a value is not finite or a list is empty.
template <class A, class B>
double largest_difference(const A& actual, const B& expected) {
  if constexpr (std::is_arithmetic_v<A>) {
    Largest difference;
    difference.add(std::abs(static_cast<double>(actual) - static_cast<double>(expected)));
    return difference.value();
  } else if constexpr (requires { actual.template to_vector<double>(); }) {
    if (actual.sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
    return largest_difference(actual.template to_vector<double>(), expected.template to_vector<double>());
  } else {
    if (std::size(actual) != std::size(expected)) return std::numeric_limits<double>::infinity();
    Largest difference;
    for (std::size_t i = 0; i < std::size(actual); ++i) difference.add(largest_difference(actual[i], expected[i]));
    return difference.value();
  }
}

/// Returns whether a difference is above `least`; false if largest_difference() is infinite.
template <class A, class B>
bool differs(const A& a, const B& b, double least = 0) {
  const double difference = largest_difference(a, b);
  return std::isfinite(difference) && difference > least;
}

/// The largest |actual[i] - expected[i]| / allowed(i) of two lists of numbers: above 1 is wrong. Infinity as above, and
/// where something differs that may not (allowed(i) is 0).
template <class A, class B, class F>
double largest_share(const A& actual, const B& expected, const F& allowed) {
  if (std::size(actual) != std::size(expected)) return std::numeric_limits<double>::infinity();
  Largest share;
  for (std::size_t i = 0; i < std::size(actual); ++i) {
    const double difference = largest_difference(actual[i], expected[i]), limit = allowed(i);
    share.add(difference == 0 && limit >= 0 ? 0 : difference / limit);
  }
  return share.value();
}

}  // namespace levin::test
