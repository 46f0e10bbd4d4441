#include <doctest/doctest.h>
#include <levin/core/shape.h>

#include <vector>

using namespace levin;

namespace {

/// Returns the memory offsets of all elements in row-major order.
std::vector<int64_t> offsets(const Shape& sizes, const Shape& strides) {
  std::vector<int64_t> list;
  for (int64_t i = 0; i < sizes.numel(); ++i) {
    int64_t rest = i, offset = 0;
    for (int d = sizes.size() - 1; d >= 0; --d) {
      offset += rest % sizes[d] * strides[d];
      rest /= sizes[d];
    }
    list.push_back(offset);
  }
  return list;
}

/// Returns the only strides that a view with `target` could have, derived from the order of the elements.
Shape strides_from_order(const std::vector<int64_t>& order, const Shape& target) {
  const Shape dense = contiguous_strides(target);
  Shape s = Shape::filled(target.size(), 0);
  for (int d = 0; d < target.size(); ++d) {
    if (target[d] > 1) s[d] = order[static_cast<std::size_t>(dense[d])] - order[0];
  }
  return s;
}

void check_view(const Shape& sizes, const Shape& strides, const Shape& target) {
  CAPTURE(to_string(sizes));
  CAPTURE(to_string(strides));
  CAPTURE(to_string(target));
  const auto order = offsets(sizes, strides);
  const bool possible = offsets(target, strides_from_order(order, target)) == order;
  Shape got;
  REQUIRE(view_strides(sizes, strides, target, got) == possible);
  if (possible) CHECK(offsets(target, got) == order);
}

}  // namespace

TEST_CASE("a shape prints as PyTorch's") {
  CHECK(to_string(Shape{}) == "()");
  CHECK(to_string(Shape{3}) == "(3,)");
  CHECK(to_string(Shape{64, 784}) == "(64, 784)");
  CHECK(Shape{}.numel() == 1);
  CHECK(Shape{2, 0, 3}.numel() == 0);
  CHECK_THROWS_AS(Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}), ShapeError);
  Shape s{2, 4};
  s.insert(1, 3);
  CHECK(s == Shape{2, 3, 4});
  s.erase(0);
  CHECK(s == Shape{3, 4});
}

TEST_CASE("contiguity") {
  CHECK(contiguous_strides({2, 3, 4}) == Shape{12, 4, 1});
  CHECK(contiguous_strides({2, 0, 4}) == Shape{4, 4, 1});
  CHECK(is_contiguous({2, 3}, {3, 1}));
  CHECK_FALSE(is_contiguous({2, 3}, {1, 2}));
  CHECK(is_contiguous({1, 3}, {77, 1}));
  CHECK(is_contiguous({3, 1}, {1, 9}));
  CHECK(is_contiguous({0, 5}, {1, 7}));
  CHECK(is_contiguous({5, 0}, {1, 7}));
  CHECK_FALSE(is_contiguous({4}, {2}));
}

TEST_CASE("axes wrap") {
  CHECK(wrap_axis(-1, 3, "sum") == 2);
  CHECK(wrap_axis(0, 0, "sum") == 0);
  CHECK(wrap_axis(-1, 0, "sum") == 0);
  CHECK_THROWS_WITH_AS(wrap_axis(3, 2, "softmax"),
                       "[softmax] axis 3 is out of range for a tensor of 2 dimensions: use -2 to 1.", IndexError);
  CHECK_THROWS_AS(wrap_axis(-3, 2, "softmax"), IndexError);
  CHECK_THROWS_AS(wrap_axis(1, 0, "softmax"), IndexError);
  CHECK(wrap_axes({}, 3, "sum") == Shape{0, 1, 2});
  CHECK(wrap_axes({-1, 0}, 3, "sum") == Shape{2, 0});
  CHECK_THROWS_AS(wrap_axes({1, -2}, 3, "sum"), IndexError);
}

