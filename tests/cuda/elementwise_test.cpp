// Elementwise kernels and copies compared with the CPU's: all pairs of types, special values, views on the vectorised
// and the general path, numbers; and every rung of the transposing copies.

#include "kernels/cuda/transpose/ladder.h"
#include "support/tolerance.h"

#include <levin/autograd/ops.h>
#include <levin/core/generator.h>
#include <levin/kernels/copy.h>
#include <levin/kernels/elementwise.h>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

using namespace levin;
using namespace levin::test;
using kernels::BinaryArgs;
using kernels::TernaryArgs;
using kernels::UnaryArgs;

namespace {

constexpr std::array kTypes = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                               DType::i32, DType::i16, DType::i8,  DType::u8,   DType::boolean};

Stream& here() {
  static Stream stream(kCpu);
  return stream;
}
Stream there() { return current_stream(cuda(0)); }

/// Integers and multiples of 0.5 that every type can hold; the seed makes operands differ.
Tensor some_values(const Shape& sizes, DType dtype, std::uint64_t seed) {
  Generator g(seed);
  std::vector<double> v(static_cast<std::size_t>(sizes.numel()));
  for (double& x : v) x = std::floor(g.uniform() * 41.0) / 2.0 - (dtype == DType::u8 ? 0.0 : 10.0);
  return from_data(v, sizes, {.dtype = kFloat64}).to(dtype);
}

/// Returns the same view of the same memory on the device.
Tensor moved(const Tensor& base, const Shape& sizes, const Shape& strides, int64_t offset, Device device) {
  return alias(base.to(device), sizes, strides, offset);
}

struct View {
  const char* name;
  Shape base, sizes, strides;
  int64_t offset = 0;
};
const std::array kViews = {
    View{"contiguous", {37, 52}, {37, 52}, {52, 1}},  View{"a tail", {1925}, {1925}, {1}},
    View{"an odd address", {1926}, {1925}, {1}, 1},   View{"a row for all", {52}, {37, 52}, {0, 1}},
    View{"a column for all", {37}, {37, 52}, {1, 0}}, View{"one for all", {1}, {37, 52}, {0, 0}},
    View{"transposed", {52, 37}, {37, 52}, {1, 37}},  View{"columns apart", {37, 104}, {37, 52}, {104, 2}},
    View{"odd rows", {37, 53}, {37, 52}, {53, 1}},    View{"4 axes", {4, 3, 5, 2}, {3, 2, 4, 5}, {10, 1, 30, 2}},
};

void check_same(const Tensor& actual, const Tensor& expected, double ulps) {
  CHECK(compare(actual.to(kCpu), expected, {.ulps = ulps}) == "");
}

void check_copy(const View& view, DType from, DType to) {
  CAPTURE(std::string(view.name));
  CAPTURE(name_of(from));
  CAPTURE(name_of(to));
  const Tensor base = some_values(view.base, from, 3);
  Tensor expected = empty(view.sizes, {.dtype = to}), actual = empty(view.sizes, {.dtype = to, .device = cuda(0)});
  kernels::copy({expected.tensor_view(), alias(base, view.sizes, view.strides, view.offset).tensor_view()}, here());
  Stream stream = there();
  const Tensor x = moved(base, view.sizes, view.strides, view.offset, cuda(0));
  kernels::copy({actual.tensor_view(), x.tensor_view()}, stream);
  check_same(actual, expected, 0);
}

void check_binary(const kernels::BinaryKernel& op, DType compute, DType out, DType other, double p0 = 1.0) {
  CAPTURE(std::string(op.name()));
  CAPTURE(name_of(compute));
  CAPTURE(name_of(other));
  const Shape sizes{9, 13};
  const Tensor a = some_values(sizes, compute, 5), b = some_values({13}, other, 6);
  Tensor expected = empty(sizes, {.dtype = out}), actual = empty(sizes, {.dtype = out, .device = cuda(0)});
  op({expected.tensor_view(), a.tensor_view(), b.tensor_view(), compute, p0}, here());
  Stream stream = there();
  const Tensor a2 = a.to(cuda(0)), b2 = b.to(cuda(0));
  op({actual.tensor_view(), a2.tensor_view(), b2.tensor_view(), compute, p0}, stream);
  check_same(actual, expected, 1);
}

}  // namespace

