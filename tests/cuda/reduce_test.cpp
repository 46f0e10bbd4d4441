// Reductions on cuda that read packs: columns, and lines of two axes. Their edges give the CPU's values, and the bits
// do not depend on addresses.

#include "support/small_cases.h"
#include "support/tolerance.h"

#include <levin/autograd/ops.h>
#include <levin/kernels/reduce.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace levin;
using namespace levin::test;

namespace {

/// x is the first part, of `sizes`, of a contiguous tensor of `whole`; `kept` are the sizes of the result.
struct ReduceForm {
  const char* name;
  Shape whole, sizes, kept;
};

const std::vector<ReduceForm> kReduceForms = {
    {"columns", {300, 40}, {300, 40}, {1, 40}},
    {"columns of whole tiles", {289, 128}, {289, 128}, {1, 128}},
    {"columns of fewer rows than are in flight", {33, 16}, {33, 16}, {1, 16}},
    {"columns in several pieces", {1030, 24}, {1030, 24}, {1, 24}},
    {"columns of an odd width", {600, 41}, {600, 41}, {1, 41}},
    {"columns of padded rows", {300, 48}, {300, 40}, {1, 40}},
    {"columns of rows padded to an odd width", {300, 43}, {300, 40}, {1, 40}},
    {"columns of two axes", {5, 80, 40}, {5, 70, 40}, {1, 1, 40}},
    {"columns of three axes", {3, 5, 30, 40}, {3, 4, 20, 40}, {1, 1, 1, 40}},
    {"columns of batches", {3, 100, 48}, {3, 100, 48}, {3, 1, 48}},
    {"columns of batches, part of the width", {3, 100, 48}, {3, 100, 37}, {3, 1, 37}},
    {"channels", {6, 3, 20, 20}, {6, 3, 20, 20}, {1, 3, 1, 1}},
    {"channels in several pieces", {31, 2, 24, 24}, {31, 2, 24, 24}, {1, 2, 1, 1}},
    {"channels of 676 pixels", {3, 2, 26, 26}, {3, 2, 26, 26}, {1, 2, 1, 1}},
    {"channels of an odd number of pixels", {40, 2, 7, 7}, {40, 2, 7, 7}, {1, 2, 1, 1}},
    {"channels of an odd number of pixels in several pieces", {31, 2, 23, 25}, {31, 2, 23, 25}, {1, 2, 1, 1}},
    {"channels of one image, part of the width", {1, 3, 60, 24}, {1, 3, 60, 18}, {1, 3, 1, 1}},
    {"channels of padded rows", {2, 3, 30, 24}, {2, 3, 30, 20}, {1, 3, 1, 1}},
    {"part of the channels' rows and columns", {8, 2, 14, 20}, {8, 2, 12, 16}, {1, 2, 1, 1}},
    {"a few strided columns", {2000, 3}, {2000, 2}, {1, 2}},
};

/// Returns x of these values on cuda, `offset` elements behind an aligned address.
Tensor laid_out(const ReduceForm& form, const Tensor& values, DType dtype, int64_t offset) {
  const int64_t n = form.whole.numel();
  Tensor x = zeros({n + offset}, {.dtype = dtype, .device = cuda(0)}).slice(0, {offset, n + offset}).view(form.whole);
  for (int d = 0; d < form.sizes.size(); ++d) x = x.narrow(d, 0, form.sizes[d]);
  x.copy_(values.to(dtype).to(cuda(0)));
  return x;
}

Tensor integers(const Shape& sizes) {
  std::vector<double> v(static_cast<std::size_t>(sizes.numel()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i * 7919 % 13) - 4.0;
  return from_data(v, sizes, {.dtype = kFloat64});
}

DType sum_type(DType dtype) { return is_floating(dtype) ? kFloat64 : kInt64; }

}  // namespace

TEST_CASE("columns and channels on cuda have the exact sums of integers") {
  const std::vector<DType> some{kFloat32, kBFloat16},
      all{kFloat64, kFloat32, kHalf, kBFloat16, kInt64, kInt32, kInt16, kInt8, kUInt8, kBool};
  for (const ReduceForm& form : kReduceForms) {
    CAPTURE(std::string(form.name));
    for (const DType dtype : small_cases() ? some : all) {
      CAPTURE(std::string(name_of(dtype)));
      Tensor values = integers(form.sizes);
      if (dtype == kUInt8 || dtype == kBool) values = values.abs();
      const Tensor host = values.to(dtype).to(sum_type(dtype));
      const Tensor expected = empty(form.kept, {.dtype = sum_type(dtype)});
      Stream stream = current_stream(cuda(0)), host_stream(kCpu);
      kernels::sum({expected.tensor_view(), host.tensor_view()}, host_stream);
      for (const int64_t offset : {0, 1}) {
        CAPTURE(offset);
        const Tensor x = laid_out(form, values, dtype, offset);
        const Tensor out = empty(form.kept, {.dtype = sum_type(dtype), .device = cuda(0)});
        kernels::sum({out.tensor_view(), x.tensor_view()}, stream);
        CHECK(compare(out.to(kCpu), expected, {.ulps = 0}) == "");
      }
    }
  }
}

TEST_CASE("products of columns and channels on cuda have the same bits at any address") {
  // Products of factors near 1 are rounded at every step, so that another order gives other bits.
  for (const ReduceForm& form : kReduceForms) {
    CAPTURE(std::string(form.name));
    const Tensor values = integers(form.sizes) * 1e-3 + 1.0;
    for (const DType dtype : {kFloat64, kFloat32, kHalf}) {
      CAPTURE(std::string(name_of(dtype)));
      Stream stream = current_stream(cuda(0)), host_stream(kCpu);
      const auto product = [&](int64_t offset) {
        const Tensor out = empty(form.kept, {.dtype = kFloat64, .device = cuda(0)});
        kernels::prod({out.tensor_view(), laid_out(form, values, dtype, offset).tensor_view()}, stream);
        return out.to(kCpu);
      };
      const Tensor aligned = product(0), expected = empty(form.kept, {.dtype = kFloat64});
      CHECK(aligned.to_vector<double>() == product(1).to_vector<double>());
      const Tensor host = values.to(dtype).to(kFloat64);
      kernels::prod({expected.tensor_view(), host.tensor_view()}, host_stream);
      const auto roundings = static_cast<double>(form.sizes.numel() / form.kept.numel());
      CHECK(compare(aligned, expected, {.ulps = roundings}) == "");
    }
  }
}

TEST_CASE("a NaN on cuda reaches the maximum of its column or channel alone") {
  for (const ReduceForm& form : kReduceForms) {
    CAPTURE(std::string(form.name));
    for (const int64_t place : {int64_t{0}, form.sizes.numel() / 2, form.sizes.numel() - 1}) {
      std::vector<double> v = integers(form.sizes).to_vector<double>();
      v[static_cast<std::size_t>(place)] = std::numeric_limits<double>::quiet_NaN();
      const Tensor values = from_data(v, form.sizes, {.dtype = kFloat64});
      const Tensor x = laid_out(form, values, kBFloat16, 0);
      const Tensor out = empty(form.kept, {.dtype = kBFloat16, .device = cuda(0)});
      const Tensor expected = empty(form.kept, {.dtype = kFloat64});
      Stream stream = current_stream(cuda(0)), host_stream(kCpu);
      kernels::amax({out.tensor_view(), x.tensor_view()}, stream);
      kernels::amax({expected.tensor_view(), values.tensor_view()}, host_stream);
      CHECK(compare(out.to(kCpu), expected, {.ulps = 0}) == "");
      int nans = 0;
      for (const double m : expected.to_vector<double>()) nans += std::isnan(m);
      CHECK(nans == 1);
    }
  }
}
