// Products of vectors, matrices and tensors.

#include "../../errors.h"
#include "../values.h"

#include <levin/autograd/ops/complex.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/products.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>

#include <algorithm>
#include <cmath>

namespace levin {

using namespace ops;

namespace {

void require_dims(const char* op, const Argument& x, int dims, const char* shape) {
  if (x.tensor.dim() != dims) fail<ShapeError>("[{}] {} is {}, expected is {}.", op, x.name, x.tensor.sizes(), shape);
}

/// beta * bias + alpha * product; with beta 0 the bias is ignored, even if it is not finite.
Tensor blend(const Tensor& bias, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  const Tensor scaled = alpha.to<double>() == 1.0 ? product : mul(product, alpha);
  if (beta.to<double>() == 0.0) return scaled;
  return add(scaled, beta.to<double>() == 1.0 ? bias : mul(bias, beta));
}

}  // namespace

Tensor dot(const Tensor& a, const Tensor& b) {
  require_dims("dot", {"a", a}, 1, "(N,)");
  require_dims("dot", {"b", b}, 1, "(N,)");
  if (a.numel() != b.numel()) fail<ShapeError>("[dot] the vectors have {} and {} elements.", a.numel(), b.numel());
  if (a.is_floating()) return matmul(a, b);
  const Tensor products = mul(a, b);
  return sum(products).to(products.dtype());
}
Tensor vdot(const Tensor& a, const Tensor& b) { return dot(is_complex(a.dtype()) ? conj(a) : a, b); }

Tensor inner(const Tensor& a, const Tensor& b) {
  if (a.dim() == 0 || b.dim() == 0) return mul(a, b);
  return tensordot(a, b, {a.dim() - 1}, {b.dim() - 1});
}

Tensor mv(const Tensor& a, const Tensor& b) {
  require_dims("mv", {"a", a}, 2, "(M, K)");
  require_dims("mv", {"b", b}, 1, "(K,)");
  return matmul(a, b);
}

Tensor outer(const Tensor& a, const Tensor& b) {
  require_dims("outer", {"a", a}, 1, "(M,)");
  require_dims("outer", {"b", b}, 1, "(N,)");
  return mul(unsqueeze(a, 1), b);
}

Tensor addmv(const Tensor& bias, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  return blend(bias, mv(a, b), beta, alpha);
}
Tensor addr(const Tensor& bias, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  return blend(bias, outer(a, b), beta, alpha);
}
Tensor baddbmm(const Tensor& bias, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  return blend(bias, bmm(a, b), beta, alpha);
}
Tensor addbmm(const Tensor& bias, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  return blend(bias, sum(bmm(a, b), 0), beta, alpha);
}

Tensor tensordot(const Tensor& a, const Tensor& b, int64_t axes) {
  if (axes < 0 || axes > std::min(a.dim(), b.dim()))
    fail<ValueError>("[tensordot] {} axes cannot be summed of {} and {}.", axes, a.sizes(), b.sizes());
  Shape of_a, of_b;
  for (int64_t i = 0; i < axes; ++i) {
    of_a.push_back(a.dim() - axes + i);
    of_b.push_back(i);
  }
  return tensordot(a, b, of_a, of_b);
}

Tensor tensordot(const Tensor& a, const Tensor& b, const Shape& axes_a, const Shape& axes_b) {
  if (axes_a.size() != axes_b.size())
    fail<ValueError>("[tensordot] {} axes of a and {} of b; give pairs.", axes_a.size(), axes_b.size());
  const auto summed = [](const Tensor& x, const Shape& axes) {
    Shape wrapped;
    for (const int64_t axis : axes) wrapped.push_back(wrap_axis(axis, x.dim(), "tensordot"));
    return wrapped;
  };
  const Shape of_a = summed(a, axes_a), of_b = summed(b, axes_b);
  Shape order_a, order_b = of_b, result;
  int64_t rows = 1, columns = 1, terms = 1;
  for (int i = 0; i < of_a.size(); ++i) {
    const int64_t n = a.size(of_a[i]);
    if (n != b.size(of_b[i]))
      fail<ShapeError>("[tensordot] axis {} of {} and axis {} of {} have different sizes.", axes_a[i], a.sizes(),
                       axes_b[i], b.sizes());
    terms *= n;
  }
  for (int i = 0; i < a.dim(); ++i) {
    if (std::ranges::find(of_a, i) != of_a.end()) continue;
    order_a.push_back(i);
    result.push_back(a.size(i));
    rows *= a.size(i);
  }
  for (const int64_t axis : of_a) order_a.push_back(axis);
  for (int i = 0; i < b.dim(); ++i) {
    if (std::ranges::find(of_b, i) != of_b.end()) continue;
    order_b.push_back(i);
    result.push_back(b.size(i));
    columns *= b.size(i);
  }
  const Tensor left = reshape(permute(a, order_a), {rows, terms}),
               right = reshape(permute(b, order_b), {terms, columns});
  return reshape(matmul(left, right), result);
}

Tensor kron(const Tensor& a, const Tensor& b) {
  const int dims = std::max(a.dim(), b.dim());
  const auto with_all_axes = [dims](const Tensor& x) {
    return reshape(x, joined(Shape::filled(dims - x.dim(), 1), x.sizes()));
  };
  const Tensor x = with_all_axes(a), y = with_all_axes(b);
  Shape of_x, of_y, result;
  for (int i = 0; i < dims; ++i) {
    of_x.push_back(x.size(i));
    of_x.push_back(1);
    of_y.push_back(1);
    of_y.push_back(y.size(i));
    result.push_back(x.size(i) * y.size(i));
  }
  return reshape(mul(reshape(x, of_x), reshape(y, of_y)), result);
}

Tensor cross(const Tensor& a, const Tensor& b, int64_t axis) {
  const Shape sizes = broadcast_shapes(a.sizes(), b.sizes(), "cross");
  const Tensor x = expand(a, sizes), y = expand(b, sizes);
  const int along = wrap_axis(axis, sizes.size(), "cross");
  if (sizes.empty() || sizes[along] != 3) fail<ShapeError>("[cross] axis {} of {} must have size 3.", axis, sizes);
  const auto turned = [along](const Tensor& t, int64_t by) { return roll(t, {-by}, along); };
  return sub(mul(turned(x, 1), turned(y, 2)), mul(turned(x, 2), turned(y, 1)));
}

namespace {

/// Returns split[i][j], the last factor of the left part of the cheapest product of factors i..j.
std::vector<std::vector<std::size_t>> cheapest_splits(const std::vector<int64_t>& sizes) {
  const std::size_t n = sizes.size() - 1;
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0.0));
  std::vector<std::vector<std::size_t>> split(n, std::vector<std::size_t>(n, 0));
  for (std::size_t length = 1; length < n; ++length)
    for (std::size_t i = 0; i + length < n; ++i) {
      const std::size_t j = i + length;
      cost[i][j] = INFINITY;
      for (std::size_t k = i; k < j; ++k) {
        const double here =
            cost[i][k] + cost[k + 1][j] +
            static_cast<double>(sizes[i]) * static_cast<double>(sizes[k + 1]) * static_cast<double>(sizes[j + 1]);
        if (here >= cost[i][j]) continue;
        cost[i][j] = here;
        split[i][j] = k;
      }
    }
  return split;
}