TEST_CASE("copies of all types and views match the CPU") {
  for (const DType from : kTypes)
    for (const DType to : kTypes) check_copy(kViews[from == to ? 0 : 1], from, to);
  for (const View& view : kViews)
    for (const auto& [from, to] : {std::pair{DType::f32, DType::f32},
                                   {DType::f16, DType::f16},
                                   {DType::u8, DType::u8},
                                   {DType::f64, DType::f64},
                                   {DType::f32, DType::bf16},
                                   {DType::boolean, DType::f16},
                                   {DType::i16, DType::f64}})
      check_copy(view, from, to);
}

TEST_CASE("sums, products and comparisons of every pair of types match the CPU") {
  for (const DType compute : kTypes) {
    for (const DType other : kTypes) {
      check_binary(kernels::add, compute, compute, other);
      check_binary(kernels::mul, compute, compute, other);
      check_binary(kernels::maximum, compute, compute, other);
      check_binary(kernels::lt, compute, DType::boolean, other);
      check_binary(kernels::logical_xor, compute, DType::boolean, other);
    }
    if (!is_floating(compute)) {
      for (const kernels::BinaryKernel* op : {&kernels::bitwise_and, &kernels::bitwise_or, &kernels::bitwise_xor})
        for (const DType other : kTypes) check_binary(*op, compute, compute, other);
    }
    if (compute == DType::boolean) continue;
    check_binary(kernels::add, compute, compute, compute, -3.0);
    check_binary(kernels::mul, compute, DType::f32, compute);
    check_binary(kernels::mul, compute, DType::i64, compute);
  }
}

TEST_CASE("narrow integers wrap, and clamp ignores bounds beyond their range") {
  const Tensor x = tensor<int8_t>({-128, -1, 0, 1, 100, 127}), x2 = x.to(cuda(0));
  Stream stream = there();
  for (const kernels::UnaryKernel* op :
       {&kernels::neg, &kernels::abs, &kernels::square, &kernels::sign, &kernels::relu, &kernels::clamp}) {
    CAPTURE(std::string(op->name()));
    Tensor expected = empty({6}, {.dtype = kInt8}), actual = empty({6}, {.dtype = kInt8, .device = cuda(0)});
    (*op)({expected.tensor_view(), x.tensor_view(), -2.5, 1e9}, here());
    (*op)({actual.tensor_view(), x2.tensor_view(), -2.5, 1e9}, stream);
    check_same(actual, expected, 0);
  }
}

TEST_CASE("an integer divided by zero has all bits set, and its remainder is itself") {
  const Tensor a = tensor<int32_t>({7, -7, 7, -7, -2147483648}).to(cuda(0));
  const Tensor b = tensor<int32_t>({0, 0, -2, 2, -1}).to(cuda(0));
  Tensor out = empty({5}, {.dtype = kInt32, .device = cuda(0)});
  Stream stream = there();
  kernels::floor_divide({out.tensor_view(), a.tensor_view(), b.tensor_view(), kInt32}, stream);
  CHECK(out.to(kCpu).to_vector<int32_t>() == std::vector<int32_t>{-1, -1, -4, -4, -2147483648});
  kernels::remainder({out.tensor_view(), a.tensor_view(), b.tensor_view(), kInt32}, stream);
  CHECK(out.to(kCpu).to_vector<int32_t>() == std::vector<int32_t>{7, -7, -1, 1, 0});
  const BinaryArgs by_number{out.tensor_view(), a.tensor_view(), TensorView::number(0, kInt32), kInt32};
  CHECK_THROWS_AS(kernels::remainder(by_number, stream), ValueError);
}

