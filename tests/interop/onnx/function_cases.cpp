// One case for each operation that no layer covers.

#include "cases.h"

#include <levin/autograd/ops.h>

#include <cmath>

namespace levin::test {

namespace {

using Tensors = std::vector<Tensor>;

std::vector<OnnxCase> all_cases() {
  std::vector<OnnxCase> cases;
  const auto add = [&](const char* name, const FunctionModule::F& f, const std::function<Tensors(int64_t)>& inputs) {
    cases.push_back({name, [f] { return std::make_unique<FunctionModule>(f); }, inputs});
  };
  // Numbers from 0.1 to 0.9, where every function below is defined and smooth.
  const auto of_one = [&](const char* name, const std::function<Tensor(const Tensor&)>& f) {
    add(
        name, [f](const Tensors& x) -> Tensors { return {f(x[0])}; },
        [](int64_t b) -> Tensors {
          return {0.1 + 0.8 * rand({b, 4, 3})};
        });
  };
  const auto of_two = [&](const char* name, const std::function<Tensor(const Tensor&, const Tensor&)>& f) {
    add(
        name, [f](const Tensors& x) -> Tensors { return {f(x[0], x[1])}; },
        [](int64_t b) -> Tensors {
          return {0.5 + rand({b, 4, 3}), 0.5 + rand({b, 1, 3})};
        });
  };
  const auto of_integers = [&](const char* name, const std::function<Tensor(const Tensor&)>& f) {
    add(
        name, [f](const Tensors& x) -> Tensors { return {f(x[0])}; },
        [](int64_t b) -> Tensors {
          return {randint(-9, 10, {b, 5})};
        });
  };
#define OF_ONE(...) of_one(#__VA_ARGS__, [](const Tensor& x) -> Tensor { return __VA_ARGS__; })
#define OF_TWO(...) of_two(#__VA_ARGS__, [](const Tensor& a, const Tensor& b) -> Tensor { return __VA_ARGS__; })
#define OF_INTEGERS(...) of_integers(#__VA_ARGS__, [](const Tensor& x) -> Tensor { return __VA_ARGS__; })
  OF_ONE(neg(x));
  OF_ONE(abs(x - 0.5));
  OF_ONE(sign(x - 0.5));
  OF_ONE(square(x));
  OF_ONE(floor(x * 5));
  OF_ONE(ceil(x * 5));
  OF_ONE(round(x * 5));
  OF_ONE(trunc(x * 10 - 5));
  OF_ONE(reciprocal(x));
  OF_ONE(sqrt(x));
  OF_ONE(rsqrt(x));
  OF_ONE(exp(x));
  OF_ONE(expm1(x));
  OF_ONE(log(x));
  OF_ONE(log2(x));
  OF_ONE(log10(x));
  OF_ONE(log1p(x));
  OF_ONE(exp2(x));
  OF_ONE(sin(x));
  OF_ONE(cos(x));
  OF_ONE(tan(x));
  OF_ONE(asin(x));
  OF_ONE(acos(x));
  OF_ONE(atan(x));
  OF_ONE(sinh(x));
  OF_ONE(cosh(x));
  OF_ONE(asinh(x));
  OF_ONE(acosh(x + 1));
  OF_ONE(atanh(x));
  OF_ONE(erf(x));
  OF_ONE(erfc(x));
  OF_ONE(x + 2);
  OF_ONE(x - 2);
  OF_ONE(2 - x);
  OF_ONE(x * 3);
  OF_ONE(x / 3);
  OF_ONE(3 / x);
  OF_ONE(pow(x, 3));
  OF_ONE(pow(x, 2));
  OF_ONE(pow(2, x));
  OF_ONE(clamp(x, 0.3));
  OF_ONE(x % 0.3);
  OF_ONE(where(x > 0.5, x, 0));
  OF_ONE(where(x <= 0.5, 1, 2.5));
  OF_ONE(masked_fill(x, x < 0.5, -1));
  OF_ONE(logical_and(x >= 0.3, x != 0.5));
  OF_ONE(logical_or(x == 0.3, x < 0.5));
  OF_ONE(~(x > 0.5));
  OF_ONE((x > 0.5) ^ (x > 0.2));
  OF_ONE(isnan(x));
  OF_ONE(isinf(x));
  OF_ONE(isfinite(x));
  OF_ONE(logical_not(x > 0.5));
  OF_ONE(sum(x));
  OF_ONE(mean(x, {1, 2}));
  OF_ONE(prod(x, 1, true));
  OF_ONE(amax(x, 2));
  OF_ONE(amin(x, 1));
  OF_ONE(max(x));
  OF_ONE(max(x, 1).values);
  OF_ONE(max(x, 1).indices);
  OF_ONE(min(x, 2, true).values);
  OF_ONE(argmax(x, 1));
  OF_ONE(argmin(x, -1, true));
  OF_ONE(any(x > 0.8, 1));
  OF_ONE(all(x > 0.2, {1, 2}));
  OF_ONE(norm(x));
  OF_ONE(norm(x, 1.0, 1));
  OF_ONE(norm(x, 3.0, {1, 2}, true));
  OF_ONE(norm(x, INFINITY, 1));
  OF_ONE(var(x, 1));
  OF_ONE(std(x, {1, 2}));
  OF_ONE(logsumexp(x, 1));
  OF_ONE(cumsum(x, 1));
  OF_ONE(sum_to_size(x, {1, 3}));
  OF_ONE(sort(x, 1).values);
  OF_ONE(topk(x, 2, 1).values);
  OF_ONE(kthvalue(x, 2, 1).values);
  OF_ONE(kthvalue(x, 2, 2, true).indices);
  OF_ONE(median(x, 1).values);
  OF_ONE(argsort(x, 2, true));
  OF_ONE(x.reshape({x.size(0), -1}));
  OF_ONE(x.reshape({-1, 6}));
  OF_ONE(x.transpose(1, 2));
  OF_ONE(x.unsqueeze(1));
  OF_ONE(x.unsqueeze(1).squeeze(1));
  OF_ONE(x(Slice(), 1));
  OF_ONE(x(Slice(), -1, Slice(0, 2)));
  OF_ONE(x(Slice(), Slice(nil, nil, 2), nil, 2));
  OF_ONE(cat({x, x}, 0)(Slice(1, nil)));
  OF_ONE(cat({x, x}, 0)(Slice(nil, -1)));
  OF_ONE(x.expand({2, -1, -1, -1}));
  OF_ONE(repeat(x, {1, 2, 2}));
  OF_ONE(x.narrow(1, 1, 2));
  OF_ONE(split(x, {1, 3}, 1)[1]);
  OF_ONE(unbind(x, 2)[1]);
  OF_ONE(stack({x, x}, 1));
  OF_ONE(cat({x, 2 * x}, 0));
  OF_ONE(flip(x, {1, 2}));
  OF_ONE(roll(x, {1, -1}, {1, 2}));
  OF_ONE(tril(x));
  OF_ONE(triu(x, 1));
  OF_ONE(pad(x, {1, 2, 0, 1}, 3.5));
  OF_ONE(pad(x, {1, 1}, PadMode::circular));
  OF_ONE(x.unfold(1, 2, 1));
  OF_ONE(zeros({x.size(0), 2}) + x.sum({1, 2}).unsqueeze(1));
  OF_ONE(x + arange(x.size(0)).view({-1, 1, 1}));
  OF_ONE(index_select(x, 1, tensor({2, 0})));
  OF_ONE(x(Slice(), tensor({1, -1})));
  OF_ONE(x.to(kFloat64).sum(1));
  OF_ONE(einsum("bij,bkj->bik", {x, x}));
  OF_ONE(x.matmul(x.transpose(1, 2)));
  OF_ONE(bmm(x, x.mT()));
  OF_ONE(index_add(zeros({x.size(0), 4, 2}, like(x)), 2, tensor({0, 1, 0}), x));
  OF_ONE(normalize(x));
  OF_ONE(rotary_embedding(cat({x, x(Ellipsis, Slice(0, 1))}, -1)));
  OF_ONE(x.clone().add_(1).mul_(x));
  OF_ONE(scaled_dot_product_attention(x, x, x, {.is_causal = true}));
  OF_ONE(x * x.size(0));
  OF_ONE(glu(cat({x, x}, 1), 1));
  OF_TWO(a + b);
  OF_TWO(a - b);
  OF_TWO(sub(a, b, 2));
  OF_TWO(a * b);
  OF_TWO(a / b);
  OF_TWO(pow(a, b));
  OF_TWO(maximum(a, b));
  OF_TWO(minimum(a, b));
  OF_TWO(floor_divide(a, b));
  OF_TWO(a % b);
  OF_TWO(hypot(a, b));
  OF_TWO(copysign(a, b - 1));
  OF_TWO(lerp(a, b, 0.25));
  OF_TWO(addcmul(a, b, a, 2));
  OF_TWO(addcdiv(a, b, a));
  OF_TWO(a == b);
  OF_TWO(a != b);
  OF_TWO(a < b);
  OF_TWO(a <= b);
  OF_TWO(a > b);
  OF_TWO(a >= b);
  OF_INTEGERS(x / 2);
  OF_INTEGERS(floor_divide(x, 4));
  OF_INTEGERS(x % 4);
  OF_INTEGERS(x * 2 + 1);
  OF_INTEGERS(x.to(kBool));
  OF_INTEGERS(sum(x, 1));
  OF_INTEGERS(abs(x));
  OF_INTEGERS(relu(x));
  OF_INTEGERS(clamp(x, -2, 3));
  OF_INTEGERS(x < 3);
  OF_INTEGERS(one_hot(abs(x), 10));
  OF_INTEGERS(bitwise_and(x > 1, x < 5));
  OF_INTEGERS(sqrt(abs(x)));
  OF_INTEGERS(scatter(zeros({x.size(0), 10}), 1, abs(x), ones({x.size(0), 5})));
  OF_INTEGERS(gather(arange(10).expand({x.size(0), 10}), 1, abs(x)));
  OF_INTEGERS(scatter_add(zeros({x.size(0), 10}), 1, abs(x), ones({x.size(0), 5})));
#undef OF_ONE
#undef OF_TWO
#undef OF_INTEGERS
  add(
      "addmm",
      [](const Tensors& x) -> Tensors {
        return {addmm(x[0], x[0], ones({3, 3}, like(x[0])), 0.5, 2)};
      },
      [](int64_t b) -> Tensors {
        return {randn({b, 3})};
      });
  for (const SampleMode mode : {SampleMode::bilinear, SampleMode::nearest})
    add(
        mode == SampleMode::bilinear ? "grid_sample" : "grid_sample nearest",
        [mode](const Tensors& x) -> Tensors {
          return {grid_sample(x[0], x[1], {.mode = mode, .padding_mode = SamplePadding::border})};
        },
        [](int64_t b) -> Tensors {
          return {randn({b, 2, 5, 4}), 2 * rand({b, 3, 3, 2}) - 1};
        });
  add(
      "mel_spectrogram",
      [](const Tensors& x) -> Tensors {
        return {mel_spectrogram(x[0], {.sample_rate = 8000, .n_fft = 64, .win_length = 48, .n_mels = 8})};
      },
      [](int64_t b) -> Tensors {
        return {randn({b, 300})};
      });
  cases.back().tolerance = 512;  // the transform adds up 64 products in another order
  return cases;
}

}  // namespace

const std::vector<OnnxCase>& onnx_function_cases() {
  static const std::vector<OnnxCase> cases = all_cases();
  return cases;
}

}  // namespace levin::test
