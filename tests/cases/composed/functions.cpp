#include "cases/cases.h"
#include "cases/composed/draws.h"
#include "cases/pointwise.h"

#include <cmath>
#include <limits>

namespace levin::test {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Values kPositive = uniform(0.2, 3), kAwayFromZero = away_from(uniform(-3, 3), {0}, 0.2);
/// Quotients by 1.7 that are not near a whole number.
const Values kBetween = away_from(uniform(-5, 5), {-5.1, -3.4, -1.7, 0, 1.7, 3.4, 5.1}, 0.2);

/// Newton's method on erf.
double inverse_erf(double x) {
  if (!(std::abs(x) < 1)) return std::abs(x) == 1 ? std::copysign(HUGE_VAL, x) : NAN;
  long double y = 0, step = 1;
  for (int i = 0; i < 200 && std::abs(step) > 1e-18L * std::abs(y); ++i) {
    const long double slope = 2 / std::sqrt(std::acos(-1.0L)) * std::exp(-y * y);
    const long double error = x > 0.5    ? (1.0L - x) - std::erfc(y)
                              : x < -0.5 ? std::erfc(-y) - (1.0L + x)
                                         : std::erf(y) - x;
    step = error / slope / (1 + y * error / slope);
    y -= step;
  }
  return static_cast<double>(y);
}

OpCase arithmetic() {
  OpCase c = composition(
      "composed_arithmetic",
      {call("torch.pow(2.5, x0)", {input({2, 3})}, LEVIN_CALL(pow(2.5, x0))),
       call("torch.fmod(x0, 1.7)", {input({2, 5}, kBetween)}, LEVIN_CALL(fmod(x0, 1.7))),
       call("torch.fmod(x0, x1)", {input({5}, kBetween), {.sizes = {5}, .values = cycle({1.7, -1.7})}},
            LEVIN_CALL(fmod(x0, x1))),
       call("torch.logaddexp(x0, x1)", {input({2, 3}), input({3})}, LEVIN_CALL(logaddexp(x0, x1))),
       call("torch.logaddexp2(x0, x1)", {input({2, 3}), input({3})}, LEVIN_CALL(logaddexp2(x0, x1))),
       call("torch.xlogy(x0, x1)", {input({2, 3}), input({2, 3}, kPositive)}, LEVIN_CALL(xlogy(x0, x1))),
       call("torch.ldexp(x0, x1)", {input({2, 3}), constant({3}, integers(-2, 3))}, LEVIN_CALL(ldexp(x0, x1))),
       call("torch.frac(x0)", {input({2, 3}, away_from(uniform(-3, 3), {-2, -1, 0, 1, 2}))}, LEVIN_CALL(frac(x0))),
       call("torch.clamp(x0, x1, x2)",
            {input({7}, distinct(0.5)), input({7}, uniform(-1.1, -0.9)), input({7}, uniform(0.9, 1.1))},
            LEVIN_CALL(clamp(x0, x1, x2))),
       call("torch.logit(x0)", {input({5}, uniform(0.1, 0.9))}, LEVIN_CALL(logit(x0))),
       call("torch.logit(x0, 0.2)", {input({5}, away_from(uniform(0.1, 0.9), {0.2, 0.8}))}, LEVIN_CALL(logit(x0, 0.2))),
       call("torch.sinc(x0)", {input({2, 3}, kAwayFromZero)}, LEVIN_CALL(sinc(x0))),
       call("torch.digamma(x0)", {input({2, 3}, uniform(0.3, 15))}, LEVIN_CALL(digamma(x0))),
       call("torch.digamma(x0)", {input({5}, cycle({-0.3, -1.6, -7.2, 0.01, 30}))}, LEVIN_CALL(digamma(x0))),
       call("torch.polygamma(1, x0)", {input({2, 3}, uniform(0.3, 15))}, LEVIN_CALL(polygamma(1, x0))),
       call("torch.polygamma(2, x0)", {input({2, 3}, uniform(0.5, 15))}, LEVIN_CALL(polygamma(2, x0))),
       call("torch.deg2rad(x0)", {input({3})}, LEVIN_CALL(deg2rad(x0))),
       call("torch.rad2deg(x0)", {input({3})}, LEVIN_CALL(rad2deg(x0))),
       call("torch.fmod(x0, 1.7)", {input({4}, cycle({0.0, -0.5, 2.5, -0.0}))}, LEVIN_CALL(fmod(x0, 1.7)))});
  c.tolerance = {.ulps = 4, .scale = 4};
  return with_errors(c, {{"[clamp] neither min nor max is given", [] { clamp(ones({2}), Tensor(), Tensor()); }}});
}

OpCase steps() {
  return without_gradient(composition(
      "steps",
      {call("torch.div(x0, x1, rounding_mode='trunc')", {constant({6}, kBetween), constant({6}, cycle({1.7, -1.7}))},
            LEVIN_CALL(div(x0, x1, RoundingMode::trunc))),
       call("torch.div(x0, x1, rounding_mode='floor')", {constant({6}, kBetween), constant({6}, cycle({1.7, -1.7}))},
            LEVIN_CALL(div(x0, x1, RoundingMode::floor))),
       call("torch.div(x0, -1.7, rounding_mode='trunc')", {constant({6}, kBetween)},
            LEVIN_CALL(div(x0, -1.7, RoundingMode::trunc))),
       call("torch.heaviside(x0, x1)", {constant({6}, cycle({-2, 0, 3, NAN, -0.0, kInfinity})), constant({6})},
            LEVIN_CALL(heaviside(x0, x1)))}));
}

OpCase special_values() {
  const Values odd = cycle({NAN, kInfinity, -kInfinity, 0.0, -0.0, 1.5, -2.5});
  return without_gradient(composition(
      "special_values",
      {call("torch.nan_to_num(x0)", {constant({7}, odd)}, LEVIN_CALL(nan_to_num(x0))),
       call("torch.nan_to_num(x0, 1.0, 2.0, -3.0)", {constant({7}, odd)}, LEVIN_CALL(nan_to_num(x0, 1.0, 2.0, -3.0))),
       call("torch.isposinf(x0)", {constant({7}, odd)}, LEVIN_CALL(isposinf(x0))),
       call("torch.isneginf(x0)", {constant({7}, odd)}, LEVIN_CALL(isneginf(x0))),
       call("torch.signbit(x0)", {constant({7}, cycle({-0.0, 0.0, -1, 1, kInfinity, -kInfinity}))},
            LEVIN_CALL(signbit(x0))),
       call("torch.isclose(x0, x1)",
            {constant({7}, odd), constant({7}, cycle({NAN, kInfinity, 1, 1e-9, 0, 1.50001, 3}))},
            LEVIN_CALL(isclose(x0, x1))),
       call("torch.isclose(x0, x1, equal_nan=True, rtol=0.5)", {constant({7}, odd), constant({7}, odd)},
            LEVIN_CALL(isclose(x0, x1, {.rtol = 0.5, .equal_nan = true}))),
       call("torch.logaddexp(x0, x1)",
            {constant({6}, cycle({kInfinity, -kInfinity, kInfinity, 0, 800, -800})),
             constant({6}, cycle({kInfinity, -kInfinity, -kInfinity, -kInfinity, 800.5, -900}))},
            LEVIN_CALL(logaddexp(x0, x1))),
       call("torch.xlogy(x0, x1)",
            {constant({5}, cycle({0, 0, 0, 1, 2})), constant({5}, cycle({0, kInfinity, NAN, 0, -1}))},
            LEVIN_CALL(xlogy(x0, x1))),
       fixed(call("torch.ldexp(x0.half(), torch.tensor([0, 3, -2])).float()", {constant({3})},
                  LEVIN_CALL(ldexp(x0.to(kHalf), tensor<int64_t>({0, 3, -2}).to(x0.device())).to(kFloat32)))),
       call("torch.celu(x0, -1.5)", {constant({7}, odd)}, LEVIN_CALL(celu(x0, -1.5))),
       call("torch.polygamma(1, x0)", {constant({4}, cycle({kInfinity, NAN, 1, 2.5}))}, LEVIN_CALL(polygamma(1, x0))),
       fixed(call("torch.logit(torch.tensor([0, 1, 0])) * x0", {constant({3}, uniform(1, 2))},
                  LEVIN_CALL(logit(tensor<int64_t>({0, 1, 0}).to(x0.device())) * x0))),
       fixed(call("F.relu6(torch.tensor([-2, 4, 9])) * x0", {constant({3})},
                  LEVIN_CALL(relu6(tensor<int64_t>({-2, 4, 9}).to(x0.device())) * x0))),
       call("torch.sinc(x0)", {constant({3}, cycle({0, 1, -0.5}))}, LEVIN_CALL(sinc(x0))),
       call("torch.fmod(x0, x1)",
            {constant({6}, cycle({5, -5, 7, kInfinity, 0, 6})), constant({6}, cycle({3, 3, -kInfinity, 2, 2, -2}))},
            LEVIN_CALL(fmod(x0, x1)))}));
}

OpCase integer_arithmetic() {
  const InputSpec dividend = constant({7}, cycle({7, -7, 8, -8, 0, 100, -100}));
  const InputSpec divisor = constant({7}, cycle({2, 3, -3, -2, 5, 7, 7}));
  const InputSpec count = constant({7}, cycle({0, 1, 2, 3, 4, 5, 6}));
  const auto with_reference = [](Sample s, double (*f)(double, double)) {
    s.reference = pointwise(std::function<double(double, double)>(f));
    return s;
  };
  const std::vector<Sample> samples = {
      with_reference(call("torch.div(x0, x1, rounding_mode='trunc')", {dividend, divisor},
                          LEVIN_CALL(div(x0, x1, RoundingMode::trunc))),
                     [](double a, double b) { return std::trunc(a / b); }),
      with_reference(call("torch.div(x0, x1, rounding_mode='floor')", {dividend, divisor},
                          LEVIN_CALL(div(x0, x1, RoundingMode::floor))),
                     [](double a, double b) { return std::floor(a / b); }),
      with_reference(call("torch.fmod(x0, x1)", {dividend, divisor}, LEVIN_CALL(fmod(x0, x1))),
                     [](double a, double b) { return std::fmod(a, b); }),
      with_reference(
          call("torch.bitwise_left_shift(x0, x1)", {dividend, count}, LEVIN_CALL(bitwise_left_shift(x0, x1))),
          [](double a, double n) { return std::ldexp(a, static_cast<int>(n)); }),
      with_reference(
          call("torch.bitwise_right_shift(x0, x1)", {dividend, count}, LEVIN_CALL(bitwise_right_shift(x0, x1))),
          [](double a, double n) { return std::floor(std::ldexp(a, -static_cast<int>(n))); })};
  return with_errors(
      in_types(without_gradient(composition("composed_integers", samples)), {DType::i64, DType::i32, DType::i16}),
      {{"[bitwise_left_shift] float32 has no bits to shift", [] { bitwise_left_shift(ones({2}), ones({2})); }}});
}

OpCase activations() {
  const Values wide = away_from(uniform(-4, 4), {-1, -0.5, 0, 0.5, 1}, 0.05);
  OpCase c = composition(
      "composed_activations",
      {call("F.celu(x0, 1.5)", {input({2, 3}, wide)}, LEVIN_CALL(celu(x0, 1.5))),
       call("F.celu(x0)", {input({2, 3}, wide)}, LEVIN_CALL(celu(x0))),
       call("F.relu6(x0)", {input({2, 4}, away_from(uniform(-8, 8), {0, 6}))}, LEVIN_CALL(relu6(x0))),
       call("F.hardtanh(x0)", {input({2, 3}, wide)}, LEVIN_CALL(hardtanh(x0))),
       call("F.hardtanh(x0, -0.5, 2.0)", {input({2, 3}, away_from(wide, {2}))}, LEVIN_CALL(hardtanh(x0, -0.5, 2.0))),
       call("F.tanhshrink(x0)", {input({2, 3}, wide)}, LEVIN_CALL(tanhshrink(x0))),
       call("F.softshrink(x0)", {input({2, 3}, wide)}, LEVIN_CALL(softshrink(x0))),
       call("F.hardshrink(x0)", {input({2, 3}, wide)}, LEVIN_CALL(hardshrink(x0))),
       call("F.threshold(x0, 0.5, -1.0)", {input({2, 3}, wide)}, LEVIN_CALL(threshold(x0, 0.5, -1.0))),
       call("F.prelu(x0, x1)", {input({2, 3, 2}, wide), input({3})}, LEVIN_CALL(prelu(x0, x1))),
       call("F.prelu(x0, x1)", {input({2, 3}, wide), input({1})}, LEVIN_CALL(prelu(x0, x1))),
       call("F.rrelu(x0)", {input({2, 3}, wide)}, LEVIN_CALL(rrelu(x0))),
       fixed(call("F.glu(x0)", {input({2, 6})}, LEVIN_CALL(glu(x0)))),
       fixed(call("F.glu(x0, 1)", {input({2, 4, 3})}, LEVIN_CALL(glu(x0, 1))))});
  c.tolerance = {.ulps = 4, .scale = 4};
  return with_errors(c, {{"[celu] alpha is 0", [] { celu(ones({2}), 0); }},
                         {"[hardtanh] min_val 2 is above max_val 1", [] { hardtanh(ones({2}), 2, 1); }},
                         {"[softshrink] lambda is -1", [] { softshrink(ones({2}), -1); }},
                         {"[prelu] weight is (2,), but x of (4, 3) needs (1,) or (3,)",
                          [] {
                            prelu(ones({4, 3}), ones({2}));
                          }},
                         {"[glu] axis -1 of (2, 3) does not split",
                          [] {
                            glu(ones({2, 3}));
                          }},
                         {"[feature_dropout] the input is (2,)", [] { feature_dropout(ones({2})); }},
                         {"[alpha_dropout] p is 2", [] { alpha_dropout(ones({2}), 2); }},
                         {"[rrelu] lower 2 is above upper 1", [] { rrelu(ones({2}), 2, 1); }}});
}

}  // namespace

