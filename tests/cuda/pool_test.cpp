// Pooling on cuda: every kernel and its edges give the CPU's values, indices and gradients.

#include "support/small_cases.h"
#include "support/tolerance.h"

#include <levin/autograd/autograd.h>
#include <levin/kernels/pool.h>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

using namespace levin;
using namespace levin::test;

namespace {

struct Case {
  const char* name;
  int64_t h, w;
  Tuple<2> kernel, stride, padding = 0, dilation = 1;
  bool ceil_mode = false;
};

int64_t outputs(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode) {
  const int64_t room = in + 2 * padding - dilation * (kernel - 1) - 1;
  const int64_t out = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  return ceil_mode && (out - 1) * stride >= in + padding ? out - 1 : out;
}

kernels::PoolGeometry geometry_of(const Case& c, int64_t planes) {
  return {.planes = planes,
          .h = c.h,
          .w = c.w,
          .oh = outputs(c.h, c.kernel[0], c.stride[0], c.padding[0], c.dilation[0], c.ceil_mode),
          .ow = outputs(c.w, c.kernel[1], c.stride[1], c.padding[1], c.dilation[1], c.ceil_mode),
          .kernel_h = c.kernel[0],
          .kernel_w = c.kernel[1],
          .stride_h = c.stride[0],
          .stride_w = c.stride[1],
          .padding_h = c.padding[0],
          .padding_w = c.padding[1],
          .dilation_h = c.dilation[0],
          .dilation_w = c.dilation[1]};
}

/// Returns a tensor that begins `offset` elements behind an aligned address.
Tensor placed(const Shape& sizes, DType dtype, Device device, int64_t offset) {
  return empty({sizes.numel() + offset}, {.dtype = dtype, .device = device})
      .slice(0, {offset, sizes.numel() + offset})
      .view(sizes);
}

struct Outcome {
  Tensor y, indices, dx, picked;
};

/// Runs the kernels on a device, with every tensor `offset` elements behind an aligned address.
Outcome run(const Tensor& x, const Tensor& dy, const kernels::PoolGeometry& g, DType dtype, Device device,
            int64_t offset) {
  const Shape in{g.planes, g.h, g.w}, out{g.planes, g.oh, g.ow};
  const Tensor from = placed(in, dtype, device, offset), gradient = placed(out, dtype, device, offset);
  from.copy_(x.to(device)), gradient.copy_(dy.to(device));
  const Tensor y = placed(out, dtype, device, offset), indices = placed(out, g.index_type(), device, offset);
  const Tensor dx = placed(in, dtype, device, offset), picked = placed(out, dtype, device, offset);
  Stream stream = current_stream(device);
  kernels::max_pool2d({y.tensor_view(), indices.tensor_view(), from.tensor_view(), g}, stream);
  kernels::max_pool2d_backward({dx.tensor_view(), gradient.tensor_view(), indices.tensor_view(), g}, stream);
  kernels::max_pool2d_pick({picked.tensor_view(), indices.tensor_view(), from.tensor_view(), g}, stream);
  const Tensor again = placed(out, dtype, device, offset);
  kernels::max_pool2d({again.tensor_view(), {}, from.tensor_view(), g}, stream);
  const auto values = [](const Tensor& t) { return t.to(kCpu).to(kFloat64); };
  CHECK(compare(values(again), values(y), {.ulps = 0}) == "");
  return {values(y), values(indices), values(dx), values(picked)};
}

/// Small integers with many ties, and a few NaN and infinities. All are exact in 16 bits.
Tensor planes_of(int64_t planes, int64_t h, int64_t w) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> v(static_cast<std::size_t>(planes * h * w));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i * 7919 % 31) - 15.0f;
  for (std::size_t i = 5; i < v.size(); i += 37) v[i] = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t i = 0; i < v.size(); i += 53) v[i] = kInfinity;
  // The last plane is minus infinity throughout, and the gradient of each window belongs to its first element.
  for (std::size_t i = v.size() - static_cast<std::size_t>(h * w); i < v.size(); ++i) v[i] = -kInfinity;
  return from_data(v, {planes, h, w});
}