Tensor product_of(const std::vector<Tensor>& factors, const std::vector<std::vector<std::size_t>>& split, std::size_t i,
                  std::size_t j) {
  if (i == j) return factors[i];
  const std::size_t k = split[i][j];
  return mm(product_of(factors, split, i, k), product_of(factors, split, k + 1, j));
}

}  // namespace

Tensor multi_dot(std::span<const Tensor> matrices) {
  if (matrices.size() < 2) fail<ValueError>("[multi_dot] {} matrices; give two or more.", matrices.size());
  std::vector<Tensor> factors(matrices.begin(), matrices.end());
  const bool row = factors.front().dim() == 1, column = factors.back().dim() == 1;
  if (row) factors.front() = unsqueeze(factors.front(), 0);
  if (column) factors.back() = unsqueeze(factors.back(), 1);
  std::vector<int64_t> sizes;
  for (const Tensor& f : factors) {
    require_dims("multi_dot", {"a factor", f}, 2, "a matrix");
    if (sizes.empty()) sizes.push_back(f.size(0));
    sizes.push_back(f.size(1));
  }
  Tensor y = product_of(factors, cheapest_splits(sizes), 0, factors.size() - 1);
  if (row) y = squeeze(y, 0);
  return column ? squeeze(y, -1) : y;
}
Tensor multi_dot(std::initializer_list<Tensor> matrices) { return multi_dot(std::span<const Tensor>(matrices)); }

