// The kernel of the CTC loss in float32 against the composed loss in float64, around the limits of its vectors.

#include "kernels/on_every_target.h"

#include <levin/autograd/autograd.h>
#include <levin/core/parallel.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace levin;

namespace {

struct Problem {
  Tensor x;       ///< (T, B, C) log-probabilities, float64
  Tensor labels;  ///< (B, longest)
  std::vector<int64_t> input_lengths, target_lengths;
};

/// A batch of samples of all lengths up to the longest; few classes, so that neighbouring labels are often equal.
Problem draw(int64_t steps, int64_t longest, int64_t classes) {
  Problem p;
  const int64_t batch = longest + 1;
  p.x = log_softmax(randn({steps, batch, classes}, {.dtype = kDouble}) * 3, 2);
  p.labels = randint(1, classes, {batch, std::max<int64_t>(longest, 1)});
  for (int64_t b = 0; b < batch; ++b) {
    p.target_lengths.push_back(b);
    p.input_lengths.push_back(std::max<int64_t>(1, steps - b % 3));
  }
  return p;
}

struct Result {
  Tensor losses, gradient;
};

Result run(const Problem& p, DType dtype, bool zero_infinity) {
  const Tensor x = p.x.to(dtype).detach().requires_grad_();
  const Tensor losses = ctc_loss(x, p.labels, p.input_lengths, p.target_lengths,
                                 {.reduction = Reduction::none, .zero_infinity = zero_infinity});
  const Tensor weights = arange(1, losses.numel() + 1).to(dtype);
  return {losses.detach(), grad({losses}, {x}, {}, {weights})[0]};
}

/// Returns the largest difference of `a` and `b`; infinity where only one of both is finite, or their sizes differ.
double largest_difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> u = a.to(kDouble).to_vector<double>(), v = b.to(kDouble).to_vector<double>();
  if (u.size() != v.size() || u.empty()) return std::numeric_limits<double>::infinity();
  double most = 0;
  for (std::size_t i = 0; i < u.size(); ++i)
    if (u[i] != v[i]) most = std::max(most, std::isfinite(u[i] - v[i]) ? std::abs(u[i] - v[i]) : HUGE_VAL);
  return most;
}

/// Logarithms of probabilities of a row of states differ by about `spread`, and each step rounds them once.
void check_against_double(const Problem& p, double spread = 50) {
  const double steps = static_cast<double>(p.x.size(0)), largest_weight = static_cast<double>(p.labels.size(0));
  const double rounding = 2 * std::numeric_limits<float>::epsilon() * spread * std::sqrt(steps);
  for (const bool zero_infinity : {false, true}) {
    const Result found = run(p, kFloat, zero_infinity), expected = run(p, kDouble, zero_infinity);
    CHECK(largest_difference(found.losses, expected.losses) < rounding);
    CHECK(largest_difference(found.gradient, expected.gradient) < rounding * largest_weight);
  }
}

}  // namespace

TEST_CASE("ctc: losses and gradients of all lengths equal those in double precision") {
  manual_seed(21);
  for (const int64_t longest : {0, 1, 3, 7, 8, 15, 16, 33})
    for (const int64_t steps : {1, 2, 5, 40}) {
      CAPTURE(longest);
      CAPTURE(steps);
      const Problem p = draw(steps, longest, 4);
      test::on_every_target([&] { check_against_double(p); });
    }
}

TEST_CASE("ctc: impossible classes, unlikely labels and long inputs lose no digits") {
  manual_seed(22);
  Problem p = draw(30, 9, 5);
  p.x.select(2, 3).fill_(-std::numeric_limits<double>::infinity());  // a label that cannot occur
  p.x.select(0, 4).select(1, 0).fill_(-std::numeric_limits<double>::infinity());
  check_against_double(p);
  p = draw(60, 6, 5);
  p.x.select(2, 0).add_(-40);  // the path through the labels is far less likely than staying where it is
  check_against_double(p, 300);
  check_against_double(draw(1500, 5, 6));
}

TEST_CASE("ctc: NaN and second derivatives") {
  manual_seed(23);
  Problem p = draw(6, 3, 4);
  const Tensor x = p.x.to(kFloat).detach().requires_grad_(), wide = p.x.detach().requires_grad_();
  const auto second = [&](const Tensor& of) {
    const Tensor loss = ctc_loss(of, p.labels, p.input_lengths, p.target_lengths, {.reduction = Reduction::sum});
    const Tensor first = grad({loss}, {of}, {.create_graph = true})[0];
    return grad({(first * first).sum()}, {of})[0];
  };
  CHECK(largest_difference(second(x), second(wide)) < 1e-4);
  CHECK(second(wide).abs().max().item<double>() > 1e-3);
  p.x.select(0, 2).select(0, 1).fill_(std::numeric_limits<double>::quiet_NaN());
  const auto losses = run(p, kFloat, false).losses.to_vector<float>();
  CHECK(std::isnan(losses[1]));
  CHECK(std::isfinite(losses[0]));
}

TEST_CASE("ctc: the bits do not depend on the number of threads") {
  manual_seed(24);
  const Problem p = draw(50, 20, 8);
  const int before = num_threads();
  set_num_threads(1);
  const Result one = run(p, kFloat, false);
  for (const int threads : {2, 3, 7}) {
    set_num_threads(threads);
    const Result many = run(p, kFloat, false);
    CHECK(equal(one.losses, many.losses));
    CHECK(equal(one.gradient, many.gradient));
  }
  set_num_threads(before);
}
