// Factorizations and linear systems: kernels factorize matrix by matrix; gradients are compositions.

#include "../errors.h"
#include "values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/linalg.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/core/capture/host_capture.h>
#include <levin/core/parallel.h>
#include <levin/kernels/linalg/factorizations.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace levin::linalg {

using namespace ops;

namespace {

void require_matrices(const char* op, const Tensor& a, bool square) {
  if (a.dtype() != kFloat32 && a.dtype() != kFloat64)
    fail<DTypeError>("[{}] needs float32 or float64, a matrix is {}; convert it with x.to(kFloat32).", op, a.dtype());
  if (a.dim() < 2 || (square && a.size(-1) != a.size(-2)))
    fail<ShapeError>("[{}] needs {}matrices, one is {}.", op, square ? "square " : "", a.sizes());
}

Tensor transposed(const Tensor& a) { return transpose(a, -2, -1); }
Shape batch_of(const Tensor& a) { return leading(a, 2); }
/// The matrix with this diagonal.
Tensor diagonal_matrix(const Tensor& values) { return diag_embed(values); }

constexpr int64_t kElementsPerTask = 4096;

/// Matrix or number i of a batch of n.
template <class T>
T* matrix(const Tensor& a, int64_t i, int64_t n) {
  return static_cast<T*>(a.raw_data()) + i * (a.numel() / n);
}

/// Calls f(pointers to matrix i of each tensor) for each i, where all are contiguous, on the CPU and of one type; f
/// returns whether it succeeded. Small matrices share the threads. Throws `reason` for the first i that failed.
template <class F, class... Parts>
void for_each_matrix(const char* op, const char* reason, const F& f, const Tensor& a, const Parts&... parts) {
  const int64_t n = batch_of(a).numel(), elements = a.size(-2) * a.size(-1);
  std::vector<char> failed(static_cast<std::size_t>(n));
  const auto of_type = [&]<class T>(T) {
    parallel_for(0, n, std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, elements)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     failed[static_cast<std::size_t>(i)] = !f(matrix<T>(a, i, n), matrix<T>(parts, i, n)...);
                 });
  };
  a.dtype() == kFloat64 ? of_type(double()) : of_type(float());
  for (int64_t i = 0; i < n; ++i)
    if (failed[static_cast<std::size_t>(i)]) fail<ValueError>("[{}] matrix {} {}.", op, i, reason);
}

Tensor on_cpu(const Tensor& a) {
  levin::detail::require_not_captured("linalg", "a factorization, which the host computes, cannot be part of it");
  return dense(a).to(kCpu);
}
TensorOptions cpu_like(const Tensor& a) { return {.dtype = a.dtype()}; }

/// A contiguous copy on the CPU, for kernels that work in place.
Tensor cpu_copy(const Tensor& a) { return on_cpu(a).clone(); }

constexpr const char* kNotFinite = "has values that are not finite, or needs too many steps";

// Values

Tensor cholesky_value(const Tensor& a) {
  const Tensor l = cpu_copy(a);
  for_each_matrix(
      "cholesky", "is not positive definite", [n = a.size(-1)](auto* x) { return kernels::linalg::cholesky(x, n); }, l);
  return l.to(a.device());
}

QR qr_value(const Tensor& a) {
  const Tensor x = on_cpu(a);
  const int64_t m = x.size(-2), n = x.size(-1), k = std::min(m, n);
  const Tensor q = empty(joined(batch_of(x), {m, k}), cpu_like(x)), r = empty(joined(batch_of(x), {k, n}), cpu_like(x));
  for_each_matrix(
      "qr", "", [m, n](const auto* in, auto* q_i, auto* r_i) { return kernels::linalg::qr(in, m, n, q_i, r_i), true; },
      x, q, r);
  return {q.to(a.device()), r.to(a.device())};
}

SVD svd_value(const Tensor& a) {
  const Tensor x = on_cpu(a);
  const int64_t m = x.size(-2), n = x.size(-1), k = std::min(m, n);
  const Tensor u = empty(joined(batch_of(x), {m, k}), cpu_like(x)), s = empty(joined(batch_of(x), {k}), cpu_like(x)),
               vh = empty(joined(batch_of(x), {k, n}), cpu_like(x));
  for_each_matrix(
      "svd", kNotFinite,
      [m, n](const auto* in, auto* u_i, auto* s_i, auto* vh_i) {
        return kernels::linalg::svd(in, m, n, u_i, s_i, vh_i);
      },
      x, u, s, vh);
  return {u.to(a.device()), s.to(a.device()), vh.to(a.device())};
}

