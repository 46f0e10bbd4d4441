// cuBLAS and cuDNN as they are installed beside a GPU, or their stand-ins on emulated devices, against exact values.
//
// cuBLAS 13 rounds a product of 16-bit floats to their type before it adds beta C or a bias, for some shapes: the worst
// elements of (130, 64, 96) with a bias on an H100 (2.55788 and 2.37038 times the allowance of one rounding in float16,
// 10.2746 and 13.3242 in bfloat16) are those of round(round(A B) + C) to the last digit. The math mode that forbids
// sums in 16 bits does not prevent it. So these results, and no others, may have one more rounding of the product.
#include "cuda/run_again.h"
#include "cuda/vendor/problems.h"
#include "support/tolerance.h"

#include <fmt/format.h>

#if __has_include(<levin/emulator/devices.h>)
#include "cuda/vendor/fake_record.h"
#endif

using namespace levin;
using namespace levin::test;

namespace {

double round_to(DType dtype, double x) { return host_tensor({x}, dtype).to_vector<double>()[0]; }

/// Returns the relative rounding error of a product that is rounded before something is added to it.
double product_unit(const Problem& p, DType dtype) {
  if (p.beta == 0 && !p.bias) return 0;
  return dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 0;
}

WorstElement run(const Problem& p, DType dtype, double unit) {
  Product product(p, dtype);
  Stream stream = current_stream(levin::cuda(0));
  kernels::matmul(product.args(), stream);
  return product.worst_element(0, unit);
}

void check_product(const Problem& p, DType dtype) {
  const WorstElement w = run(p, dtype, product_unit(p, dtype));
  const double twice = round_to(dtype, round_to(dtype, w.product) + (w.expected - w.product));
  const std::string element = fmt::format(
      "worst at ({}, {}): got {}, exact {}, of which alpha A B is {}; rounded before the addition and after it, this "
      "is {}",
      w.row, w.column, w.got, w.expected, w.product, twice);
  CHECK_MESSAGE(w.ratio <= 1.0, name_of(dtype)
                                    << " " << describe(p) << " error over allowance " << w.ratio << ", " << element);
}

const Problem kPlain{.m = 130, .n = 64, .k = 96, .multiple = 8};
const Problem kBiased{.m = 130, .n = 64, .k = 96, .multiple = 8, .bias = true};

/// Chooses a library, if it can be opened, by calling f.
template <class F>
void choose(F f) {
  const std::string missing = message_of(f);
  CHECK_MESSAGE((missing.empty() || missing.find("cannot be opened") != std::string::npos), missing);
}

}  // namespace

TEST_CASE("vendor: the installed libraries match our own kernels") {
  choose([] { cuda::set_preferred_blas_library("cublas"); });
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    for (const bool transpose : {false, true}) {
      check_product({.m = 65, .n = 34, .k = 77, .batch = 2, .transpose_a = transpose, .beta = 2}, dtype);
      for (Problem p : {kPlain, kBiased}) {
        p.transpose_b = transpose;
        check_product(p, dtype);
      }
    }
  }
  cuda::set_preferred_blas_library("levin");
  for (Layer layer : kLayers) {
    ++layer.x[0], ++layer.y[0];  // another test counts the choices of algorithms for these layers
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      const auto wanted = run_layer(layer, dtype);
      choose([] { cuda::set_preferred_conv_library("cudnn"); });
      const auto got = run_layer(layer, dtype);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        for (std::size_t e = 0; e < wanted[i].size(); ++e) {  // transforms round more than sums
          CHECK(std::abs(got[i][e] - wanted[i][e]) <= epsilon(dtype) * std::abs(wanted[i][e]) + 0x1p-14);
        }
      }
      cuda::set_preferred_conv_library("levin");
    }
  }
}

TEST_CASE("vendor: our own kernels round once where cuBLAS may round twice") {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const WorstElement w = run(kBiased, dtype, 0);
    CHECK_MESSAGE(w.ratio <= 1.0, fmt::format("{}: got {}, exact {}", name_of(dtype), w.got, w.expected));
  }
}

#if __has_include(<levin/emulator/devices.h>)
TEST_CASE("vendor: the bound for cuBLAS covers one rounding of the product, as seen on an H100") {
  cuda::set_preferred_blas_library("cublas");
  fake_record().rounds_products = true;
  for (const auto& [dtype, seen_on_an_h100] : {std::pair{DType::f16, 2.55788}, {DType::bf16, 10.2746}}) {
    CHECK(run(kBiased, dtype, 0).ratio == approx(seen_on_an_h100, {.relative = 1e-5}));
    CHECK(run(kBiased, dtype, product_unit(kBiased, dtype)).ratio <= 1);
    CHECK(product_unit(kPlain, dtype) == 0);
  }
  CHECK(product_unit(kBiased, DType::f32) == 0);
  fake_record().rounds_products = false;
  cuda::set_preferred_blas_library("levin");
}
#endif
