// Row-wise gradients of embeddings: compared with the dense ones, in memory of the rows in use.

#include "support/tolerance.h"

#include <levin/autograd/autograd.h>
#include <levin/core/allocator.h>
#include <levin/core/parallel.h>
#include <levin/core/state_dict.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

using namespace levin;

namespace {

Tensor table(int64_t rows, int64_t columns, DType dtype = kFloat) {
  return randn({rows, columns}).to(dtype).requires_grad_();
}

/// Runs backward of an embedding with the gradient g.
void look_up(const Tensor& weight, const Tensor& index, const Tensor& g, bool sparse,
             std::optional<int64_t> padding = std::nullopt) {
  embedding(weight, index, padding, sparse).backward(g);
}

/// Checks that the row-wise gradient of `weight` is ascending and has the bits of `dense`, whose other rows are zero.
void check_rows(const Tensor& weight, const Tensor& dense) {
  const auto g = row_grad(weight);
  REQUIRE(g);
  const auto indices = g->indices.to_vector<int64_t>();
  CHECK(std::ranges::is_sorted(indices));
  CHECK(std::ranges::adjacent_find(indices) == indices.end());
  CHECK(g->rows.sizes() == Shape{static_cast<int64_t>(indices.size()), weight.size(1)});
  CHECK(g->rows.dtype() == weight.dtype());
  CHECK(g->rows.to_vector<double>() == index_select(dense, 0, g->indices).to_vector<double>());
  CHECK(sum(abs(index_fill(dense, 0, g->indices, 0))).item<double>() == 0.0);
}

}  // namespace

TEST_CASE("a row-wise gradient has the bits of the dense one") {
  manual_seed(71);
  for (const DType dtype : {kDouble, kFloat, kHalf, kBFloat16}) {
    const Tensor sparse = table(50, 7, dtype), dense = sparse.detach().requires_grad_();
    for (const std::optional<int64_t>& padding : {std::optional<int64_t>(), {3}, {-1}}) {
      const Tensor index = randint(0, 50, {6, 40}), g = randn({6, 40, 7}).to(dtype);
      index(0, Slice(0, 5)).fill_(3);
      look_up(sparse, index, g, true, padding);
      look_up(dense, index, g, false, padding);
      check_rows(sparse, dense.grad());
      const auto rows = row_grad(sparse)->indices.to_vector<int64_t>();
      CHECK(std::ranges::count(rows, 3) == (padding == 3 ? 0 : 1));
      for (const Tensor& t : {sparse, dense}) t.set_grad({});
      CHECK(!row_grad(sparse));
      look_up(sparse, index.t().to(kInt32), g.transpose(0, 1), true, padding);  // strided
      look_up(dense, index.t().to(kInt32), g.transpose(0, 1), false, padding);
      check_rows(sparse, dense.grad());
      for (const Tensor& t : {sparse, dense}) t.set_grad({});
    }
  }
}

TEST_CASE("row-wise gradients add up over lookups and over backward passes, each row once") {
  manual_seed(72);
  const Tensor sparse = table(9, 4, kDouble), dense = sparse.detach().requires_grad_();
  const Tensor a = tensor<int64_t>({1, 4, 1, 8}), b = tensor<int64_t>({4, 0, 8});
  for (int pass = 0; pass < 3; ++pass) {
    const auto loss = [&](const Tensor& w, bool rows) {
      return sum(square(embedding(w, a, std::nullopt, rows))) + sum(exp(embedding(w, b, std::nullopt, rows)));
    };
    loss(sparse, true).backward();
    loss(dense, false).backward();
  }
  const auto g = row_grad(sparse);
  REQUIRE(g);
  CHECK(g->indices.to_vector<int64_t>() == std::vector<int64_t>{0, 1, 4, 8});
  CHECK(test::compare(g->rows, index_select(dense.grad(), 0, g->indices), {.ulps = 8}, 12) == "");
  densify_grad(sparse);
  CHECK(!row_grad(sparse));
  CHECK(test::compare(sparse.grad(), dense.grad(), {.ulps = 8}, 12) == "");
}

TEST_CASE("a table that is used both ways gets one dense gradient") {
  manual_seed(73);
  const Tensor w = table(6, 3, kDouble), x = randn({2, 3}, {.dtype = kDouble});
  const Tensor index = tensor<int64_t>({5, 2, 5});
  const auto rows_part = [&] { return sum(square(embedding(w, index, std::nullopt, true))); };
  const auto dense_part = [&] { return sum(square(matmul(x, w.t()))); };
  const Tensor expected = grad({sum(square(embedding(w, index))) + dense_part()}, {w})[0];
  for (const int order : {0, 1, 2, 3}) {
    w.set_grad({});
    if (order == 0) (rows_part() + dense_part()).backward();
    if (order == 1) (dense_part() + rows_part()).backward();
    if (order == 2) rows_part().backward(), dense_part().backward();
    if (order == 3) dense_part().backward(), rows_part().backward();
    CHECK(!row_grad(w));
    CHECK_MESSAGE(test::compare(w.grad(), expected, {.ulps = 8}, 8) == "", order);
  }
}

