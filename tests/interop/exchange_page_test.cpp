// docs/exchange.md shows a program; here it is run.
#include "interop/exchange_page.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "support/files.h"
#include "support/paths.h"

using namespace levin;
using namespace levin::test;

TEST_CASE("the program on the page about exchange compiles and works as described") {
  const std::string shown = program_of_page("docs/exchange.md");
  CHECK(shown.size() > 800);
  CHECK(shown == marked_program("tests/interop/exchange_page.h"));

  const TempDir dir;
  std::filesystem::copy_file(source_dir() / "tests/interop/files/checkpoint.pt", dir.path / "checkpoint.pt");
  const Tensor y = exchange_page::exchange(dir.path, ones({1, 4}));
  // fc: the sums of a row's (i - 0) / 8, with (i - 3) / 8; norm: weight (i - 6) / 8, bias (i - 9) / 8; out: k = 4, 5.
  std::vector<double> hidden, expected;
  for (int r = 0; r < 3; ++r) {
    double sum = (r - 3) / 8.0;
    for (int c = 0; c < 4; ++c) sum += (4 * r + c) / 8.0;
    hidden.push_back(std::max(0.0, sum / std::sqrt(1 + 1e-5) * (r - 6) / 8.0 + (r - 9) / 8.0));
  }
  for (int r = 0; r < 2; ++r) {
    double sum = (r - 15) / 8.0;
    for (int c = 0; c < 3; ++c) sum += hidden[static_cast<std::size_t>(c)] * (3 * r + c - 12) / 8.0;
    expected.push_back(sum);
  }
  REQUIRE(y.sizes() == Shape{1, 2});
  for (int r = 0; r < 2; ++r) CHECK(std::abs(y[0][r].item<double>() - expected[static_cast<std::size_t>(r)]) <= 1e-6);
  CHECK(interop::load_torch(dir.path / "net.pt").size() == 9);
}
