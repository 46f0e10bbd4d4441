// The implicit QL iteration (Golub and Van Loan, Matrix Computations, chapter 8; the steps are those of LAPACK's
// steqr).

#include "kernels/cpu/linalg/tridiagonal.h"

namespace levin::kernels::cpu::linalg {

namespace {

/// One implicit step of QL on d[0..m] and e[0..m-1], with the shift of the first two elements.
template <class T>
void ql_step(Walk d, Walk e, int64_t m, RotatedLines<T>& vectors) {
  const double ratio = (d[1] - d[0]) / (2 * e[0]), root = std::hypot(ratio, 1.0);
  double g = d[m] - d[0] + e[0] / (ratio + std::copysign(root, ratio)), p = 0;
  Rotation<double> turn{1, 1};
  for (int64_t i = m - 1; i >= 0; --i) {
    const double f = turn.s * e[i], b = turn.c * e[i];
    double r = 0;
    turn = rotation_of(g, f, r);
    if (i != m - 1) e[i + 1] = r;
    g = d[i + 1] - p;
    r = (d[i] - g) * turn.s + 2 * turn.c * b;
    p = turn.s * r;
    d[i + 1] = g + p;
    g = turn.c * r - b;
    vectors.add(turn);
  }
  d[0] -= p;
  e[0] = g;
}

}  // namespace

template <class T>
bool diagonalize(double* d, double* e, int64_t n, RotatedLines<T>& vectors) {
  const double eps = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  const auto negligible = [&](int64_t i) {
    return std::abs(e[i]) <= eps * std::sqrt(std::abs(d[i])) * std::sqrt(std::abs(d[i + 1])) || std::abs(e[i]) < 1e-290;
  };
  int64_t top = 0, block_end = -1, steps = 0;
  bool forward = true;
  while (top < n - 1) {
    if (negligible(top)) {
      e[top++] = 0;
      continue;
    }
    int64_t bottom = top + 1;  // the last element of the block that begins at `top`
    while (bottom < n - 1 && !negligible(bottom)) ++bottom;
    if (++steps > kSteps * n) return false;
    double *first = d + top, *last = d + bottom;
    if (top > block_end) {
      // From the end with the smaller element, so that graded matrices keep their small eigenvalues.
      forward = std::abs(*first) <= std::abs(*last);
      block_end = bottom;
    }
    const int64_t step = forward ? 1 : -1, m = bottom - top;
    vectors.begin(forward ? bottom : top, -step);
    ql_step({forward ? first : last, step}, {e + (forward ? top : bottom - 1), step}, m, vectors);
  }
  vectors.apply();
  return true;
}

template bool diagonalize(double*, double*, int64_t, RotatedLines<float>&);
template bool diagonalize(double*, double*, int64_t, RotatedLines<double>&);

}  // namespace levin::kernels::cpu::linalg
