// The operations that PyTorch has as methods of Tensor are members here too.
#include <levin/autograd/autograd.h>

#include <doctest/doctest.h>

#include <string_view>

using namespace levin;

namespace {

// Every row of the families is a member, and every function of one tensor has its in-place form.
#define LEVIN_UNARY_ROW(name, ...) static_assert(requires(const Tensor x) { x.name(), x.name##_(); });
#define LEVIN_PROPERTY_ROW(name, ...) static_assert(requires(const Tensor x) { x.name(); });
// huber is the kernel of huber_loss and smooth_l1_loss, and glu has one tensor as its operand. They and the rows of
// their gradients are no methods.
constexpr bool is_method(std::string_view row) { return row != "huber" && row != "glu" && !row.ends_with("_slope"); }
#define LEVIN_BINARY_ROW(name, ...)                                             \
  template <class T>                                                            \
  concept Has_##name = !is_method(#name) || requires(const T x) { x.name(x); }; \
  static_assert(Has_##name<Tensor>);
// polygamma has its number first, and is therefore no member.
#define LEVIN_SCALAR_ROW(name, ...)                                                                              \
  template <class T>                                                                                             \
  concept Has_##name = requires(const T x) { x.name(x); } || requires(const T x) { levin::name(int64_t{1}, x); }; \
  static_assert(Has_##name<Tensor>);
#define LEVIN_LOGICAL_ROW(name, ...) static_assert(requires(const Tensor x) { x.name(x); });
#define LEVIN_TERNARY_ROW(name, ...)                                               \
  template <class T>                                                               \
  concept Has_##name = !is_method(#name) || requires(const T x) { x.name(x, x); }; \
  static_assert(Has_##name<Tensor>);
#define LEVIN_BITWISE_ROW(name, ...) static_assert(requires(const Tensor x) { x.name(x), x.name(1), x.name##_(x); });
#define LEVIN_COMPARISON_ROW(name, ...) static_assert(requires(const Tensor x) { x.name(x), x.name(1); });
#define LEVIN_EXCHANGED_ROW(name, ...) static_assert(requires(const Tensor x) { x.name(x), x.name(1); });
#include <levin/kernels/elementwise_rows.h>
#define LEVIN_REDUCTION_ROW(name, ...) static_assert(requires(const Tensor x) { x.name(), x.name(1, true); });
#include <levin/kernels/reduction_rows.h>

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && (!a.is_floating() || equal(isnan(a), isnan(b))) &&
         nan_to_num(a.detach()).to_vector<double>() == nan_to_num(b.detach()).to_vector<double>();
}
bool same(const ValuesIndices& a, const ValuesIndices& b) {
  return same(a.values, b.values) && same(a.indices, b.indices);
}
bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  bool equal = a.size() == b.size() && !a.empty();
  for (std::size_t i = 0; equal && i < a.size(); ++i) equal = same(a[i], b[i]);
  return equal;
}

/// Compares x.name(arguments) with name(x, arguments).
#define CHECK_METHOD(x, name, ...) \
  CHECK_MESSAGE(same(x.name(__VA_ARGS__), levin::name(x __VA_OPT__(, ) __VA_ARGS__)), #name)

}  // namespace

TEST_CASE("PyTorch's methods are members: functions of one tensor") {
  const Tensor x = tensor({{0.5, 0.25, 0.75}, {0.1, 0.9, 0.3}});
  CHECK_METHOD(x, abs);
  CHECK_METHOD(x, ceil);
  CHECK_METHOD(x, clone);
  CHECK_METHOD(x, contiguous);
  CHECK_METHOD(x, cos);
  CHECK_METHOD(x, detach);
  CHECK_METHOD(x, erf);
  CHECK_METHOD(x, exp);
  CHECK_METHOD(x, expm1);
  CHECK_METHOD(x, floor);
  CHECK_METHOD(x, isfinite);
  CHECK_METHOD(x, isinf);
  CHECK_METHOD(x, isnan);
  CHECK_METHOD(x, log);
  CHECK_METHOD(x, log10);
  CHECK_METHOD(x, log1p);
  CHECK_METHOD(x, log2);
  CHECK_METHOD(x, logical_not);
  CHECK_METHOD(x, neg);
  CHECK_METHOD(x, reciprocal);
  CHECK_METHOD(x, relu);
  CHECK_METHOD(x, round);
  CHECK_METHOD(x, rsqrt);
  CHECK_METHOD(x, sigmoid);
  CHECK_METHOD(x, sign);
  CHECK_METHOD(x, sin);
  CHECK_METHOD(x, sqrt);
  CHECK_METHOD(x, square);
  CHECK_METHOD(x, tan);
  CHECK_METHOD(x, tanh);
  CHECK_METHOD(x, trunc);
}

TEST_CASE("PyTorch's methods are members: arithmetic and comparisons") {
  const Tensor x = tensor({{0.5, 0.25, 0.75}, {0.1, 0.9, 0.3}}), y = tensor({{0.2, 0.25, 0.5}, {0.4, 0.6, 0.7}});
  const Tensor i = tensor({{6, 3, 5}, {1, 2, 4}}), j = tensor({{3, 2, 6}, {4, 1, 7}}), mask = x > 0.4;
  CHECK_METHOD(x, add, y);
  CHECK_METHOD(x, add, y, 2);
  CHECK_METHOD(x, add, 2);
  CHECK_METHOD(x, sub, y);
  CHECK_METHOD(x, sub, y, 2);
  CHECK_METHOD(x, sub, 2);
  CHECK_METHOD(x, mul, y);
  CHECK_METHOD(x, mul, 2);
  CHECK_METHOD(x, div, y);
  CHECK_METHOD(x, div, 2);
  CHECK_METHOD(x, floor_divide, y);
  CHECK_METHOD(x, floor_divide, 2);
  CHECK_METHOD(x, remainder, y);
  CHECK_METHOD(x, remainder, 2);
  CHECK_METHOD(x, pow, y);
  CHECK_METHOD(x, pow, 2);
  CHECK_METHOD(x, maximum, y);
  CHECK_METHOD(x, minimum, y);
  CHECK_METHOD(x, atan2, y);
  CHECK_METHOD(x, lerp, y, y);
  CHECK_METHOD(x, lerp, y, 0.5);
  CHECK_METHOD(x, addcmul, x, y);
  CHECK_METHOD(x, addcmul, x, y, 0.5);
  CHECK_METHOD(x, addcdiv, x, y);
  CHECK_METHOD(x, addcdiv, x, y, 0.5);
  CHECK_METHOD(x, clamp, 0.2, 0.5);
  CHECK_METHOD(x, clamp, 0.2);
  CHECK_METHOD(x, eq, y);
  CHECK_METHOD(x, eq, 0.5);
  CHECK_METHOD(x, ne, y);
  CHECK_METHOD(x, ne, 0.5);
  CHECK_METHOD(x, lt, y);
  CHECK_METHOD(x, lt, 0.5);
  CHECK_METHOD(x, le, y);
  CHECK_METHOD(x, le, 0.5);
  CHECK_METHOD(x, gt, y);
  CHECK_METHOD(x, gt, 0.5);
  CHECK_METHOD(x, ge, y);
  CHECK_METHOD(x, ge, 0.5);
  CHECK_METHOD(mask, logical_and, x);
  CHECK_METHOD(mask, logical_or, x);
  CHECK_METHOD(mask, logical_xor, x);
  CHECK_METHOD(i, bitwise_and, j);
  CHECK_METHOD(i, bitwise_and, 3);
  CHECK_METHOD(i, bitwise_or, j);
  CHECK_METHOD(i, bitwise_or, 3);
  CHECK_METHOD(i, bitwise_xor, j);
  CHECK_METHOD(i, bitwise_xor, 3);
  CHECK_METHOD(i, bitwise_not);
  CHECK_METHOD(x, masked_fill, mask, 2);
  CHECK_METHOD(x, masked_select, mask);
  CHECK(same(x.where(mask, y), where(mask, x, y)));
  CHECK(same(x.where(mask, 0), where(mask, x, 0)));
  CHECK_METHOD(x, matmul, y.t());
  CHECK_METHOD(x, mm, y.t());
  CHECK(same(x.unsqueeze(0).bmm(y.t().unsqueeze(0)), x.mm(y.t()).unsqueeze(0)));
  const Tensor bias = ones({2});
  CHECK_METHOD(bias, addmm, x, y.t());
  CHECK_METHOD(bias, addmm, x, y.t(), 2, 3);
}

TEST_CASE("PyTorch's methods are members: reductions and scans") {
  const Tensor x = tensor({{0.5, 0.25, 0.75}, {0.1, 0.9, 0.3}}), mask = x > 0.4;
  CHECK_METHOD(x, sum);
  CHECK_METHOD(x, sum, 1);
  CHECK_METHOD(x, sum, {0, 1}, true);
  CHECK_METHOD(x, mean);
  CHECK_METHOD(x, mean, -1);
  CHECK_METHOD(x, mean, {1}, true);
  CHECK_METHOD(x, prod);
  CHECK_METHOD(x, prod, 0, true);
  CHECK_METHOD(x, var);
  CHECK_METHOD(x, var, 1, false, true);
  CHECK_METHOD(x, std);
  CHECK_METHOD(x, std, 1, 0.0);
  CHECK_METHOD(x, amax);
  CHECK_METHOD(x, amax, 1, true);
  CHECK_METHOD(x, amin);
  CHECK_METHOD(x, amin, 1);
  CHECK_METHOD(mask, any);
  CHECK_METHOD(mask, any, 1);
  CHECK_METHOD(mask, all);
  CHECK_METHOD(mask, all, 0, true);
  CHECK_METHOD(x, norm);
  CHECK_METHOD(x, norm, 1.0, 1, true);
  CHECK_METHOD(x, logsumexp, 1);
  CHECK_METHOD(x, logsumexp, {0, 1}, true);
  CHECK_METHOD(x, cumsum, 1);
  CHECK_METHOD(x, softmax, -1);
  CHECK_METHOD(x, log_softmax, -1);
  CHECK_METHOD(x, max);
  CHECK_METHOD(x, max, 1);
  CHECK_METHOD(x, max, 1, true);
  CHECK_METHOD(x, min);
  CHECK_METHOD(x, min, 0);
  CHECK_METHOD(x, argmax);
  CHECK_METHOD(x, argmax, 1);
  CHECK_METHOD(x, argmin);
  CHECK_METHOD(x, argmin, 1, true);
  CHECK_METHOD(x, sum_to_size, {1, 3});
}

TEST_CASE("PyTorch's methods are members: views, indexing and sorting") {
  const Tensor x = tensor({{0.5, 0.25, 0.75}, {0.1, 0.9, 0.3}}), rows = tensor({1, 0}), picks = tensor({{0}, {2}});
  const Tensor two = ones({2, 1});
  CHECK_METHOD(x, reshape, {3, 2});
  CHECK_METHOD(x, view, {6});
  CHECK(same(x.view_as(ones({3, 2})), x.view({3, 2})));
  CHECK_METHOD(x, flatten);
  CHECK_METHOD(x, transpose, 0, 1);
  CHECK_METHOD(x, t);
  CHECK_METHOD(x, permute, {1, 0});
  CHECK_METHOD(x, narrow, 1, 1, 2);
  CHECK_METHOD(x, select, 1, 2);
  CHECK_METHOD(two, expand, {2, 3});
  CHECK(same(two.expand_as(x), two.expand({2, 3})));
  CHECK_METHOD(two, squeeze);
  CHECK_METHOD(two, squeeze, 1);
  CHECK_METHOD(x, unsqueeze, 1);
  CHECK_METHOD(x, unfold, 1, 2, 1);
  CHECK_METHOD(x, as_strided, {2, 2}, {1, 2});
  CHECK_METHOD(x, as_strided, {2}, {1}, 3);
  CHECK_METHOD(x, chunk, 2, 1);
  CHECK_METHOD(x, split, 2, 1);
  CHECK_METHOD(x, split, std::vector<int64_t>{1, 2}, 1);
  CHECK_METHOD(x, unbind, 1);
  CHECK_METHOD(x, gather, 1, picks);
  CHECK_METHOD(x, scatter, 1, picks, two);
  CHECK_METHOD(x, scatter_add, 1, picks, two);
  CHECK_METHOD(x, index_select, 0, rows);
  CHECK_METHOD(x, index_add, 0, rows, x);
  CHECK_METHOD(x, index_put, {rows}, zeros({3}));
  CHECK_METHOD(x, nonzero);
  CHECK_METHOD(x, sort);
  CHECK_METHOD(x, sort, 0, true);
  CHECK_METHOD(x, argsort);
  CHECK_METHOD(x, argsort, 1, true);
  CHECK_METHOD(x, topk, 2);
  CHECK_METHOD(x, topk, 1, 0, false);
  CHECK_METHOD(x, tril);
  CHECK_METHOD(x, triu, 1);
  CHECK_METHOD(x, flip, 1);
  CHECK_METHOD(x, flip, {0, 1});
}

TEST_CASE("PyTorch's methods are members: compositions") {
  const Tensor x = tensor({{0.5, 0.25, 0.75}, {0.1, 0.9, 0.3}}), v = x[0], square_matrix = mm(x, x.t());
  const Tensor whole = tensor({{3, 1, 2}, {0, 5, 4}}), places = tensor<int64_t>({1, 0}), one = tensor<int64_t>({0, 1});
  CHECK_METHOD(x, frac);
  CHECK_METHOD(x, isposinf);
  CHECK_METHOD(x, isneginf);
  CHECK_METHOD(x, signbit);
  CHECK(x.equal(x.clone()));
  CHECK_FALSE(x.equal(x.clone() + 1));
  CHECK_METHOD(x, fmod, 0.2);
  CHECK_METHOD(x, fmod, x.flip(0));
  CHECK_METHOD(x, logaddexp, x.flip(0));
  CHECK_METHOD(x, logaddexp2, x.flip(0));
  CHECK_METHOD(x, xlogy, x.flip(0));
  CHECK_METHOD(x, ldexp, whole);
  CHECK_METHOD(x, heaviside, x);
  CHECK_METHOD(whole, bitwise_left_shift, whole);
  CHECK_METHOD(whole, bitwise_right_shift, whole);
  CHECK_METHOD(x, clamp, x.flip(0), x.flip(1));
  CHECK_METHOD(x, logit);
  CHECK_METHOD(x, logit, 0.2);
  CHECK_METHOD(x, nan_to_num);
  CHECK_METHOD(v, dot, v);
  CHECK_METHOD(v, vdot, v);
  CHECK_METHOD(x, inner, x);
  CHECK_METHOD(x, mv, v);
  CHECK_METHOD(v, outer, v);
  CHECK_METHOD(x, kron, x);
  CHECK_METHOD(places, addmv, whole, whole[0], 1, 2);
  CHECK_METHOD(x, addr, x.select(1, 0), v, 2);
  CHECK_METHOD(x.unsqueeze(0), baddbmm, square_matrix.unsqueeze(0), x.unsqueeze(0));
  CHECK_METHOD(x, addbmm, square_matrix.unsqueeze(0), x.unsqueeze(0));
  CHECK_METHOD(x, cross, x.flip(0));
  CHECK_METHOD(square_matrix, matrix_power, 3);
  CHECK_METHOD(x, nansum, 1);
  CHECK_METHOD(x, nanmean);
  CHECK_METHOD(whole, count_nonzero, 0);
  CHECK_METHOD(x, dist, x.flip(0));
  CHECK_METHOD(x, median);
  CHECK_METHOD(x, median, 1);
  CHECK_METHOD(x, mode, 0);
  CHECK_METHOD(x, kthvalue, 2);
  CHECK_METHOD(x, quantile, 0.3);
  CHECK_METHOD(x, quantile, tensor({0.3, 0.5}), 1);
  CHECK_METHOD(x, cumprod, 1);
  CHECK_METHOD(x, logcumsumexp, 1);
  CHECK_METHOD(x, cummax, 1);
  CHECK_METHOD(x, cummin, 1);
  CHECK_METHOD(x, diff);
  CHECK_METHOD(whole[0], bincount);
  CHECK_METHOD(x, histc, 4);
  CHECK_METHOD(x, ravel);
  CHECK_METHOD(v, expand_as, x);
  CHECK_METHOD(x, view_as, x.t());
  CHECK_METHOD(x, reshape_as, x.t());
  CHECK_METHOD(v, broadcast_to, {2, 3});
  CHECK_METHOD(x, unflatten, 1, {3, 1});
  CHECK_METHOD(x, movedim, 0, 1);
  CHECK_METHOD(x, moveaxis, 0, 1);
  CHECK_METHOD(x, swapaxes, 0, 1);
  CHECK_METHOD(x, swapdims, 0, 1);
  CHECK_METHOD(x, diagonal);
  CHECK_METHOD(x, tensor_split, 2, 1);
  CHECK_METHOD(x, tensor_split, std::vector<int64_t>{1}, 1);
  CHECK_METHOD(x, fliplr);
  CHECK_METHOD(x, flipud);
  CHECK_METHOD(x, rot90);
  CHECK_METHOD(x, roll, {1});
  CHECK_METHOD(x, repeat, {2, 1});
  CHECK_METHOD(x, tile, {2});
  CHECK_METHOD(x, repeat_interleave, 2);
  CHECK_METHOD(x, repeat_interleave, places, 0);
  CHECK_METHOD(x, diag);
  CHECK_METHOD(x, diagflat);
  CHECK_METHOD(x, diag_embed);
  CHECK_METHOD(x, trace);
  CHECK_METHOD(x, take, places);
  CHECK_METHOD(x, take_along_dim, places.unsqueeze(1), 1);
  CHECK_METHOD(x, index_fill, 0, places, 2);
  CHECK_METHOD(x, index_copy, 0, one, x.flip(0));
  CHECK_METHOD(x, masked_scatter, x > 0.5, x);
}

TEST_CASE("PyTorch's methods are members: random numbers in place") {
  const Tensor x = tensor({0.5, 0.25, 0.75});
  Generator a(5), b(5);
  CHECK(same(x.bernoulli(&a), bernoulli(x, &b)));
  const Tensor y = x.clone(), z = x.clone();
  CHECK(same(y.uniform_(1, 2, &a), uniform_(z, 1, 2, &b)));
  CHECK(same(y.normal_(1, 2, &a), normal_(z, 1, 2, &b)));
  CHECK(y.normal_().is_same(y));
}

TEST_CASE("functions in place write the function's values and have its gradient") {
  const Tensor x = tensor<double>({0.25, 0.5, 0.75}), whole = tensor({1, 2});
#define LEVIN_IN_PLACE_METHOD(name)                                                               \
  {                                                                                               \
    CAPTURE(#name);                                                                               \
    const Tensor here = x.clone(), a = x.clone().requires_grad_(), b = x.clone().requires_grad_(); \
    CHECK(here.name##_().is_same(here));                                                          \
    CHECK(same(here, levin::name(x)));                                                            \
    (a * 1).name##_().sum().backward();                                                           \
    levin::name(b * 1).sum().backward();                                                          \
    CHECK(same(a.grad(), b.grad()));                                                              \
    CHECK_THROWS_AS(a.name##_(), GradError);                                                      \
  }
#include <levin/core/tensor_methods.h>
  CHECK(same(whole.clone().floor_(), whole));
  CHECK(same(whole.clone().neg_(), -whole));
  CHECK_THROWS_WITH_AS(whole.exp_(), doctest::Contains("[exp_] a result of type float32 does not fit"), DTypeError);
  CHECK_THROWS_WITH_AS((whole > 1).neg_(), doctest::Contains("[neg_] bool is not accepted"), DTypeError);
}
