// Attention with masks and dropout by blocks: compared with the composed form, on any number of threads, in memory that
// grows with the length and not with its square.

#include "kernels/attention_oracle.h"
#include "support/comparison.h"

#include <levin/autograd/gradcheck.h>
#include <levin/core/allocator.h>
#include <levin/core/parallel.h>

using namespace levin;
using namespace levin::test;

namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

struct Heads {
  Heads(int64_t batch, int64_t heads, int64_t rows, int64_t columns, DType dtype = kDouble)
      : q(randn({batch, heads, rows, 9}, {.dtype = dtype})),
        k(randn({batch, heads, columns, 9}, {.dtype = dtype})),
        v(randn({batch, heads, columns, 5}, {.dtype = dtype})) {}
  Tensor q, k, v;
};

/// Returns a mask that hides about a third of the elements, and all of row 0.
Tensor choice(const Shape& sizes) {
  const Tensor m = rand(sizes) > 0.3;
  if (m.dim() > 1 && m.size(-2) > 1) m.select(-2, 0).fill_(false);
  return m;
}
Tensor added(const Shape& sizes, DType dtype) {
  return masked_fill(randn(sizes, {.dtype = dtype}), logical_not(choice(sizes)), kHidden);
}

}  // namespace

TEST_CASE("masks of every shape: blockwise attention matches the composed form, with the mask's gradient") {
  manual_seed(41);
  for (const DType dtype : {kDouble, kFloat})
    for (const int64_t batch : {2, 9}) {  // two sweeps over blocks, and one problem per task
      const int64_t rows = 100, columns = 325;
      const Heads x(batch, 2, rows, columns, dtype);
      for (const Shape& sizes : std::vector<Shape>{{columns},
                                                   {1},
                                                   {rows, columns},
                                                   {rows, 1},
                                                   {batch, 1, 1, columns},
                                                   {1, 2, rows, columns},
                                                   {batch, 2, rows, columns},
                                                   {batch, 1, rows, 1}}) {
        check_attention("bool " + to_string(sizes), x.q, x.k, x.v, {.attn_mask = choice(sizes)});
        check_attention("floating " + to_string(sizes), x.q, x.k, x.v, {.attn_mask = added(sizes, dtype)});
      }
    }
}

TEST_CASE("masks that are views, of another floating type, and expanded by the caller") {
  manual_seed(42);
  const Heads x(2, 2, 100, 340);
  check_attention("transposed bool", x.q, x.k, x.v, {.attn_mask = choice({340, 100}).t()});
  check_attention("transposed", x.q, x.k, x.v, {.attn_mask = added({340, 100}, kDouble).t()});
  check_attention("every second", x.q, x.k, x.v, {.attn_mask = added({100, 680}, kDouble)(Slice(), Slice(0, 680, 2))});
  check_attention("expanded", x.q, x.k, x.v, {.attn_mask = added({2, 1, 1, 340}, kDouble).expand({2, 2, 100, 340})});
  check_attention("expanded rows", x.q, x.k, x.v, {.attn_mask = added({100, 1}, kDouble).expand({100, 340})});
  check_attention("float32", x.q, x.k, x.v, {.attn_mask = added({100, 340}, kFloat)});
}

TEST_CASE("padding on either side leaves whole blocks of columns hidden") {
  manual_seed(43);
  const Heads x(3, 1, 100, 600);
  Tensor keys = ones({3, 1, 1, 600}, {.dtype = kBool});
  keys(Slice(0, 1), Slice(), Slice(), Slice(0, 520)).fill_(false);   // the first two blocks
  keys(Slice(1, 2), Slice(), Slice(), Slice(30, 600)).fill_(false);  // the last two
  keys(Slice(2, 3)).fill_(false);                                    // all: zeros
  check_attention("padding", x.q, x.k, x.v, {.attn_mask = keys});
  const Tensor y = scaled_dot_product_attention(x.q, x.k, x.v, {.attn_mask = keys});
  CHECK(sum(abs(y.select(0, 2))).item<double>() == 0.0);
  CHECK(sum(abs(y.select(0, 1))).item<double>() > 0.0);
}

TEST_CASE("scores that are -infinity without a mask give NaN, as a softmax does") {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor q = full({1, 1}, infinity), k = full({340, 1}, -1.0), v = ones({340, 2});
  for (const Tensor& mask : {Tensor(), ones({340}, {.dtype = kBool}), zeros({340})})
    for (const float y : scaled_dot_product_attention(q, k, v, {.attn_mask = mask}).to_vector<float>())
      CHECK(std::isnan(y));
}

