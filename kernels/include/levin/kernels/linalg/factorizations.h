#pragma once
// Dense factorizations of one matrix on the host, float or double, row-major and contiguous. Singular matrices and
// iterations without end are reported by false; a caller decides what that means. Threads share the products of one
// large matrix; calls from several threads are independent.

#include <cstdint>

namespace levin::kernels::linalg {

using std::int64_t;

/// Replaces `a` (n, n), of which the lower triangle is read, by L with A = L L^T. False unless A is positive definite.
template <class T>
bool cholesky(T* a, int64_t n);

/// Replaces `a` (n, n) by its unit lower factor L (without its diagonal) and its upper factor U, with P A = L U: step i
/// exchanged rows i and pivots[i] >= i. False if a pivot is 0.
template <class T>
bool lu(T* a, int64_t n, int64_t* pivots);

/// Replaces b (n, columns) by the solution X of A X = B, where A (n, n) is the upper or lower triangle of `a`, with
/// ones on the diagonal if `unit`.
template <class T>
void solve_triangular(const T* a, int64_t n, T* b, int64_t columns, bool upper, bool unit);

/// Writes q (m, k) with orthonormal columns and the upper triangular r (k, n), k = min(m, n), of A (m, n) = Q R.
template <class T>
void qr(const T* a, int64_t m, int64_t n, T* q, T* r);

/// Writes the eigenvalues w (n), ascending, and orthonormal eigenvectors, the columns of v (n, n), of the symmetric A
/// (n, n), of which the lower triangle is read. Errors are a few epsilons of the largest eigenvalue; from order 64 on
/// by divide and conquer (Cuppen, 1981; Gu and Eisenstat, 1995), below by QL. False if A has values that are not
/// finite, or where an iteration does not end.
template <class T>
bool eigh(const T* a, int64_t n, T* w, T* v);

/// Writes u (m, k), the singular values s (k), descending, and vh (k, n), k = min(m, n), with A (m, n) = U S V^H. False
/// if A has values that are not finite, or after 60 k steps.
template <class T>
bool svd(const T* a, int64_t m, int64_t n, T* u, T* s, T* vh);

}  // namespace levin::kernels::linalg
