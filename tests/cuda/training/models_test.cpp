// Families of networks train on cuda as on the CPU: the same losses from the same weights, in float32 and under
// autocast; and the memory that mixed precision saves.

#include "cuda/training/models.h"
#include "support/tolerance.h"

#include <levin/kernels/cuda.h>

#include <doctest/doctest.h>

#include <cmath>

using namespace levin;
using namespace levin::test;

namespace {

using Train = std::vector<double> (*)(const Training&);

/// Compares float32 losses whose longest sum has `terms` terms.
void check_float32(Train train, int64_t terms) {
  const std::vector<double> expected = train({.device = kCpu}), actual = train({.device = cuda(0)});
  CHECK(actual.size() >= 2);
  CHECK(compare(from_data(actual, {static_cast<int64_t>(actual.size())}).to(kFloat32), expected,
                {.ulps = 2, .scale = 1}, terms) == "");
}

/// Float16 activations round differently on the two devices in many elements; the mean over the batch keeps less than a
/// quarter ulp of float16 of that.
void check_mixed(Train train) {
  const std::vector<double> expected = train({.device = kCpu, .mixed = true});
  const std::vector<double> actual = train({.device = cuda(0), .mixed = true});
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    CHECK(std::abs(actual[i] - expected[i]) <= allowance({.ulps = 0.25}, DType::f16, expected[i], 1));
  CHECK(expected != train({.device = kCpu}));
}

}  // namespace

TEST_CASE("models: a cnn's two steps give the CPU's losses") { check_float32(train_cnn, 800); }
TEST_CASE("models: a dcgan's two steps give the CPU's losses") { check_float32(train_dcgan, 784); }
TEST_CASE("models: a gpt's two steps give the CPU's losses") { check_float32(train_gpt, 128); }

TEST_CASE("models: a cnn's two steps under autocast give the CPU's losses") { check_mixed(train_cnn); }
TEST_CASE("models: a dcgan's two steps under autocast give the CPU's losses") { check_mixed(train_dcgan); }
TEST_CASE("models: a gpt's two steps under autocast give the CPU's losses") { check_mixed(train_gpt); }

namespace {

/// Bytes above the initial allocation.
struct Memory {
  double activations;  ///< held between forward and backward
  double peak;         ///< during the step, without the parameters' gradients
};

Memory memory_of_step(bool mixed, int64_t batch) {
  using namespace nn;
  manual_seed(14);
  Sequential net(Conv2d(1, 8, 3), ReLU(), Conv2d(8, 16, 3), BatchNorm2d(16), ReLU(), MaxPool2d(2), Flatten(),
                 Linear(2304, 10));
  const Tensor x = randn({batch, 1, 28, 28}).to(cuda(0)), labels = random_labels(10, {batch}).to(cuda(0));
  net.to(cuda(0));
  for (const Parameter& p : net.parameters()) p.set_grad(zeros_like(p));
  cuda::synchronize();
  cuda::reset_peak_memory_stats();
  const auto before = static_cast<double>(cuda::memory_allocated());
  const autocast scope(kHalf, mixed);
  const Tensor loss = cross_entropy(net(x), labels);
  const double held = static_cast<double>(cuda::memory_allocated()) - before;
  loss.backward();
  return {held, static_cast<double>(cuda::max_memory_allocated()) - before};
}

/// Returns the memory of four more images. This excludes the casts of the weights, which are not activations.
Memory memory_of_images(bool mixed) {
  const Memory few = memory_of_step(mixed, 2), more = memory_of_step(mixed, 6);
  return {more.activations - few.activations, more.peak - few.peak};
}

}  // namespace

TEST_CASE("models: under autocast a cnn's activations take 0.55 of float32's memory at most") {
  const Memory single = memory_of_images(false), mixed = memory_of_images(true);
  CHECK(single.activations > 4e5);
  CHECK(mixed.activations <= 0.55 * single.activations);
  CHECK(mixed.peak <= 0.55 * single.peak);
}