const std::vector<Case> kCases = {
    {"pairs in whole packs", 6, 24, 2, 2},
    {"pairs in whole packs, a row left over", 7, 16, 2, 2},
    {"pairs, rows between windows", 8, 16, 2, {3, 2}},
    {"pairs, rows in two windows", 5, 16, 2, {1, 2}},
    {"pairs, rows in the padding", 6, 16, 2, 2, {1, 0}},
    {"pairs, a row in the padding at the top alone", 8, 16, 2, {5, 2}, {1, 0}},
    {"pairs, the last window over the border", 7, 16, 2, 2, 0, 1, true},
    {"pairs of a window of one row", 4, 16, {1, 2}, {1, 2}},
    {"pairs across packs", 6, 26, 2, 2},
    {"fewer elements than a pack", 2, 2, 2, 2},
    {"odd widths", 7, 13, 2, 2},
    {"odd widths, the last window over the border", 7, 13, 2, 2, 0, 1, true},
    {"padding", 6, 9, 2, 2, 1},
    {"padding and ceil_mode", 5, 6, 2, 2, 1, 1, true},
    {"elements between windows", 11, 17, 2, 3},
    {"elements between windows, whole packs", 9, 24, 2, {4, 5}},
    {"windows of three", 9, 18, 3, 3},
    {"windows of three in whole packs, padded", 8, 16, 3, 3, 1},
    {"windows of unequal sides", 8, 15, {3, 2}, {4, 2}, {1, 0}},
    {"windows of one", 5, 9, 1, 2, 0, 3},
    {"dilation", 9, 24, 2, 4, 0, 2},
    {"dilation of overlapping windows", 9, 11, 3, 2, 1, 2},
    {"overlapping windows", 7, 24, 3, 2, 1},
    {"overlapping windows of two", 5, 9, 2, 1},
    {"wide indices", 18, 35, 17, 17},
    {"wide indices of overlapping windows", 19, 20, 17, 2, 8},
    {"64-bit geometry", 3, 4, 2, int64_t{1} << 32},
};

}  // namespace

TEST_CASE("max pooling on cuda gives the values, indices and gradients of the CPU") {
  for (const Case& c : kCases) {
    CAPTURE(std::string(c.name));
    const kernels::PoolGeometry g = geometry_of(c, 3);
    const Tensor x = planes_of(g.planes, g.h, g.w);
    const Tensor dy = (arange(g.planes * g.oh * g.ow) % 7 + 1).to(kFloat32).view({g.planes, g.oh, g.ow});
    const Outcome expected = run(x, dy, g, kFloat32, kCpu, 0);
    for (const DType dtype : {kHalf, kBFloat16, kFloat32, kFloat64}) {
      CAPTURE(std::string(name_of(dtype)));
      for (const int64_t offset : {0, 1}) {
        if (small_cases() && (dtype == kBFloat16 || offset == 1)) continue;
        CAPTURE(offset);
        const Outcome found = run(x, dy, g, dtype, cuda(0), offset);
        CHECK(compare(found.y, expected.y, {.ulps = 0}) == "");
        CHECK(compare(found.indices, expected.indices, {.ulps = 0}) == "");
        CHECK(compare(found.dx, expected.dx, {.ulps = 0}) == "");
        CHECK(compare(found.picked, expected.picked, {.ulps = 0}) == "");
      }
    }
  }
}

TEST_CASE("average pooling on cuda counts in 64 bits where 32 are too few") {
  const Tensor x = arange(24, {.dtype = kFloat32}).view({2, 3, 4});
  const auto averages = [&](Device device) {
    const Tensor leaf = x.to(device).detach().requires_grad_();
    const Tensor y = avg_pool2d(leaf, 2, {.stride = int64_t{1} << 32});
    y.sum().backward();
    return std::pair(y.to(kCpu).to_vector<double>(), leaf.grad().to(kCpu).to_vector<double>());
  };
  CHECK(averages(cuda(0)) == averages(kCpu));
}