std::vector<OpCase> composed_function_cases() {
  return {arithmetic(),
          steps(),
          special_values(),
          integer_arithmetic(),
          with_draws(activations(), activation_draws()),
          unary_case("lgamma", lgamma, std::lgamma, alive(uniform(0.2, 6), 1.5)),
          unary_case("erfinv", erfinv, inverse_erf, uniform(-0.95, 0.95))};
}

std::vector<OpCase> composed_norm_cases() {
  OpCase c = of_products(composition(
      "composed_norms",
      {fixed(call("F.group_norm(x0, 2, x1, x2)", {input({2, 4, 3}), input({4}), input({4})},
                  LEVIN_CALL(group_norm(x0, 2, x1, x2)), 6)),
       fixed(call("F.group_norm(x0, 3)", {input({2, 3, 2, 2})}, LEVIN_CALL(group_norm(x0, 3)), 4)),
       fixed(call("F.instance_norm(x0, weight=x1, bias=x2)", {input({2, 3, 4}), input({3}), input({3})},
                  LEVIN_CALL(instance_norm(x0, x1, x2)), 4)),
       fixed(call("F.instance_norm(x0)", {input({2, 2, 2, 3})}, LEVIN_CALL(instance_norm(x0)), 6)),
       // The default eps is that of the dtype, and references are computed in double: rows near 0 differ.
       fixed(call("F.rms_norm(x0, (4,), x1)", {own(input({3, 4})), input({4})}, LEVIN_CALL(rms_norm(x0, {4}, x1)), 4)),
       fixed(call("F.rms_norm(x0, (2, 3), eps=0.1)", {input({2, 2, 3})}, LEVIN_CALL(rms_norm(x0, {2, 3}, {}, 0.1)), 6)),
       call("F.local_response_norm(x0, 3, 0.1, 0.75, 2.0)", {input({2, 5, 3})},
            LEVIN_CALL(local_response_norm(x0, 3, 0.1, 0.75, 2.0)), 3),
       call("F.local_response_norm(x0, 2)", {input({1, 4, 2, 2})}, LEVIN_CALL(local_response_norm(x0, 2)), 2),
       // A norm near the default eps of 1e-12 is nearer to it than the steps of finite differences.
       call("F.normalize(x0)", {own(input({3, 4}))}, LEVIN_CALL(normalize(x0)), 4),
       call("F.normalize(x0, 1.0, 0)", {own(input({3, 4}, kAwayFromZero))}, LEVIN_CALL(normalize(x0, 1.0, 0)), 3)}));
  c = with_draws(c, norm_draws());
  return {with_errors(c, {{"[group_norm] 4 channels do not divide into 3 groups",
                           [] {
                             group_norm(ones({2, 4}), 3);
                           }},
                          {"[group_norm] weight is (2,), but 4 channels need (4,)",
                           [] {
                             group_norm(ones({2, 4}), 2, ones({2}));
                           }},
                          {"[group_norm] the input is (4,)", [] { group_norm(ones({4}), 2); }},
                          {"[instance_norm] the input is (2, 4)",
                           [] {
                             instance_norm(ones({2, 4}));
                           }},
                          {"[instance_norm] the input (2, 4, 1) has one value per channel",
                           [] {
                             instance_norm(ones({2, 4, 1}));
                           }},
                          {"[rms_norm] the input is (2, 4), which does not end in (3,)",
                           [] {
                             rms_norm(ones({2, 4}), {3});
                           }},
                          {"[rms_norm] weight is (2,), expected is (4,)",
                           [] {
                             rms_norm(ones({2, 4}), {4}, ones({2}));
                           }},
                          {"[local_response_norm] size is 0",
                           [] {
                             local_response_norm(ones({2, 4, 3}), 0);
                           }},
                          {"[local_response_norm] the input is (2, 4)", [] {
                             local_response_norm(ones({2, 4}), 2);
                           }}})};
}

}  // namespace levin::test
