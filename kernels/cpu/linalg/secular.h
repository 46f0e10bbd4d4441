#pragma once
// Eigenvalues of a diagonal matrix plus a matrix of rank one: the zeros of the secular equation.

#include "kernels/cpu/linalg/buffer.h"

#include <cstdint>

namespace levin::kernels::cpu::linalg {

using std::int64_t;

/// diag(poles) + rho z z^T, with ascending poles that are apart from each other, rho > 0 and no z of 0.
struct Secular {
  Buffer<double> poles, z;
  double rho = 0;

  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(poles.size()); }
};

struct SecularRoots {
  Buffer<double> roots;   ///< ascending
  Buffer<double> deltas;  ///< (root, pole): each pole less the root, with all of its digits
};

/// False if an iteration does not end.
bool find_roots(const Secular& problem, SecularRoots& found);

/// Replaces z by the one of which the roots that were found are the exact ones, so that the vectors z / deltas are
/// orthogonal however close the roots are (Gu and Eisenstat, 1995).
void refine(Secular& problem, const SecularRoots& found);

}  // namespace levin::kernels::cpu::linalg
