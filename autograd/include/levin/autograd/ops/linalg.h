#pragma once
// Factorizations and solutions of linear systems of matrices (..., M, N), by Eigen on the CPU; tensors of other devices
// are copied there and back. float16 and bfloat16 throw DTypeError.

#include <levin/core/tensor.h>

namespace levin::linalg {

/// Returns L (lower triangular) with A = L L^T; reads the lower triangle. Throws ValueError unless A is positive
/// definite.
Tensor cholesky(const Tensor& a);
struct QR {
  Tensor q, r;
};
/// Returns Q (..., M, K) with orthonormal columns and R (..., K, N), upper triangular, with A = Q R and
/// K = min(M, N). The gradient needs M >= N and full rank.
QR qr(const Tensor& a);
struct SVD {
  Tensor u, s, vh;
};
/// Returns U (..., M, K), the singular values S (..., K) in descending order, and V^T (..., K, N). The gradient of U
/// and V needs distinct singular values.
SVD svd(const Tensor& a);
/// Returns the singular values.
Tensor svdvals(const Tensor& a);
struct Eigh {
  Tensor eigenvalues, eigenvectors;
};
/// Returns the eigenvalues (..., N) of symmetric matrices, ascending, and the eigenvectors as columns; reads the lower
/// triangle. The gradient of eigenvectors needs distinct eigenvalues.
Eigh eigh(const Tensor& a);
Tensor eigvalsh(const Tensor& a);

/// Returns X with A X = B: A (..., N, N), B (..., N, K), or (N) with one matrix. Throws ValueError for a singular A.
Tensor solve(const Tensor& a, const Tensor& b);
struct TriangularOptions {
  bool upper = false;
  bool left = true;            ///< solves A X = B, else X A = B
  bool unitriangular = false;  ///< the diagonal of A is taken as ones
};
/// As solve, for a triangular A, of which only the triangle is read.
Tensor solve_triangular(const Tensor& a, const Tensor& b, const TriangularOptions& options = {});
/// Solves A X = B with the factor L of cholesky(A).
Tensor cholesky_solve(const Tensor& b, const Tensor& l);
Tensor inv(const Tensor& a);
/// The gradient of det needs an invertible A.
Tensor det(const Tensor& a);
struct LogDet {
  Tensor sign, logabsdet;
};
LogDet slogdet(const Tensor& a);
/// Returns X that minimizes |A X - B|: A (..., M, N) of full rank with M >= N.
Tensor lstsq(const Tensor& a, const Tensor& b);
/// Moore-Penrose inverse; singular values up to rtol times the largest count as 0 (default: max(M, N) times the type's
/// spacing at 1).
Tensor pinv(const Tensor& a, std::optional<double> rtol = std::nullopt);
Tensor matrix_rank(const Tensor& a, std::optional<double> rtol = std::nullopt);

}  // namespace levin::linalg
