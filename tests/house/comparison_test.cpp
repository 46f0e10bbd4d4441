// The comparisons of tests/support/comparison.h refuse NaN, different sizes and empty lists.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <levin/autograd/ops/creation.h>
#include <levin/core/tensor.h>

#include "house/source_tree.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::test;

namespace {

using Numbers = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

/// True if a line has the form `worst = std::max(worst, std::abs(...`.
bool drops_nan(const std::string& line) {
  const std::string call = " = std::max(";
  const auto at = line.find(call);
  if (at == std::string::npos) return false;
  const auto begin = line.find_last_of(" (", at - 1);
  const std::string name = line.substr(begin + 1, at - begin - 1), rest = line.substr(at + call.size());
  return rest.starts_with(name + ", std::abs(") || rest.starts_with(name + ", abs(");
}

}  // namespace

TEST_CASE("approx: the tolerance is relative * |expected| + absolute, without a scale of its own") {
  CHECK(1.05 == approx(1.0, {.relative = 0.1}));
  CHECK_FALSE(1.2 == approx(1.0, {.relative = 0.1}));
  CHECK_FALSE(0.0 == approx(1e-12, {.relative = 0.5}));
  CHECK(0.6e-12 == approx(1e-12, {.relative = 0.5}));
  CHECK(-0.6e-12 == approx(-1e-12, {.relative = 0.5}));
  CHECK_FALSE(0.6e-12 == approx(-1e-12, {.relative = 0.5}));
  CHECK(1e-9 == approx(0.0, {.absolute = 1e-8}));
  CHECK_FALSE(1e-7 == approx(0.0, {.absolute = 1e-8}));
  CHECK(1.75f == approx(1.0, {.relative = 0.5, .absolute = 0.25}));
  CHECK_FALSE(1.76f == approx(1.0, {.relative = 0.5, .absolute = 0.25}));
  CHECK(3 == approx(3.0, {}));
}

TEST_CASE("approx: what is not finite equals nothing") {
  const Within everything{.relative = 1e300, .absolute = 1e300};
  CHECK_FALSE(kNan == approx(1.0, everything));
  CHECK_FALSE(1.0 == approx(kNan, everything));
  CHECK_FALSE(kNan == approx(kNan, everything));
  CHECK_FALSE(kInf == approx(1.0, everything));
  CHECK_FALSE(1.0 == approx(kInf, everything));
  CHECK_FALSE(kInf == approx(kInf, everything));
  CHECK_FALSE(1.0 == approx(1.0, {.relative = kNan}));
}

TEST_CASE("approx: a failure prints the expected value and the tolerance") {
  std::ostringstream out;
  out << approx(4.0, {.relative = 0.25, .absolute = 0.5});
  CHECK(out.str() == "4 within 1.5");
}

TEST_CASE("the largest of no values and of a value that is not finite is infinite") {
  CHECK(Largest().value() == kInf);
  for (const double bad : {kNan, kInf, -kInf})
    for (const bool first : {true, false}) {
      Largest largest;
      largest.add(first ? bad : 1.0);
      largest.add(first ? 1.0 : bad);
      CHECK(largest.value() == kInf);
    }
  Largest largest;
  largest.add(-3);
  CHECK(largest.value() == -3);
  largest.add(2);
  largest.add(1);
  CHECK(largest.value() == 2);
}

TEST_CASE("the largest difference of lists, lists of lists and tensors") {
  CHECK(largest_difference(Numbers{1, 2, 3}, Numbers{1, 2.5, 2.75}) == 0.5);
  CHECK(largest_difference(std::vector<float>{1}, Numbers{0.5}) == 0.5);
  CHECK(largest_difference(std::vector<Numbers>{{1, 2}, {3}}, std::vector<Numbers>{{1, 2}, {-1}}) == 4);
  CHECK(largest_difference(ones({2, 3}), zeros({2, 3}, {.dtype = kFloat64})) == 1);
  CHECK(largest_difference(std::vector<Tensor>{ones({2}), ones({})}, std::vector<Tensor>{ones({2}), zeros({})}) == 1);
}