TEST_CASE("grad() of a table is dense and leaves nothing behind") {
  const Tensor w = table(5, 2, kDouble), index = tensor<int64_t>({3, 3});
  const Tensor g = grad({sum(embedding(w, index, std::nullopt, true))}, {w})[0];
  CHECK(g.to_vector<double>() == std::vector<double>{0, 0, 0, 0, 0, 0, 2, 2, 0, 0});
  CHECK(!row_grad(w));
  CHECK(!w.grad().defined());
}

TEST_CASE("what a row-wise gradient cannot do says so") {
  const Tensor w = table(5, 2), index = tensor<int64_t>({3, 1});
  const auto loss = [&] { return sum(square(embedding(w, index, std::nullopt, true))); };
  CHECK_THROWS_WITH_AS(loss().backward({}, {.create_graph = true}),
                       doctest::Contains("[embedding] the row-wise gradient of sparse = true cannot be differentiated"),
                       GradError);
  CHECK_THROWS_WITH_AS(embedding(w * 2, index, std::nullopt, true),
                       doctest::Contains("[embedding] the weight was computed from other tensors"), GradError);
  CHECK(embedding(w.detach() * 2, index, std::nullopt, true).sizes() == Shape{2, 2});
  HookHandle handle = w.register_hook([](const Tensor& g) { return g; });
  CHECK_THROWS_WITH_AS(loss().backward(), doctest::Contains("[register_hook] a hook cannot see the row-wise gradient"),
                       GradError);
  handle.remove();
  w.set_grad({});
  int64_t seen = 0;
  const HookHandle after =
      w.register_post_accumulate_grad_hook([&](const Tensor& t) { seen += row_grad(t)->rows.numel(); });
  loss().backward();
  CHECK(seen == 4);
  CHECK_THROWS_WITH_AS(w.grad(), doctest::Contains("Read it by row_grad(x), or call densify_grad(x) first."),
                       GradError);
  CHECK_THROWS_WITH_AS(require_dense_grad("fsdp", Parameter("emb.weight", w)),
                       "[fsdp] the gradient of \"emb.weight\" is row-wise, as embedding() with sparse = true makes it, "
                       "and fsdp needs a dense one; use sparse = false.",
                       GradError);
  CHECK_THROWS_WITH_AS(set_row_grad(w, {index, ones({3, 2})}),
                       doctest::Contains("int64, the rows (3, 2) float32; a table (5, 2) float32 needs"), ShapeError);
  set_row_grad(w, {tensor<int64_t>({0}), ones({1, 2})});
  densify_grad(w);
  CHECK(w.grad().to_vector<float>() == std::vector<float>{1, 1, 0, 0, 0, 0, 0, 0, 0, 0});
  w.set_grad({});
  CHECK(!gradient_values(w).defined());
}

TEST_CASE("a lookup of nothing, or of padding alone, has a gradient without rows") {
  const Tensor w = table(5, 2);
  look_up(w, zeros({0}, {.dtype = kInt64}), zeros({0, 2}), true);
  REQUIRE(row_grad(w));
  CHECK(row_grad(w)->indices.numel() == 0);
  look_up(w, tensor<int64_t>({4, 4}), ones({2, 2}), true, 4);
  CHECK(row_grad(w)->rows.sizes() == Shape{0, 2});
  look_up(w, tensor<int64_t>({4, 2}), ones({2, 2}), true, 4);
  CHECK(row_grad(w)->indices.to_vector<int64_t>() == std::vector<int64_t>{2});
  densify_grad(w);
  CHECK(w.grad().to_vector<float>() == std::vector<float>{0, 0, 0, 0, 1, 1, 0, 0, 0, 0});
}

TEST_CASE("anomaly detection looks into the rows") {
  const Tensor w = table(5, 2), index = tensor<int64_t>({3, 1});
  const detect_anomaly guard;
  look_up(w, index, ones({2, 2}), true);
  CHECK(row_grad(w));
  CHECK_THROWS_WITH_AS(look_up(w, index, full({2, 2}, std::numeric_limits<double>::quiet_NaN()), true),
                       doctest::Contains("\"embedding\""), GradError);
}

TEST_CASE("row-wise gradients have the same bits on any number of threads") {
  manual_seed(74);
  const int before = num_threads();
  const Tensor w = table(300, 33), index = randint(0, 300, {5000}), g = randn({5000, 33});
  std::vector<float> expected;
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    w.set_grad({});
    look_up(w, index, g, true);
    const auto rows = row_grad(w)->rows.to_vector<float>();
    if (expected.empty()) expected = rows;
    CHECK(rows == expected);
  }
  set_num_threads(before);
}

TEST_CASE("the backward of a large table allocates memory of the rows in use") {
  const Tensor w = zeros({1'000'000, 16}).requires_grad_(), index = randint(0, 1'000'000, {64, 32});
  cpu_allocator::reset_peak();
  const auto start = cpu_allocator::stats().allocated;
  for (int pass = 0; pass < 3; ++pass) sum(square(embedding(w, index, 0, true))).backward();
  const auto used = cpu_allocator::stats().peak_allocated - start;
  CHECK(used > 64 * 32 * 16 * 4);
  CHECK(used < 20 * 64 * 32 * 16 * 4);  // the table is 64 MB, the rows are 131 kB
}