TEST_CASE("functions keep infinities, NaN and signs of zero") {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> v = {0.0, -0.0, inf, -inf, nan, 1.0, -1.0, 0.5, -2.5, 1e-30, 700.0, -700.0, 88.0, 2.5};
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    const Tensor x = from_data(v, {14}, {.dtype = kFloat64}).to(dtype), x2 = x.to(cuda(0));
    Stream stream = there();
    for (const kernels::UnaryKernel* op :
         {&kernels::neg,   &kernels::abs,       &kernels::sign,       &kernels::square,     &kernels::floor,
          &kernels::ceil,  &kernels::round,     &kernels::trunc,      &kernels::reciprocal, &kernels::sqrt,
          &kernels::rsqrt, &kernels::exp,       &kernels::expm1,      &kernels::log,        &kernels::log2,
          &kernels::log10, &kernels::log1p,     &kernels::tanh,       &kernels::sigmoid,    &kernels::erf,
          &kernels::clamp, &kernels::relu,      &kernels::leaky_relu, &kernels::elu,        &kernels::gelu,
          &kernels::silu,  &kernels::gelu_tanh, &kernels::softplus,   &kernels::logsigmoid}) {
      CAPTURE(std::string(op->name()));
      CAPTURE(name_of(dtype));
      Tensor expected = empty({14}, {.dtype = dtype}), actual = empty({14}, {.dtype = dtype, .device = cuda(0)});
      (*op)({expected.tensor_view(), x.tensor_view(), 0.5, 20.0}, here());
      (*op)({actual.tensor_view(), x2.tensor_view(), 0.5, 20.0}, stream);
      CHECK(compare(actual.to(kCpu), expected, {.ulps = 8, .scale = 1}) == "");
      if (op == &kernels::expm1 || op == &kernels::elu) continue;  // the CPU's vector code loses the sign of zero
      const std::vector<double> got = actual.to(kCpu).to_vector<double>(), want = expected.to_vector<double>();
      for (std::size_t i = 0; i < 2; ++i) CHECK(std::signbit(got[i]) == std::signbit(want[i]));
    }
  }
}

TEST_CASE("where takes views, numbers and mixed types; the result may be an operand") {
  for (const DType dtype : kTypes) {
    CAPTURE(name_of(dtype));
    const Tensor condition = some_values({9, 13}, DType::boolean, 1), a = some_values({13}, dtype, 2);
    const TensorView number = TensorView::number(3.5, DType::f64);
    Tensor b = some_values({9, 13}, dtype, 4), b2 = b.to(cuda(0));
    kernels::where({b.tensor_view(), condition.tensor_view(), a.tensor_view(), b.tensor_view(), dtype}, here());
    kernels::where({b.tensor_view(), condition.tensor_view(), number, b.tensor_view(), dtype}, here());
    Stream stream = there();
    const Tensor condition2 = condition.to(cuda(0)), a2 = a.to(cuda(0));
    kernels::where({b2.tensor_view(), condition2.tensor_view(), a2.tensor_view(), b2.tensor_view(), dtype}, stream);
    kernels::where({b2.tensor_view(), condition2.tensor_view(), number, b2.tensor_view(), dtype}, stream);
    check_same(b2, b, 0);
  }
}

TEST_CASE("unsupported types are refused") {
  Tensor x = ones({3}, {.dtype = kBool, .device = cuda(0)});
  Stream stream = there();
  CHECK_THROWS_AS(kernels::neg({x.tensor_view(), x.tensor_view()}, stream), DTypeError);
  CHECK_THROWS_AS(kernels::sqrt({x.tensor_view(), x.tensor_view()}, stream), DTypeError);
}

TEST_CASE("every rung of the transposing copies moves every element of every size and type") {
  struct Form {
    Shape sizes, strides;  // of x, a view with permuted axes
  };
  int runs[4] = {};
  for (const Form& f : {Form{{2, 2}, {1, 2}},
                        {{33, 65}, {1, 33}},
                        {{32, 64}, {1, 32}},
                        {{8, 260}, {1, 8}},
                        {{3, 40, 36}, {1440, 1, 40}},
                        {{2, 3, 36, 40}, {40, 2880, 80, 1}},
                        {{5, 4, 7}, {1, 35, 5}}}) {
    for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::f64}) {
      const Tensor base = some_values({f.sizes.numel()}, dtype, 9);
      Tensor expected = empty(f.sizes, {.dtype = dtype});
      kernels::copy({expected.tensor_view(), alias(base, f.sizes, f.strides, 0).tensor_view()}, here());
      const Tensor x = moved(base, f.sizes, f.strides, 0, cuda(0));
      int number = 0;
      for (const auto& rung : kernels::cuda::transpose_rungs()) {
        const int at = number++;
        Tensor actual = zeros(f.sizes, {.dtype = dtype, .device = cuda(0)});
        if (!rung.can({actual.tensor_view(), x.tensor_view()})) continue;
        ++runs[at];
        CAPTURE(std::string(rung.name));
        CAPTURE(to_string(f.sizes));
        Stream stream = there();
        rung.run({actual.tensor_view(), x.tensor_view()}, stream);
        check_same(actual, expected, 0);
      }
    }
  }
  CHECK(runs[0] == runs[2]);
  CHECK(runs[2] > 20);
  CHECK(runs[3] > 5);
}
