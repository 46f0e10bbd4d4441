#pragma once
// Factorizations and solutions of linear systems of matrices (..., M, N), on the CPU; tensors of other devices are
// copied there and back. They throw DTypeError for types other than float32 and float64, and ShapeError for sizes that
// do not fit; svd and eigh, and what stands on them, throw ValueError for values that are not finite.

#include <levin/core/tensor.h>

namespace levin::linalg {

/// Returns L (lower triangular) with A = L L^T; reads the lower triangle. Throws ValueError unless A is positive
/// definite.
Tensor cholesky(const Tensor& a);
/// The factors `q` and `r` of qr.
struct QR {
  Tensor q, r;
};
/// Returns Q (..., M, K) with orthonormal columns and R (..., K, N), upper triangular, with A = Q R and
/// K = min(M, N). The gradient needs M >= N and full rank.
QR qr(const Tensor& a);
/// The factors `u`, `s` and `vh` of svd.
struct SVD {
  Tensor u, s, vh;
};
/// Returns U (..., M, K), the singular values S (..., K) in descending order, and V^T (..., K, N), with A = U diag(S)
/// V^T and K = min(M, N), as full_matrices = false in PyTorch. The gradient of U and V needs distinct singular values.
SVD svd(const Tensor& a);
/// Returns the singular values (..., K), descending.
Tensor svdvals(const Tensor& a);
/// The `eigenvalues` and `eigenvectors` of eigh.
struct Eigh {
  Tensor eigenvalues, eigenvectors;
};
/// Returns the eigenvalues (..., N) of symmetric matrices, ascending, and the eigenvectors as columns; reads the lower
/// triangle. The gradient of eigenvectors needs distinct eigenvalues.
Eigh eigh(const Tensor& a);
/// Returns the eigenvalues alone.
Tensor eigvalsh(const Tensor& a);

/// Returns X with A X = B: A (..., N, N), B (..., N, K), or (N) with one matrix. Throws ValueError for a singular A.
Tensor solve(const Tensor& a, const Tensor& b);
/// Arguments of solve_triangular.
struct TriangularOptions {
  bool upper = false;          ///< reads the upper triangle of A instead of the lower one
  bool left = true;            ///< solves A X = B, else X A = B
  bool unitriangular = false;  ///< the diagonal of A is taken as ones
};
/// As solve, for a triangular A, of which only the triangle is read.
Tensor solve_triangular(const Tensor& a, const Tensor& b, const TriangularOptions& options = {});
/// Solves A X = B with the factor L of cholesky(A).
Tensor cholesky_solve(const Tensor& b, const Tensor& l);
/// Returns the inverse of square matrices. Throws ValueError for a singular one.
Tensor inv(const Tensor& a);
/// Returns the determinants (...) of square matrices. The gradient needs an invertible A.
Tensor det(const Tensor& a);
/// The results `sign` (-1, 0 or 1) and `logabsdet` of slogdet.
struct LogDet {
  Tensor sign, logabsdet;
};
/// Returns the sign and the logarithm of the magnitude of the determinants (...) of square matrices.
LogDet slogdet(const Tensor& a);
/// Returns X that minimizes |A X - B|: A (..., M, N) of full rank with M >= N.
Tensor lstsq(const Tensor& a, const Tensor& b);
/// Moore-Penrose inverse; singular values up to rtol times the largest count as 0 (default: max(M, N) times the type's
/// spacing at 1).
Tensor pinv(const Tensor& a, std::optional<double> rtol = std::nullopt);
/// The p-norm of all elements, or along axes.
Tensor vector_norm(const Tensor& x, double p = 2.0, const Axes& axes = {}, bool keepdim = false);
/// The root of the sum of squares, and the sum of the singular values.
enum class MatrixNorm { frobenius, nuclear };
/// A norm of the matrices (..., M, N). As a number: 1 is the largest sum of a column's magnitudes, infinity that of a
/// row, 2 the largest singular value; negative: the smallest. Throws ValueError for another number.
Tensor matrix_norm(const Tensor& a, MatrixNorm ord = MatrixNorm::frobenius, bool keepdim = false);
Tensor matrix_norm(const Tensor& a, double ord, bool keepdim = false);
/// The largest singular value over the smallest one.
Tensor cond(const Tensor& a);
/// The sum of products along an axis.
Tensor vecdot(const Tensor& a, const Tensor& b, int64_t axis = -1);
/// The exponential series of square matrices, by scaling and squaring.
Tensor matrix_exp(const Tensor& a);
/// Returns the number of singular values above rtol times the largest, (...) int64; the default is that of pinv.
Tensor matrix_rank(const Tensor& a, std::optional<double> rtol = std::nullopt);

}  // namespace levin::linalg