TEST_CASE("dropout by blocks drops the same weights forward, backward and in the mask's gradient") {
  manual_seed(44);
  for (const DType dtype : {kDouble, kFloat})
    for (const int64_t batch : {2, 9})
      for (const int64_t columns : {340, 325, 67}) {  // 67 and 325: rows end inside of a Philox block
        const Heads x(batch, 2, 100, columns, dtype);
        const std::string label = std::to_string(batch) + " x 2 x 100 x " + std::to_string(columns);
        check_attention(label, x.q, x.k, x.v, {.dropout_p = 0.3});
        check_attention(label + ", causal", x.q, x.k, x.v, {.dropout_p = 0.3, .is_causal = true});
        check_attention(label + ", padding", x.q, x.k, x.v,
                        {.attn_mask = choice({batch, 1, 1, columns}), .dropout_p = 0.3});
        check_attention(label + ", masked", x.q, x.k, x.v,
                        {.attn_mask = added({2, 100, columns}, dtype), .dropout_p = 0.3});
      }
}

TEST_CASE("the gradient of a mask is summed over several blocks of rows") {
  manual_seed(45);
  const Heads x(1, 2, 340, 1100);  // 2^18 scores are 238 rows
  check_attention("all rows", x.q, x.k, x.v, {.attn_mask = added({340, 1100}, kDouble), .dropout_p = 0.2});
  check_attention("one row", x.q, x.k, x.v, {.attn_mask = added({2, 1, 1100}, kDouble), .dropout_p = 0.2});
}

TEST_CASE("attention with a mask and dropout has correct first and second derivatives") {
  manual_seed(46);
  const auto attention = [](AttentionOptions o) {
    return [o](const std::vector<Tensor>& x) mutable -> std::vector<Tensor> {
      manual_seed(47);
      if (x.size() > 3) o.attn_mask = x[3];
      return {scaled_dot_product_attention(x[0], x[1], x[2], o)};
    };
  };
  const auto leaf = [](const Shape& sizes) { return randn(sizes, {.dtype = kDouble}).requires_grad_(); };
  const Tensor q = leaf({2, 3, 4}), k = leaf({2, 5, 4}), v = leaf({2, 5, 2}), mask = leaf({2, 1, 5});
  const Tensor padding = tensor<double>({1, 0, 1, 1, 0}).to(kBool);
  for (const double p : {0.0, 0.4}) {
    CHECK(gradcheck(attention({.dropout_p = p}), {q, k, v, mask}) == "");
    CHECK(gradgradcheck(attention({.dropout_p = p}), {q, k, v, mask}) == "");
    CHECK(gradgradcheck(attention({.attn_mask = padding, .dropout_p = p}), {q, k, v}) == "");
    CHECK(gradgradcheck(attention({.dropout_p = p, .is_causal = true}), {q, k, v}) == "");
  }
}

TEST_CASE("second derivatives of blockwise attention equal those of the composed form") {
  manual_seed(48);
  const Heads x(2, 1, 100, 325);
  const Tensor kept = dropout_factors({2, 1}, 100, 325, 0.25, kDouble, 49), bias = added({100, 325}, kDouble);
  const Tensor w = randn({2, 1, 100, 9}, {.dtype = kDouble});
  const auto second = [&](const auto& attention) {
    const Tensor q = x.q.detach().requires_grad_(), k = x.k.detach().requires_grad_(),
                 v = x.v.detach().requires_grad_(), m = bias.detach().requires_grad_();
    const Tensor y = attention(q, k, v, AttentionOptions{.attn_mask = m, .dropout_p = 0.25});
    const Tensor dq = grad({sum(square(y))}, {q}, {.create_graph = true})[0];
    return grad({sum(dq * w)}, {q, k, v, m});
  };
  manual_seed(49);
  const auto actual = second(scaled_dot_product_attention);
  const auto expected = second([&](const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
    return composed_attention(q, k, v, o, kept);
  });
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string wrong = compare(actual[i], expected[i], Tolerance{.ulps = 32, .scale = 16}, 300);
    CHECK_MESSAGE(wrong.empty(), i, ": ", wrong);
  }
}

TEST_CASE("a mask and dropout give the same bits on any number of threads") {
  manual_seed(50);
  const int before = num_threads();
  for (const int64_t batch : {1, 10}) {
    const Heads x(batch, 2, 150, 340, kFloat);
    const Tensor g = randn({batch, 2, 150, 5}), mask = added({batch, 1, 1, 340}, kFloat);
    const auto run = [&](int threads) {
      set_num_threads(threads);
      manual_seed(51);
      std::vector<std::vector<float>> all;
      const AttentionOptions o{.attn_mask = mask, .dropout_p = 0.2};
      for (const Tensor& t : attention_result(scaled_dot_product_attention, x.q, x.k, x.v, o, g))
        all.push_back(t.to_vector<float>());
      return all;
    };
    const auto expected = run(1);
    REQUIRE(expected.size() == 5);
    for (const int threads : {2, 3, 7}) CHECK(run(threads) == expected);
  }
  set_num_threads(before);
}