Eigh eigh_value(const Tensor& a) {
  const Tensor x = on_cpu(a);
  const Tensor w = empty(joined(batch_of(x), {x.size(-1)}), cpu_like(x)), v = empty(x.sizes(), cpu_like(x));
  for_each_matrix(
      "eigh", kNotFinite,
      [n = x.size(-1)](const auto* in, auto* w_i, auto* v_i) { return kernels::linalg::eigh(in, n, w_i, v_i); }, x, w,
      v);
  return {w.to(a.device()), v.to(a.device())};
}

Tensor solve_value(const Tensor& a, const Tensor& b) {
  const Tensor factors = cpu_copy(a), out = cpu_copy(b);
  for_each_matrix(
      "solve", "is singular",
      [n = a.size(-1), columns = b.size(-1)](auto* x, auto* y) {
        std::vector<int64_t> pivots(static_cast<std::size_t>(n));
        if (!kernels::linalg::lu(x, n, pivots.data())) return false;
        for (int64_t i = 0; i < n; ++i) {
          auto* other = y + pivots[static_cast<std::size_t>(i)] * columns;
          if (other != y + i * columns) std::swap_ranges(y + i * columns, y + (i + 1) * columns, other);
        }
        kernels::linalg::solve_triangular(x, n, y, columns, false, true);
        kernels::linalg::solve_triangular(x, n, y, columns, true, false);
        return true;
      },
      factors, out);
  return out.to(a.device());
}

Tensor triangular_value(const Tensor& a, const Tensor& b, const TriangularOptions& o) {
  const Tensor x = on_cpu(a), out = cpu_copy(b);
  for_each_matrix(
      "solve_triangular", "",
      [&, n = a.size(-1), columns = b.size(-1)](const auto* in, auto* y) {
        return kernels::linalg::solve_triangular(in, n, y, columns, o.upper, o.unitriangular), true;
      },
      x, out);
  return out.to(a.device());
}

LogDet slogdet_value(const Tensor& a) {
  const Tensor factors = cpu_copy(a), sign = empty(batch_of(a), cpu_like(a)), log = empty(batch_of(a), cpu_like(a));
  for_each_matrix(
      "slogdet", "",
      [n = a.size(-1)]<class T>(T* x, T* sign_i, T* log_i) {
        std::vector<int64_t> pivots(static_cast<std::size_t>(n));
        kernels::linalg::lu(x, n, pivots.data());
        T s = 1, sum = 0;
        for (int64_t k = 0; k < n; ++k) {
          const T pivot = x[k * n + k];
          if (pivots[static_cast<std::size_t>(k)] != k) s = -s;
          s *= static_cast<T>((pivot > 0) - (pivot < 0));
          sum += std::log(std::abs(pivot));
        }
        *sign_i = s;
        *log_i = sum;
        return true;
      },
      factors, sign, log);
  return {sign.to(a.device()), log.to(a.device())};
}

// Gradients

/// The lower triangle, with half of the diagonal.
Tensor half_lower(const Tensor& a) { return sub(tril(a), mul(diagonal_matrix(diagonal(a, 0, -2, -1)), 0.5)); }
Tensor symmetric(const Tensor& a) { return mul(add(a, transposed(a)), 0.5); }
Tensor skew(const Tensor& a) { return sub(a, transposed(a)); }
/// The lower triangle, copied to the upper one.
Tensor copied_lower(const Tensor& a) { return add(tril(a), transposed(tril(a, -1))); }

Tensor or_zeros(const Tensor& g, const Tensor& value) { return g.defined() ? g : zeros_like(value); }

/// v_j - v_i, and 1 on the diagonal, where the numerators are 0.
Tensor differences(const Tensor& v) {
  const Tensor d = sub(unsqueeze(v, -2), unsqueeze(v, -1));
  return add(d, eye(v.size(-1), like(v)));
}

Grads cholesky_gradient(Context& k, const Tensor& g) {
  const Tensor l = k.saved(0);
  const Tensor inner = half_lower(matmul(transposed(l), tril(g)));
  const Tensor left = solve_triangular(transposed(l), inner, {.upper = true});
  return {symmetric(solve_triangular(l, left, {.left = false}))};
}

Grads qr_gradient(Context& k, std::span<const Tensor> grads) {
  const Tensor q = k.saved(0), r = k.saved(1);
  if (r.size(-2) != r.size(-1))
    throw GradError("[qr] the gradient needs matrices with at least as many rows as columns.");
  const Tensor gq = or_zeros(grads[0], q), gr = or_zeros(grads[1], r);
  const Tensor m = sub(matmul(r, transposed(gr)), matmul(transposed(gq), q));
  const Tensor inner = add(gq, matmul(q, copied_lower(m)));
  return {solve_triangular(transposed(r), inner, {.upper = false, .left = false})};
}

