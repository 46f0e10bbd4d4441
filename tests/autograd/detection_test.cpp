#include "support/comparison.h"

#include <levin/autograd/autograd.h>

#include <doctest/doctest.h>

using namespace levin;

using Positions = std::vector<int64_t>;

TEST_CASE("nms keeps the best of overlapping boxes, in the order of the scores") {
  const Tensor boxes =
      tensor({{0.0, 0.0, 10.0, 10.0}, {1.0, 1.0, 11.0, 11.0}, {20.0, 20.0, 30.0, 30.0}, {0.0, 0.0, 10.0, 9.0}});
  const Tensor scores = tensor({0.8, 0.9, 0.7, 0.85});
  CHECK(nms(boxes, scores, 0.5).to_vector<int64_t>() == Positions{1, 2});
  CHECK(nms(boxes, scores, 0.85).to_vector<int64_t>() == Positions{1, 3, 2});
  // The IoU of boxes 0 and 3 is 0.9 exactly, which is not above it.
  CHECK(nms(boxes, scores, 0.9).to_vector<int64_t>() == Positions{1, 3, 0, 2});
  CHECK(batched_nms(boxes, scores, tensor<int64_t>({0, 1, 0, 0}), 0.5).to_vector<int64_t>() == Positions{1, 3, 2});
  CHECK(nms(zeros({0, 4}), zeros({0}), 0.5).numel() == 0);
}

TEST_CASE("roi_align of a plane is the plane at the cells' centers") {
  // x(r, c) = 10 r + c is linear, so the mean of samples around a center is its value there.
  const Tensor x = (arange(8.0, kFloat64).unsqueeze(1) * 10 + arange(8.0, kFloat64)).reshape({1, 1, 8, 8});
  const Tensor boxes = tensor<double>({0, 1, 1, 5, 5}).reshape({1, 5});
  const Tensor y = roi_align(x, boxes, 2);
  CHECK(y.to_vector<double>() == std::vector<double>{22, 24, 42, 44});
  const Tensor aligned = roi_align(x, boxes, 2, {.aligned = true});
  CHECK(aligned[0][0][0][0].item<double>() == levin::test::approx(22 - 5.5, {.relative = 1e-12}));
  CHECK(roi_align(x, boxes * 2, 2, {.spatial_scale = 0.5}).to_vector<double>() == y.to_vector<double>());
  const auto function = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{roi_align(in[0], boxes, {2, 3}, {.sampling_ratio = 1})};
  };
  CHECK(gradcheck(function, {randn({1, 2, 8, 8}, kFloat64).requires_grad_()}) == "");
  CHECK_THROWS_WITH_AS(roi_align(x, ones({1, 4}), 2), doctest::Contains("[roi_align] boxes is (1, 4)"), ShapeError);
}
