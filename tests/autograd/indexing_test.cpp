#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>

using namespace levin;

namespace {

Tensor numbers(const Shape& sizes) { return arange(sizes.numel()).to(kFloat64).reshape(sizes); }
Tensor at(std::initializer_list<int64_t> positions) { return tensor(positions); }
std::vector<int> values(const Tensor& t) { return t.to_vector<int>(); }
using Ints = std::vector<int>;

}  // namespace

TEST_CASE("an assignment to an index expression writes") {
  const Tensor x = numbers({3, 2});
  x(0) = tensor({7.0, 8.0});
  CHECK(values(x) == Ints{7, 8, 2, 3, 4, 5});
  x(x > 6.0) = 0;
  CHECK(values(x) == Ints{0, 0, 2, 3, 4, 5});
  x(at({2, 0})) = tensor({-1.0, -2.0});
  CHECK(values(x) == Ints{-1, -2, 2, 3, -1, -2});
  x(Slice(), 0) += tensor({10.0, 20.0, 30.0});
  CHECK(values(x) == Ints{9, -2, 22, 3, 29, -2});
  x[1] = ones({});
  CHECK(values(x) == Ints{9, -2, 1, 1, 29, -2});
}
