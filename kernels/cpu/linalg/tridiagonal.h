#pragma once
// Eigenvalues and eigenvectors of symmetric tridiagonal matrices.

#include "kernels/cpu/linalg/rotated_lines.h"

namespace levin::kernels::cpu::linalg {

/// Makes the tridiagonal matrix of diagonal d (n) and off-diagonal e (n - 1) diagonal; the lines of `vectors` are
/// rotated with it, so that an identity becomes the eigenvectors. False if that takes more than kSteps n steps.
template <class T>
bool diagonalize(double* d, double* e, int64_t n, RotatedLines<T>& vectors);

/// The order from which divide_and_conquer is faster than rotations.
inline constexpr int64_t kDivided = 64;

/// The same eigenvalues by divide and conquer, with products of matrices for most of the work. Writes the eigenvectors
/// into `lines` (n, n), which are zero before, one a line and in no order.
template <class T>
bool divide_and_conquer(double* d, double* e, int64_t n, T* lines);

}  // namespace levin::kernels::cpu::linalg