Tensor matrix_power(const Tensor& x, int64_t n) {
  if (x.dim() < 2 || x.size(-1) != x.size(-2))
    fail<ShapeError>("[matrix_power] needs square matrices, x is {}.", x.sizes());
  if (n < 0) fail<ValueError>("[matrix_power] the power {} is negative; invert x first.", n);
  Tensor result, square = x;
  for (; n > 0; n /= 2) {
    if (n % 2 == 1) result = result.defined() ? matmul(result, square) : square;
    if (n > 1) square = matmul(square, square);
  }
  return result.defined() ? result : clone(expand(eye(x.size(-1), like(x)), x.sizes()));
}

Tensor bilinear(const Tensor& x1, const Tensor& x2, const Tensor& weight, const Tensor& bias) {
  require_dims("bilinear", {"weight", weight}, 3, "(O, I, J)");
  if (x1.dim() == 0 || x2.dim() == 0 || x1.size(-1) != weight.size(1) || x2.size(-1) != weight.size(2))
    fail<ShapeError>("[bilinear] inputs {} and {} do not fit the weight {}.", x1.sizes(), x2.sizes(), weight.sizes());
  const Tensor y = einsum("...i,oij,...j->...o", {x1, weight, x2});
  return bias.defined() ? add(y, bias) : y;
}

namespace {

/// Computes |x - y| by |x|^2 + |y|^2 - 2 x y, as PyTorch does for many points: one product, of (-2 x, |x|^2, 1) and
/// (y, 1, |y|^2), instead of a tensor of differences, at the price of digits where points are close. The gradient at
/// distance 0 is 0.
Tensor distances_by_product(const Tensor& a, const Tensor& b) {
  const Tensor of_a = sum(square(a), {-1}, true), of_b = sum(square(b), {-1}, true);
  const Tensor left = cat({mul(a, -2), of_a, ones_like(of_a)}, -1), right = cat({b, ones_like(of_b), of_b}, -1);
  const Tensor squares = matmul(left, transpose(right, -2, -1));
  if (!squares.requires_grad()) return sqrt(relu(squares));
  const Tensor apart = gt(squares.detach(), 0);
  return where(apart, sqrt(where(apart, squares, 1)), mul(squares.detach(), 0));
}

constexpr int64_t kManyPoints = 25;

}  // namespace

Tensor cdist(const Tensor& a, const Tensor& b, double p) {
  if (a.dim() < 2 || b.dim() < 2 || a.size(-1) != b.size(-1))
    fail<ShapeError>("[cdist] needs (..., P, M) and (..., R, M), they are {} and {}.", a.sizes(), b.sizes());
  if (p == 2 && a.is_floating() && a.dtype() == b.dtype() && std::max(a.size(-2), b.size(-2)) > kManyPoints &&
      a.size(-1) > 0)
    return distances_by_product(a, b);
  return norm(sub(unsqueeze(a, -2), unsqueeze(b, -3)), p, -1);
}

Tensor rotary_embedding(const Tensor& x, const RotaryOptions& options) {
  check_floating("rotary_embedding", x);
  if (x.dim() < 2 || x.size(-1) % 2 != 0)
    fail<ShapeError>("[rotary_embedding] needs (..., T, E) with an even E, x is {}.", x.sizes());
  const int64_t steps = x.size(-2), half = x.size(-1) / 2;
  const DType computed = statistics_type(x);
  const TensorOptions as = {.dtype = computed, .device = x.device()};
  const Tensor rates = pow(options.base, mul(arange(half, as), -1.0 / static_cast<double>(half)));
  const Tensor angles = outer(add(arange(steps, as), static_cast<double>(options.offset)), rates);
  const Tensor c = to(cos(angles), x.dtype()), s = to(sin(angles), x.dtype());
  if (options.interleaved) {
    const Tensor pairs = unflatten(x, -1, {half, 2}), a = select(pairs, -1, 0), b = select(pairs, -1, 1);
    return flatten(stack({sub(mul(a, c), mul(b, s)), add(mul(a, s), mul(b, c))}, -1), -2);
  }
  const Tensor a = narrow(x, -1, 0, half), b = narrow(x, -1, half, half);
  return cat({sub(mul(a, c), mul(b, s)), add(mul(a, s), mul(b, c))}, -1);
}

}  // namespace levin