Grads svd_gradient(Context& k, std::span<const Tensor> grads) {
  const Tensor u = k.saved(0), s = k.saved(1), vh = k.saved(2), v = transposed(vh);
  const Tensor scale = unsqueeze(s, -2), squares = differences(square(s));
  Tensor inner = diagonal_matrix(or_zeros(grads[1], s)), outside;
  if (grads[0].defined()) {
    const Tensor projected = matmul(transposed(u), grads[0]);
    inner = add(inner, mul(div(skew(projected), squares), scale));
    if (u.size(-2) > u.size(-1)) outside = matmul(div(sub(grads[0], matmul(u, projected)), scale), vh);
  }
  if (grads[2].defined()) {
    const Tensor gv = transposed(grads[2]), projected = matmul(vh, gv);
    inner = add(inner, mul(unsqueeze(s, -1), div(skew(projected), squares)));
    if (v.size(-2) > v.size(-1)) {
      const Tensor rest = matmul(u, transposed(div(sub(gv, matmul(v, projected)), scale)));
      outside = outside.defined() ? add(outside, rest) : rest;
    }
  }
  const Tensor inside = matmul(matmul(u, inner), vh);
  return {outside.defined() ? add(inside, outside) : inside};
}

Grads eigh_gradient(Context& k, std::span<const Tensor> grads) {
  const Tensor w = k.saved(0), v = k.saved(1);
  Tensor inner = diagonal_matrix(or_zeros(grads[0], w));
  if (grads[1].defined()) inner = add(inner, div(matmul(transposed(v), grads[1]), differences(w)));
  // The diagonal of V^T gV does not count, since the lengths of eigenvectors are fixed.
  if (grads[1].defined()) inner = sub(inner, diagonal_matrix(diagonal(matmul(transposed(v), grads[1]), 0, -2, -1)));
  return {symmetric(matmul(matmul(v, inner), transposed(v)))};
}

/// Brings A and B to one batch, and a vector B to one column.
struct System {
  Tensor a, b;
  bool vector;

  System(const char* op, const Tensor& matrix, const Tensor& right, bool left) {
    require_matrices(op, matrix, true);
    check_same_dtype(op, {{"A", matrix}, {"B", right}});
    vector = right.dim() == 1 && matrix.dim() == 2;
    b = vector ? unsqueeze(right, 1) : right;
    if (b.dim() < 2 || b.size(left ? -2 : -1) != matrix.size(-1))
      fail<ShapeError>("[{}] A is {} and B {}, which do not fit.", op, matrix.sizes(), right.sizes());
    const Shape batch = broadcast_shapes(batch_of(matrix), batch_of(b), op);
    a = expand(matrix, joined(batch, {matrix.size(-2), matrix.size(-1)}));
    b = expand(b, joined(batch, {b.size(-2), b.size(-1)}));
  }
  Tensor result(const Tensor& x) const { return vector ? squeeze(x, -1) : x; }
};

Tensor solve_system(const Tensor& a, const Tensor& b) {
  const Tensor x = solve_value(a, b);
  if (Context* c = record("solve", x, {a, b}, [](Context& k, const Tensor& g) -> Grads {
        const Tensor gb = solve_system(transposed(k.saved(0)), g);
        return {k.needs(0) ? neg(matmul(gb, transposed(k.saved(1)))) : Tensor(), k.needs(1) ? gb : Tensor()};
      }))
    c->save(a).save_output(x);
  return x;
}

Tensor triangle_of(const Tensor& a, const TriangularOptions& o) {
  const int64_t shift = o.unitriangular ? 1 : 0;
  return o.upper ? triu(a, shift) : tril(a, -shift);
}

/// Solves A X = B.
Tensor solve_triangle_system(const Tensor& a, const Tensor& b, const TriangularOptions& o) {
  const Tensor x = triangular_value(a, b, o);
  if (Context* c = record("solve_triangular", x, {a, b}, [](Context& k, const Tensor& g) -> Grads {
        const auto options = k.get<TriangularOptions>();
        TriangularOptions other = options;
        other.upper = !options.upper;
        const Tensor gb = solve_triangle_system(transposed(k.saved(0)), g, other);
        return {k.needs(0) ? triangle_of(neg(matmul(gb, transposed(k.saved(1)))), options) : Tensor(),
                k.needs(1) ? gb : Tensor()};
      }))
    c->save(a).save_output(x).set(o);
  return x;
}

