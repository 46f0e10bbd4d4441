#pragma once
// How far a result may be from its reference, element by element:
//
//   allowance = ulps * eps(T) * |reference| + 4 * eps(A) * scale * n + eps(T) * rounded + tiny(T)
//
// T is the result's type and A the type in which kernels accumulate (f32 for the 16-bit floats, else T). The first part
// is the rounding of a computation without cancellation. The second is the one of adding up n terms of magnitude
// `scale` one after the other: partial sums grow like sqrt(i), their rounding errors add up like a random walk to n /
// sqrt(2) times eps * scale, and 4 stands for more than five standard deviations (Higham, "Accuracy and Stability of
// Numerical Algorithms", 2002, section 4). The third is for terms that are rounded to a 16-bit T before they are added
// up, as fused attention does with its weights: each is off by eps(T) / 2 of itself, from two such roundings at most.
// tiny(T) is the smallest subnormal. Integers and bool have to be equal.

#include <levin/core/tensor.h>

#include <string>
#include <vector>

namespace levin::test {

struct Tolerance {
  double ulps = 2;   ///< factor of the relative part
  double scale = 0;  ///< magnitude of one term or of the largest intermediate value; 0 for no cancellation
  double rounded = 0;  ///< sum of the magnitudes of the terms that were rounded to T before they were added up
};

/// Unit in the last place of 1: 2^-52, 2^-23, 2^-10, 2^-7; 0 for integers.
double epsilon(DType t);
/// The model above for a result of type `t` whose exact value is `reference`.
double allowance(const Tolerance& tolerance, DType t, double reference, int64_t terms);

/// Compares element by element (NaN equals NaN); empty when all are allowed, else the worst element with its
/// allowance and indices, and how many are wrong.
std::string compare(const Tensor& actual, const std::vector<double>& expected, const Tolerance& tolerance,
                    int64_t terms = 1);
std::string compare(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance, int64_t terms = 1);

}  // namespace levin::test
