// Further elementwise functions: bounds, powers in double precision and functions of the normal distribution.

#include "../values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/reduce.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace levin {

using namespace ops;

Tensor softmin(const Tensor& x, int64_t axis) { return softmax(neg(x), axis); }

Tensor clamp_min(const Tensor& x, const Scalar& min) { return clamp(x, min); }
Tensor clamp_min(const Tensor& x, const Tensor& min) { return clamp(x, min, Tensor()); }
Tensor clamp_max(const Tensor& x, const Scalar& max) { return clamp(x, std::nullopt, max); }
Tensor clamp_max(const Tensor& x, const Tensor& max) { return clamp(x, Tensor(), max); }

Tensor float_power(const Tensor& base, const Tensor& exponent) { return pow(base.to(kFloat64), exponent.to(kFloat64)); }
Tensor float_power(const Tensor& base, const Scalar& exponent) { return pow(base.to(kFloat64), exponent); }

Tensor entr(const Tensor& x) {
  const Tensor inside = gt(x, 0);
  const Tensor outside = where(lt(x, 0), -std::numeric_limits<double>::infinity(), mul(x, -0.0));
  const Tensor safe = where(inside, x, 1);
  return where(inside, neg(mul(safe, log(safe))), outside);
}

Tensor ndtr(const Tensor& x) { return mul(erfc(mul(x, -std::numbers::sqrt2 / 2)), 0.5); }

Tensor log_ndtr(const Tensor& x) {
  check_floating("log_ndtr", x);
  // Far below, log(erfc) has no digits left: Phi(x) = phi(x) / -x (1 - 1 / x^2 + 3 / x^4 - ...), by a continued
  // fraction for the quotient phi(x) / Phi(x) = t + 1 / (t + 2 / (t + 3 / ...)) of t = -x.
  const Tensor far = lt(x, -3), t = neg(where(far, x, -3));
  Tensor quotient = t;
  for (int k = 60; k >= 1; --k) quotient = add(t, rdiv(quotient, static_cast<double>(k)));
  const Tensor tail = sub(mul(square(t), -0.5), add(log(quotient), 0.5 * std::log(2 * std::numbers::pi)));
  const Tensor near = where(far, 0, x), above = gt(near, 0);
  const Tensor upper = log1p(mul(ndtr(neg(where(above, near, 0))), -1.0)), lower = log(ndtr(where(above, 0, near)));
  return where(far, tail, where(above, upper, lower));
}

Tensor ndtri(const Tensor& x) { return mul(erfinv(sub(mul(x, 2), 1)), std::numbers::sqrt2); }

}  // namespace levin
