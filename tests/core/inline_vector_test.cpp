#include <doctest/doctest.h>

#include <stdexcept>
#include <utility>

#include <levin/core/inline_vector.h>

namespace {

// Counts live objects; an assignment throws while `copies_left` is 0.
struct Counted {
  static inline int living = 0;
  static inline int copies_left = 0;
  Counted() { ++living; }
  Counted(const Counted&) { ++living; }
  ~Counted() { --living; }
  Counted& operator=(const Counted&) {
    if (copies_left-- == 0) throw std::runtime_error("no copy left");
    return *this;
  }
  Counted& operator=(Counted&&) noexcept { return *this; }
};

}  // namespace

using levin::InlineVector;

TEST_CASE("an inline vector frees its memory if copying an element throws") {
  {
    const InlineVector<Counted, 2> source(5);
    const int before = Counted::living;
    Counted::copies_left = 3;
    CHECK_THROWS_AS((InlineVector<Counted, 2>(source)), std::runtime_error);
    CHECK(Counted::living == before);
    const Counted one;
    Counted::copies_left = 2;
    CHECK_THROWS_AS((InlineVector<Counted, 2>{one, one, one}), std::runtime_error);
    CHECK(Counted::living == before + 1);
  }
  CHECK(Counted::living == 0);
}

TEST_CASE("an inline vector grows to the heap and keeps its elements when copied and moved") {
  InlineVector<int, 2> v{1, 2};
  v.push_back(3);
  const InlineVector<int, 2> copy(v);
  const InlineVector<int, 2> moved(std::move(v));
  for (const auto* kept : {&copy, &moved}) {
    REQUIRE(kept->size() == 3);
    for (int i = 0; i < 3; ++i) CHECK((*kept)[i] == i + 1);
  }
  InlineVector<int, 2> assigned{7};
  assigned = copy;
  CHECK(assigned.size() == 3);
  assigned.clear();
  CHECK(assigned.empty());
}
