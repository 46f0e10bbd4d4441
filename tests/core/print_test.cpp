// The expected texts are PyTorch's.
#include <doctest/doctest.h>
#include <levin/core/tensor.h>

#include <cmath>
#include <numeric>
#include <sstream>
#include <vector>

using namespace levin;

namespace {

Tensor zeros_of(const Shape& sizes) {
  return from_data(std::vector<float>(static_cast<std::size_t>(sizes.numel())), sizes);
}

Tensor count_to(int64_t n) {
  std::vector<int64_t> v(static_cast<std::size_t>(n));
  std::iota(v.begin(), v.end(), 0);
  return from_data(v, {n});
}

}  // namespace

TEST_CASE("numbers print alone") {
  CHECK(to_string(tensor(3.0)) == "tensor(3.)");
  CHECK(to_string(tensor(3.14159)) == "tensor(3.1416)");
  CHECK(to_string(tensor(-7)) == "tensor(-7)");
  CHECK(to_string(tensor(true)) == "tensor(True)");
  CHECK(to_string(tensor(1e-5)) == "tensor(1.0000e-05)");
  CHECK(to_string(Tensor()) == "tensor(undefined)");
}

TEST_CASE("vectors and matrices align") {
  CHECK(to_string(from_data<float>({1, 2, 3}, {3})) == "tensor([1., 2., 3.])");
  CHECK(to_string(from_data<float>({1.5f, -2.25f}, {2})) == "tensor([ 1.5000, -2.2500])");
  CHECK(to_string(from_data<float>({-1, 2}, {2})) == "tensor([-1.,  2.])");
  CHECK(to_string(from_data<float>({1, 2, 3, 4}, {2, 2})) == "tensor([[1., 2.],\n        [3., 4.]])");
  CHECK(to_string(from_data<bool>({true, false}, {2})) == "tensor([ True, False])");
  CHECK(to_string(from_data<std::int64_t>({1, -20, 300}, {3})) == "tensor([  1, -20, 300])");
  CHECK(to_string(zeros_of({2, 2, 2})) ==
        "tensor([[[0., 0.],\n         [0., 0.]],\n\n        [[0., 0.],\n         [0., 0.]]])");
  std::ostringstream out;
  out << alias(from_data<float>({1, 2, 3, 4}, {2, 2}), {2, 2}, {1, 2}, 0);
  CHECK(out.str() == "tensor([[1., 3.],\n        [2., 4.]])");
}

TEST_CASE("the range chooses the notation") {
  CHECK(to_string(from_data<float>({1, 2000}, {2})) == "tensor([1.0000e+00, 2.0000e+03])");
  CHECK(to_string(from_data<float>({1, 1000}, {2})) == "tensor([   1., 1000.])");
  CHECK(to_string(from_data<float>({1e-5f, 1}, {2})) == "tensor([1.0000e-05, 1.0000e+00])");
  CHECK(to_string(from_data<float>({2e8f}, {1})) == "tensor([2.0000e+08])");
  CHECK(to_string(from_data<float>({-1e-5f, 2e-5f}, {2})) == "tensor([-1.0000e-05,  2.0000e-05])");
  CHECK(to_string(from_data<float>({0.5f, 100}, {2})) == "tensor([  0.5000, 100.0000])");
  CHECK(to_string(from_data<float>({NAN, 1, INFINITY}, {3})) == "tensor([nan, 1., inf])");
  CHECK(to_string(from_data<float>({NAN, 1.5f, -INFINITY}, {3})) == "tensor([   nan, 1.5000,   -inf])");
  CHECK(to_string(from_data<float>({0, -0.f}, {2})) == "tensor([0., -0.])");
}

TEST_CASE("dtype and size are printed if they are not the default") {
  CHECK(to_string(from_data<double>({1}, {1})) == "tensor([1.], dtype=float64)");
  CHECK(to_string(from_data<Half>({Half(1.5f)}, {1})) == "tensor([1.5000], dtype=float16)");
  CHECK(to_string(from_data<std::uint8_t>({1, 255}, {2})) == "tensor([  1, 255], dtype=uint8)");
  CHECK(to_string(empty({0})) == "tensor([])");
  CHECK(to_string(empty({0, 3})) == "tensor([], size=(0, 3))");
  CHECK(to_string(empty({0}, {.dtype = kInt64})) == "tensor([], dtype=int64)");
  CHECK(to_string(empty({2, 0}, {.dtype = kInt64})) == "tensor([], size=(2, 0), dtype=int64)");
}

TEST_CASE("long rows wrap at 80 columns") {
  CHECK(to_string(count_to(30)) ==
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])");
  // The type is printed on a new line if it would pass column 80.
  CHECK(to_string(from_data(std::vector<std::int32_t>(22, 1), {22})) ==
        "tensor([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],\n       dtype=int32)");
}

TEST_CASE("above 1000 elements only the edges show") {
  CHECK(to_string(count_to(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
  CHECK(to_string(zeros_of({40, 40})) ==
        "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        ...,\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.]])");
  CHECK(to_string(zeros_of({2, 501})) ==
        "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n        [0., 0., 0.,  ..., 0., 0., 0.]])");
  // Elements that are not printed do not widen the columns.
  std::vector<float> v(2000, 1.f);
  v[1000] = 1e9f;
  CHECK(to_string(from_data(v, {2000})) == "tensor([1., 1., 1.,  ..., 1., 1., 1.])");
}

TEST_CASE("sizes, dtypes and devices are written to streams") {
  const Tensor x = zeros_of({2, 3});
  std::ostringstream out;
  out << x.sizes() << ' ' << x.dtype() << ' ' << x.device() << ' ' << Shape{5};
  CHECK(out.str() == "(2, 3) float32 cpu (5,)");
}