double default_rtol(const Tensor& a) {
  const double spacing = a.dtype() == kFloat64 ? std::numeric_limits<double>::epsilon()
                                               : static_cast<double>(std::numeric_limits<float>::epsilon());
  return static_cast<double>(std::max(a.size(-1), a.size(-2))) * spacing;
}

/// True for the singular values that count.
Tensor counted(const Tensor& s, double rtol) { return gt(s, mul(narrow(s, -1, 0, 1), rtol)); }

}  // namespace

Tensor cholesky(const Tensor& a) {
  require_matrices("cholesky", a, true);
  const Tensor l = cholesky_value(a);
  if (Context* c = record("cholesky", l, {a}, cholesky_gradient)) c->save_output(l);
  return l;
}

QR qr(const Tensor& a) {
  require_matrices("qr", a, false);
  const QR f = qr_value(a);
  if (Context* c = record("qr", {f.q, f.r}, {a}, qr_gradient)) c->save_output(f.q, 0).save_output(f.r, 1);
  return f;
}

SVD svd(const Tensor& a) {
  require_matrices("svd", a, false);
  const SVD f = svd_value(a);
  if (Context* c = record("svd", {f.u, f.s, f.vh}, {a}, svd_gradient))
    c->save_output(f.u, 0).save_output(f.s, 1).save_output(f.vh, 2);
  return f;
}
Tensor svdvals(const Tensor& a) { return svd(a).s; }

Eigh eigh(const Tensor& a) {
  require_matrices("eigh", a, true);
  const Eigh f = eigh_value(a);
  if (Context* c = record("eigh", {f.eigenvalues, f.eigenvectors}, {a}, eigh_gradient))
    c->save_output(f.eigenvalues, 0).save_output(f.eigenvectors, 1);
  return f;
}
Tensor eigvalsh(const Tensor& a) { return eigh(a).eigenvalues; }

Tensor solve(const Tensor& a, const Tensor& b) {
  const System s("solve", a, b, true);
  return s.result(solve_system(s.a, s.b));
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, const TriangularOptions& o) {
  const System s("solve_triangular", a, b, o.left);
  if (o.left) return s.result(solve_triangle_system(s.a, s.b, o));
  // X A = B is A^T X^T = B^T.
  TriangularOptions other = o;
  other.upper = !o.upper;
  other.left = true;
  return transposed(solve_triangle_system(transposed(s.a), transposed(s.b), other));
}

Tensor cholesky_solve(const Tensor& b, const Tensor& l) {
  return solve_triangular(transposed(l), solve_triangular(l, b), {.upper = true});
}

Tensor inv(const Tensor& a) {
  require_matrices("inv", a, true);
  return solve(a, eye(a.size(-1), like(a)));
}

LogDet slogdet(const Tensor& a) {
  require_matrices("slogdet", a, true);
  LogDet f = slogdet_value(a);
  if (Context* c = record("slogdet", f.logabsdet, {a}, [](Context& k, const Tensor& g) -> Grads {
        return {mul(reshape(g, joined(g.sizes(), {1, 1})), transposed(inv(k.saved(0))))};
      }))
    c->save(a);
  return f;
}

Tensor det(const Tensor& a) {
  require_matrices("det", a, true);
  const LogDet f = slogdet(a);
  return mul(f.sign, exp(f.logabsdet));
}

Tensor lstsq(const Tensor& a, const Tensor& b) {
  require_matrices("lstsq", a, false);
  if (a.size(-2) < a.size(-1)) fail<ShapeError>("[lstsq] A is {}, which has fewer rows than columns.", a.sizes());
  const QR f = qr(a);
  const Tensor right = b.dim() == 1 ? unsqueeze(b, 1) : b;
  const Tensor x = solve_triangular(f.r, matmul(transposed(f.q), right), {.upper = true});
  return b.dim() == 1 ? squeeze(x, -1) : x;
}

Tensor pinv(const Tensor& a, std::optional<double> rtol) {
  const SVD f = svd(a);
  const Tensor used = counted(f.s.detach(), rtol.value_or(default_rtol(a)));
  const Tensor inverse = masked_fill(reciprocal(where(used, f.s, 1.0)), logical_not(used), 0);
  return matmul(mul(transposed(f.vh), unsqueeze(inverse, -2)), transposed(f.u));
}

Tensor matrix_rank(const Tensor& a, std::optional<double> rtol) {
  const Tensor s = svdvals(a.detach());
  return sum(counted(s, rtol.value_or(default_rtol(a))), -1);
}

}  // namespace levin::linalg
