// Random numbers and ranges match the CPU's bit for bit, for any offset, count and alignment.

#include "support/tolerance.h"

#include <levin/autograd/ops.h>
#include <levin/kernels/creation.h>
#include <levin/kernels/random.h>

#include <doctest/doctest.h>

#include <array>

using namespace levin;
using namespace levin::test;

namespace {

constexpr std::array kFloats = {DType::f64, DType::f32, DType::f16, DType::bf16};
constexpr std::array kNumbers = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                                 DType::i32, DType::i16, DType::i8,  DType::u8};
constexpr GeneratorState kState{.seed = 0x123456789abcdef0, .offset = 0xfffffffe};

/// Calls f(tensor, stream) on both devices for tensors of several sizes, at a multiple of 64 bytes and one element
/// after it, and compares within `ulps`.
template <class F>
void on_both(DType dtype, F&& f, const Tolerance& tolerance = {.ulps = 0}) {
  CAPTURE(name_of(dtype));
  for (const int64_t n : {1, 2, 3, 4, 5, 1023, 2050}) {
    for (const int64_t offset : {0, 1}) {
      CAPTURE(n);
      CAPTURE(offset);
      Tensor host = zeros({n + 2}, {.dtype = dtype}), device = zeros({n + 2}, {.dtype = dtype, .device = cuda(0)});
      Stream here(kCpu), there = current_stream(cuda(0));
      f(alias(host, {n}, {1}, offset), here);
      f(alias(device, {n}, {1}, offset), there);
      CHECK(compare(device.to(kCpu), host, tolerance) == "");
    }
  }
}

}  // namespace

TEST_CASE("uniform, Bernoulli and random integers match the CPU bit for bit") {
  for (const DType t : kFloats) {
    on_both(t, [](Tensor x, Stream& s) { kernels::uniform({x.tensor_view(), kState, -3.0, 5.0}, s); });
    on_both(t, [t](Tensor x, Stream& s) {
      const Tensor p = linspace(0, 1, x.numel()).to(t).to(s.device());
      kernels::bernoulli({x.tensor_view(), p.tensor_view(), kState}, s);
    });
  }
  for (const DType t : kNumbers)
    on_both(t, [](Tensor x, Stream& s) { kernels::randint({x.tensor_view(), kState, -5, 90}, s); });
  on_both(DType::i64, [](Tensor x, Stream& s) {
    kernels::randint({x.tensor_view(), kState, -4'000'000'000'000'000'000, 5'000'000'000'000'000'000}, s);
  });
}

TEST_CASE("normal numbers match the CPU up to the rounding of their functions") {
  for (const DType t : kFloats) {
    on_both(t,
            [](Tensor x, Stream& s) {
              kernels::normal({x.tensor_view(), kState, 0.5, 2.0}, s);
            },
            {.ulps = 2, .scale = 4});
  }
}

TEST_CASE("dropout has the CPU's mask, also in place") {
  for (const DType t : kFloats) {
    for (const double p : {0.0, 0.3, 1.0}) {
      on_both(t, [t, p](Tensor x, Stream& s) {
        const Tensor input = linspace(-2, 3, x.numel()).to(t).to(s.device());
        kernels::dropout({x.tensor_view(), input.tensor_view(), kState, p}, s);
        kernels::dropout({x.tensor_view(), x.tensor_view(), {7, 11}, p}, s);
      });
    }
  }
}

TEST_CASE("ranges and fills match the CPU bit for bit") {
  for (const DType t : kNumbers) {
    on_both(t, [](Tensor x, Stream& s) { kernels::arange({x.tensor_view(), 100, -3, 0.1, 0.7}, s); });
    on_both(t, [](Tensor x, Stream& s) { kernels::linspace({x.tensor_view(), 0.1, 100.3}, s); });
    on_both(t, [](Tensor x, Stream& s) { kernels::fill({x.tensor_view(), TensorView::number(2.75, DType::f64)}, s); });
  }
}
