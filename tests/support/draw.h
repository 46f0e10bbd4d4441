#pragma once
// A source of choices for random tests. Choices are random and recorded; replaying their list repeats the test, and a
// shorter list or smaller numbers give a simpler test: 0 is the simplest answer to every question, and missing answers
// are 0. Thus a failure can be reduced without knowledge of its structure (MacIver and Donaldson, "Test-case reduction
// via test-case generation", ECOOP 2020).

#include <levin/core/shape.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace levin::test {

class Draw {
 public:
  using Choices = std::vector<std::uint32_t>;

  /// Random choices, the same for the same seed and number.
  Draw(std::uint64_t seed, std::uint64_t number) : seed_(seed), number_(number), random_(true) {}
  explicit Draw(Choices choices) : given_(std::move(choices)) {}

  /// A number in [0, n).
  int64_t below(int64_t n);
  /// A number in [low, high], where low is the simplest.
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  /// True in `percent` of 100 cases; false is simpler.
  bool chance(int percent);
  /// One of the list, whose first is the simplest.
  template <class List>
  auto of(const List& list) {
    return *(std::begin(list) + below(static_cast<int64_t>(std::size(list))));
  }

  /// Draws a shape of at most `most_dims` dimensions and `elements` elements, rarely empty; half of the time one of
  /// `at_hand` with suitable dimensions.
  Shape shape(int least_dims = 0, int most_dims = 4, int64_t elements = 120);
  /// A size of an axis: small ones more often than others, 0 seldom.
  int64_t size(int64_t most = 40, bool may_be_empty = true);
  /// One of the axes of a shape; also counted from the end. 0 for a shape without axes.
  int64_t axis(const Shape& shape);
  /// Some of the axes, in order; possibly none.
  Shape axes(const Shape& shape);
  /// A shape that broadcasts to the given one.
  Shape broadcasting_to(const Shape& shape);

  /// Shapes of values that the next operation could take.
  std::vector<Shape> at_hand;

  /// Called with each answer, so that those of a test that crashes are known.
  std::function<void(std::uint32_t)> observe;
  /// Returns the answers so far.
  const Choices& choices() const { return taken_; }

 private:
  std::uint32_t word();
  void take(std::uint32_t answer);

  std::uint64_t seed_ = 0, number_ = 0, words_ = 0;
  bool random_ = false;
  Choices given_, taken_;
};

}  // namespace levin::test
