#pragma once
// A source of choices for random tests. At first they are random and written down; a list of them replays the same
// test, and a list that is shorter or holds smaller numbers gives a simpler one: 0 is the simplest answer to every
// question, and what the list lacks is 0. So a failure is reduced without knowing what it is made of (MacIver and
// Donaldson, "Test-case reduction via test-case generation", ECOOP 2020).

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

  /// Of at most `dims` dimensions and `elements` elements, now and then without any; one of `at_hand` half of the time,
  /// where that has the dimensions.
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
  /// What was answered so far.
  const Choices& choices() const { return taken_; }

 private:
  std::uint32_t word();
  void take(std::uint32_t answer);

  std::uint64_t seed_ = 0, number_ = 0, words_ = 0;
  bool random_ = false;
  Choices given_, taken_;
};

}  // namespace levin::test