TEST_CASE("broadcasting") {
  CHECK(broadcast_shapes({2, 1, 4}, {3, 1}, "add") == Shape{2, 3, 4});
  CHECK(broadcast_shapes({}, {3}, "add") == Shape{3});
  CHECK(broadcast_shapes({0}, {1}, "add") == Shape{0});
  CHECK_THROWS_AS(broadcast_shapes({0}, {3}, "add"), ShapeError);
  CHECK_THROWS_WITH_AS(broadcast_shapes({2, 3}, {4}, "add"),
                       "[add] shapes (2, 3) and (4,) do not broadcast: 3 and 4 differ at axis 1 of the result. Reshape "
                       "one, or unsqueeze a size of 1.",
                       ShapeError);
  CHECK(broadcast_strides({3, 1}, {1, 1}, {2, 3, 4}, "expand") == Shape{0, 1, 0});
  CHECK_THROWS_AS(broadcast_strides({3}, {1}, {4}, "expand"), ShapeError);
  CHECK_THROWS_AS(broadcast_strides({2, 3}, {3, 1}, {3}, "expand"), ShapeError);
}

TEST_CASE("inferred sizes") {
  CHECK(infer_size({-1, 4}, 12, "reshape") == Shape{3, 4});
  CHECK(infer_size({}, 1, "reshape") == Shape{});
  CHECK(infer_size({-1}, 0, "reshape") == Shape{0});
  CHECK_THROWS_AS(infer_size({-1, 5}, 12, "reshape"), ShapeError);
  CHECK_THROWS_AS(infer_size({-1, -1}, 12, "reshape"), ShapeError);
  CHECK_THROWS_AS(infer_size({-1, 0}, 0, "reshape"), ShapeError);
  CHECK_THROWS_AS(infer_size({-2}, 12, "reshape"), ShapeError);
  CHECK_THROWS_WITH_AS(infer_size({5}, 12, "view"),
                       "[view] shape (5,) does not fit 12 elements: its sizes multiply to 5.", ShapeError);
}

TEST_CASE("a view is found exactly if one exists") {
  const std::vector<std::pair<Shape, Shape>> sources = {
      {{2, 3, 4}, {12, 4, 1}}, {{2, 3, 4}, {1, 8, 2}},  {{4, 6}, {6, 1}},       {{4, 6}, {1, 4}},
      {{4, 6}, {12, 2}},       {{4, 6}, {12, 1}},       {{4, 1, 6}, {6, 5, 1}}, {{2, 12}, {0, 1}},
      {{24}, {1}},             {{24}, {3}},             {{24}, {0}},            {{1, 24}, {9, 2}},
      {{2, 2, 6}, {24, 6, 1}}, {{4, 3, 2}, {6, 1, 3}},  {{1, 1, 24, 1}, {3, 3, 1, 7}}};
  const std::vector<Shape> targets = {{24},      {2, 12},   {12, 2},      {4, 6},       {6, 4},          {2, 3, 4},
                                      {2, 2, 6}, {4, 3, 2}, {1, 24},      {24, 1},      {2, 1, 12},      {8, 3},
                                      {3, 8},    {1, 4, 6}, {4, 1, 1, 6}, {2, 2, 2, 3}, {1, 2, 1, 12, 1}};
  for (const auto& [sizes, strides] : sources) {
    for (const Shape& target : targets) check_view(sizes, strides, target);
  }
  check_view({}, {}, {1, 1});
  check_view({1}, {5}, {});
  Shape got;
  CHECK(view_strides({0, 3}, {3, 1}, {5, 0}, got));
  CHECK(got == contiguous_strides({5, 0}));
}

TEST_CASE("reduced sizes") {
  CHECK(reduced_sizes({2, 3, 4}, {1}, false) == Shape{2, 4});
  CHECK(reduced_sizes({2, 3, 4}, {2, 0}, true) == Shape{1, 3, 1});
  CHECK(reduced_sizes({2}, {0}, false) == Shape{});
}