TEST_CASE("the largest difference is infinite for NaN, for different sizes and for nothing compared") {
  for (const double bad : {kNan, kInf}) {
    CHECK(largest_difference(Numbers{1, bad, 3}, Numbers{1, 2, 3}) == kInf);
    CHECK(largest_difference(Numbers{1, 2, 3}, Numbers{bad, 2, 3}) == kInf);
    CHECK(largest_difference(Numbers{bad}, Numbers{bad}) == kInf);
    CHECK(largest_difference(std::vector<Numbers>{{1}, {bad}}, std::vector<Numbers>{{1}, {1}}) == kInf);
    CHECK(largest_difference(full({2}, bad), full({2}, bad)) == kInf);
  }
  CHECK(largest_difference(Numbers{1, 2}, Numbers{1, 2, 3}) == kInf);
  CHECK(largest_difference(Numbers{1, 2, 3}, Numbers{1, 2}) == kInf);
  CHECK(largest_difference(std::vector<Numbers>{{1}, {2, 3}}, std::vector<Numbers>{{1}, {2}}) == kInf);
  CHECK(largest_difference(ones({2, 3}), ones({3, 2})) == kInf);
  CHECK(largest_difference(ones({2}), ones({1, 2})) == kInf);
  CHECK(largest_difference(Numbers{}, Numbers{}) == kInf);
  CHECK(largest_difference(std::vector<Numbers>{}, std::vector<Numbers>{}) == kInf);
  CHECK(largest_difference(std::vector<Numbers>{{1}, {}}, std::vector<Numbers>{{1}, {}}) == kInf);
  CHECK(largest_difference(zeros({0, 3}), zeros({0, 3})) == kInf);
}

TEST_CASE("what differs has to be comparable") {
  CHECK(differs(Numbers{1, 2}, Numbers{1, 3}));
  CHECK(differs(Numbers{1, 2}, Numbers{1, 3}, 0.5));
  CHECK_FALSE(differs(Numbers{1, 2}, Numbers{1, 3}, 1));
  CHECK_FALSE(differs(Numbers{1, 2}, Numbers{1, 2}));
  CHECK_FALSE(differs(Numbers{1, 2}, Numbers{1, kNan}));
  CHECK_FALSE(differs(Numbers{1, 2}, Numbers{1}));
  CHECK_FALSE(differs(Numbers{}, Numbers{}));
}

TEST_CASE("the largest share of what is allowed") {
  const auto tenth = [](std::size_t) { return 0.1; };
  CHECK(largest_share(Numbers{1, 2}, Numbers{1, 2.05}, tenth) == approx(0.5, {.relative = 1e-12}));
  CHECK(largest_share(Numbers{1, 2}, Numbers{1.2, 2}, tenth) == approx(2.0, {.relative = 1e-12}));
  CHECK(largest_share(Numbers{1, kNan}, Numbers{1, 2}, tenth) == kInf);
  CHECK(largest_share(Numbers{1, 2}, Numbers{1}, tenth) == kInf);
  CHECK(largest_share(Numbers{}, Numbers{}, tenth) == kInf);
  const auto nothing = [](std::size_t) { return 0.0; };
  CHECK(largest_share(Numbers{1, 2}, Numbers{1, 2}, nothing) == 0);
  CHECK(largest_share(Numbers{1, 2}, Numbers{1, 3}, nothing) == kInf);
  CHECK(largest_share(Numbers{1}, Numbers{1.5}, [](std::size_t) { return kNan; }) == kInf);
  CHECK(largest_share(Numbers{1}, Numbers{1}, [](std::size_t) { return kNan; }) == kInf);
}

TEST_CASE("tests compare with approx(), not with doctest's own, which adds 1 to its scale") {
  const std::string bare = "doctest::App" "rox";
  int files = 0;
  for (const auto& file : read_sources({"tests", "bench", "examples"})) {
    ++files;
    for (const auto& line : file.lines)
      CHECK_MESSAGE(line.find(bare) == std::string::npos, file.path.string() << ": " << line);
  }
  CHECK(files > 200);
}

TEST_CASE("tests keep the largest error with Largest: std::max(worst, error) keeps `worst` where the error is NaN") {
  CHECK(drops_nan("  worst = std::max(worst, std::abs(a - b));"));
  CHECK_FALSE(drops_nan("  top = std::max(top, score);"));
  for (const auto& file : read_sources({"tests"})) {
    if (file.path.filename() == "comparison_test.cpp") continue;
    for (const auto& line : file.lines) CHECK_MESSAGE(!drops_nan(line), file.path.string() << ": " << line);
  }
}
