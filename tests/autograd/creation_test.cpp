// The dtypes of created tensors.
#include <levin/autograd/autograd.h>

#include <doctest/doctest.h>

using namespace levin;

TEST_CASE("a dtype alone stands for the options of creation functions") {
  const Tensor x = ones({2});
  const Tensor created[] = {empty({2}, kInt32), zeros({2}, kInt32), ones({2}, kInt32), full({2}, 1.5, kInt32),
                            arange(3, kInt32), arange(1, 3, kInt32), arange(1, 5, 2, kInt32),
                            linspace(0, 4, 5, kInt32), eye(2, kInt32), eye(2, 3, kInt32), randint(0, 3, {2}, kInt32),
                            randperm(3, kInt32), empty_like(x, kInt32), zeros_like(x, kInt32), ones_like(x, kInt32),
                            full_like(x, 2, kInt32), randint_like(x, 0, 3, kInt32), tensor(1, kInt32),
                            tensor({1, 2}, kInt32), tensor(std::vector<double>{1, 2}, kInt32),
                            from_data(std::vector<double>{1, 2}, {2}, kInt32), from_data({1.5, 2.5}, {2}, kInt32),
                            from_data<double>({1, 2}, {2}, kInt32)};
  for (const Tensor& t : created) CHECK(t.dtype() == kInt32);
  for (const Tensor& t : {rand({2}, kFloat64), randn({2}, kFloat64), rand_like(x, kFloat64), randn_like(x, kFloat64)})
    CHECK(t.dtype() == kFloat64);
  std::int32_t memory[2] = {3, 4};
  CHECK(from_blob(memory, {2}, kInt32).to_vector<int>() == std::vector<int>{3, 4});
  CHECK(zeros({2}, {}).dtype() == kFloat32);
  CHECK(eye(2, {.dtype = kInt32}).to_vector<int>() == std::vector<int>{1, 0, 0, 1});
  CHECK(arange(1, 3, {.dtype = kFloat64}).to_vector<double>() == std::vector<double>{1, 2});
}

TEST_CASE("tensors like another one follow its dtype and device, but not its requires_grad") {
  const Tensor x = ones({2}, kFloat64).requires_grad_();
  CHECK(zeros_like(x).dtype() == kFloat64);
  CHECK_FALSE(zeros_like(x).requires_grad());
  CHECK(zeros_like(x, {.requires_grad = true}).dtype() == kFloat64);
}
