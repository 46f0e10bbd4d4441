#include "cases/cases.h"
#include "cases/composed/draws.h"

namespace levin::test {

namespace {

/// Matrices (n, n) of small random values plus `by` on the diagonal.
InputSpec near_identity(const Shape& sizes, double by = 3) {
  const int64_t n = sizes.back();
  InputSpec s = input(sizes, [n, by](int64_t i, int64_t, Generator& g) {
    return g.uniform() * 2 - 1 + ((i % (n * n)) / n == i % n ? by : 0.0);
  });
  s.rearrange = false;
  return s;
}

Tensors parts(const linalg::LogDet& f) { return {f.sign, f.logabsdet}; }

OpCase systems() {
  return with_errors(
      with_own_values(with_fixed_sizes(of_products(composition(
          "linear_systems",
          {call("torch.linalg.solve(x0, x1)", {near_identity({3, 3}), input({3, 2})}, LEVIN_CALL(linalg::solve(x0, x1)),
                9),
           call("torch.linalg.solve(x0, x1)", {near_identity({2, 3, 3}), input({2, 3, 1})},
                LEVIN_CALL(linalg::solve(x0, x1)), 9),
           call("torch.linalg.solve(x0, x1)", {near_identity({3, 3}), input({3})}, LEVIN_CALL(linalg::solve(x0, x1)),
                9),
           call("torch.linalg.solve_triangular(x0, x1, upper=False)", {near_identity({3, 3}), input({3, 2})},
                LEVIN_CALL(linalg::solve_triangular(x0, x1)), 9),
           call("torch.linalg.solve_triangular(x0, x1, upper=True, left=False)", {near_identity({3, 3}), input({2, 3})},
                LEVIN_CALL(linalg::solve_triangular(x0, x1, {.upper = true, .left = false})), 9),
           call("torch.linalg.solve_triangular(x0, x1, upper=True, unitriangular=True)",
                {near_identity({2, 3, 3}), input({2, 3, 2})},
                LEVIN_CALL(linalg::solve_triangular(x0, x1, {.upper = true, .unitriangular = true})), 9),
           call("torch.linalg.inv(x0)", {near_identity({2, 3, 3})}, LEVIN_CALL(linalg::inv(x0)), 9),
           call("torch.linalg.det(x0)", {near_identity({2, 3, 3})}, LEVIN_CALL(linalg::det(x0)), 27),
           call("torch.linalg.slogdet(x0)", {near_identity({3, 3}, -3)}, LEVIN_CALL(parts(linalg::slogdet(x0))), 9),
           call("torch.linalg.lstsq(x0, x1).solution", {near_identity({4, 4}), input({4, 2})},
                LEVIN_CALL(linalg::lstsq(x0, x1)), 16),
           call("torch.linalg.lstsq(x0, x1).solution", {input({5, 2}, distinct(0.7)), input({5, 1})},
                LEVIN_CALL(linalg::lstsq(x0, x1)), 16)})))),
      {{"[solve] matrix 0 is singular", [] { linalg::solve(zeros({2, 2}), ones({2, 1})); }},
       {"[solve] A is (2, 2) and B (3, 1)", [] { linalg::solve(ones({2, 2}), ones({3, 1})); }},
       {"[inv] needs square matrices, one is (2, 3)", [] { linalg::inv(ones({2, 3})); }},
       {"[det] needs float32 or float64, a matrix is float16", [] { linalg::det(ones({2, 2}, kHalf)); }},
       {"[lstsq] A is (2, 3), which has fewer rows than columns", [] {
          linalg::lstsq(ones({2, 3}), ones({2, 1}));
        }}});
}

OpCase factorizations() {
  const std::string spd = "(x0 @ x0.mT + torch.eye(3, dtype=x0.dtype))";
#define LEVIN_SPD (matmul(x0, x0.transpose(-2, -1)) + eye(3, like(x0)))
  OpCase c = with_own_values(with_fixed_sizes(of_products(composition(
      "factorizations",
      {call("torch.linalg.cholesky(" + spd + ")", {near_identity({2, 3, 3})}, LEVIN_CALL(linalg::cholesky(LEVIN_SPD)),
            9),
       call("torch.cholesky_solve(x1, torch.linalg.cholesky(" + spd + "))", {near_identity({3, 3}), input({3, 2})},
            LEVIN_CALL(linalg::cholesky_solve(x1, linalg::cholesky(LEVIN_SPD))), 27),
       // Signs of columns are free, so the products and squares are compared.
       call("(lambda f: (f[0] ** 2, f[1] ** 2))(torch.linalg.qr(x0))", {near_identity({4, 3})},
            LEVIN_CALL(Tensors{square(linalg::qr(x0).q), square(linalg::qr(x0).r)}), 16),
       call("torch.linalg.svdvals(x0)", {near_identity({3, 4})}, LEVIN_CALL(linalg::svdvals(x0)), 16),
       call("(lambda f: (f[0] ** 2, f[1], f[2] ** 2))(torch.linalg.svd(x0, full_matrices=False))",
            {near_identity({4, 3})},
            LEVIN_CALL(Tensors{square(linalg::svd(x0).u), linalg::svd(x0).s, square(linalg::svd(x0).vh)}), 16),
       call("torch.linalg.eigvalsh(" + spd + ")", {near_identity({2, 3, 3})}, LEVIN_CALL(linalg::eigvalsh(LEVIN_SPD)),
            9),
       call("(lambda f: (f[0], f[1] ** 2))(torch.linalg.eigh(" + spd + "))", {near_identity({3, 3})},
            LEVIN_CALL(Tensors{linalg::eigh(LEVIN_SPD).eigenvalues, square(linalg::eigh(LEVIN_SPD).eigenvectors)}), 27),
       call("torch.linalg.pinv(x0)", {near_identity({4, 3})}, LEVIN_CALL(linalg::pinv(x0)), 16)}))));
#undef LEVIN_SPD
  c.tolerance = {.ulps = 32, .scale = 32};
  c.grad_tolerance = {.ulps = 256, .scale = 128};
  return with_errors(c, {{"[cholesky] matrix 0 is not positive definite", [] { linalg::cholesky(-eye(3)); }},
                         {"[eigh] needs square matrices, one is (3,)", [] { linalg::eigh(ones({3})); }}});
}

}  // namespace

std::vector<OpCase> linalg_cases() {
  return {with_draws(systems(), system_draws()), with_draws(factorizations(), factorization_draws())};
}

}  // namespace levin::test
