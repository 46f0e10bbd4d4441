// Random index expressions of every kind of index, read and written, against loops and finite differences.

#include "cases/cases.h"

#include <doctest/doctest.h>

using namespace levin;
using namespace levin::test;

TEST_CASE("random index expressions read and write what loops do, in every layout, and so do their gradients") {
  for (OpCase c : index_expression_cases()) {
    c.samples.clear();
    for (std::uint64_t n = 0; n < 150; ++n) {
      Draw d(17, n);
      c.samples.push_back(c.draw(d));
    }
    c.large.clear();
    c.dtypes = {DType::f64, DType::i32};
    CHECK(check_forward(c) == "");
    c.samples.resize(40);
    CHECK(check_gradients(c) == "");
    CHECK(check_second_gradients(c) == "");
  }
}