TEST_CASE("dropout of attention weights drops each with its probability and follows the seed") {
  const Tensor half = dropout_factors({2, 3}, 50, 103, 0.5, kFloat, 52),
               other = dropout_factors({2, 3}, 50, 103, 0.5, kFloat, 53);
  CHECK(half.to_vector<float>() == dropout_factors({2, 3}, 50, 103, 0.5, kFloat, 52).to_vector<float>());
  CHECK(half.to_vector<float>() != other.to_vector<float>());
  for (const double p : {0.1, 0.5, 0.9}) {
    const Tensor factors = dropout_factors({2, 3}, 50, 103, p, kDouble, 54);
    const auto n = static_cast<double>(factors.numel());
    const double dropped = mean(to(factors == 0, kDouble)).item<double>();
    CHECK(std::abs(dropped - p) <= 5 * std::sqrt(p * (1 - p) / n));
    // No two rows, no two problems are alike: half of the weights agree where p is 1/2, and so on.
    const double expected = p * p + (1 - p) * (1 - p);
    const Tensor a = factors != 0, rows = a(Slice(), Slice(), Slice(0, 49)) == a(Slice(), Slice(), Slice(1, 50));
    CHECK(std::abs(mean(to(rows, kDouble)).item<double>() - expected) <= 5 / std::sqrt(n));
    CHECK(std::abs(mean(to(a.select(1, 0) == a.select(1, 1), kDouble)).item<double>() - expected) <= 8 / std::sqrt(n));
  }
  const Tensor q = randn({3, 4}), v = ones({3, 2});
  CHECK(sum(abs(scaled_dot_product_attention(q, q, v, {.dropout_p = 1.0}))).item<float>() == 0.0f);
  // Each call takes as many random numbers as it has weights, rounded up for each row.
  manual_seed(55);
  scaled_dot_product_attention(randn({2, 3, 4}), randn({2, 5, 4}), randn({2, 5, 4}), {.dropout_p = 0.5});
  const std::uint64_t used = default_generator().state().offset;
  manual_seed(55);
  randn({2, 3, 4}), randn({2, 5, 4}), randn({2, 5, 4});
  CHECK(used == default_generator().state().offset + 2 * 3 * 2);
}

TEST_CASE("grouped queries take a mask and dropout through the blocks") {
  manual_seed(56);
  const Tensor q = randn({2, 6, 100, 8}, {.dtype = kDouble}), k = randn({2, 2, 325, 8}, {.dtype = kDouble}),
               v = randn({2, 2, 325, 3}, {.dtype = kDouble});
  const auto repeated = [](const Tensor& x) { return repeat_interleave(x, 3, 1); };
  const Tensor kept = dropout_factors({2, 6}, 100, 325, 0.3, kDouble, 57);
  const Tensor g = randn({2, 6, 100, 3}, {.dtype = kDouble});
  for (const Shape& sizes : std::vector<Shape>{{2, 1, 1, 325}, {6, 100, 325}, {2, 6, 100, 325}}) {
    const AttentionOptions o{.attn_mask = added(sizes, kDouble), .dropout_p = 0.3, .enable_gqa = true};
    const auto composed = [&](const Tensor& a, const Tensor& b, const Tensor& c, const AttentionOptions& with) {
      return composed_attention(a, repeated(b), repeated(c), with, kept);
    };
    const std::vector<Tensor> expected = attention_result(composed, q, k, v, o, g);
    manual_seed(57);
    const std::vector<Tensor> actual = attention_result(scaled_dot_product_attention, q, k, v, o, g);
    for (std::size_t i = 0; i < 5; ++i) {
      const std::string wrong = compare(actual[i], expected[i], Tolerance{.ulps = 16, .scale = 4}, 800);
      CHECK_MESSAGE(wrong.empty(), to_string(sizes), ", ", i, ": ", wrong);
    }
  }
}

TEST_CASE("memory of attention with a mask and dropout grows with the length, not with its square") {
  const auto peak = [](int64_t length, AttentionOptions o) {
    const Tensor q = randn({length, 8}).requires_grad_(), g = ones({length, 8});
    cpu_allocator::reset_peak();
    const auto before = cpu_allocator::stats().allocated;
    scaled_dot_product_attention(q, q, q, o).backward(g);
    return static_cast<double>(cpu_allocator::stats().peak_allocated - before);
  };
  constexpr int64_t length = 2048;  // the scores are 17 MB
  const auto padding = [](int64_t n) {
    const Tensor m = ones({1, n}, {.dtype = kBool});
    m(Slice(), Slice(n - 100, n)).fill_(false);
    return m;
  };
  for (const double p : {0.0, 0.1}) {
    const double once = peak(length, {.attn_mask = padding(length), .dropout_p = p});
    CHECK(once < 16.0 * length * 8 * 4);  // sixteen tensors like q
    CHECK(peak(2 * length, {.attn_mask = padding(2 * length), .dropout_p = p}) <= 2.1 * once);
  }
  // The mask's gradient works on 2^18 scores at a time.
  const Tensor mask = zeros({length}).requires_grad_();
  CHECK(peak(length, {.attn_mask = mask, .dropout_p = 0.1}) < 16.0 * length * 8 * 4 + 8 * 4 * 0x1p18);
}
