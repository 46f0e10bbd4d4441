// Layers from the smallest to the largest sizes in use, to find sizes that a kernel serves badly. The names, shapes and
// order are those of bench/peers/torch_sizes.py.

#include "comparison.h"

#include <levin/nn/nn.h>

#include <fmt/format.h>

using namespace levin;
using bench::Comparison, bench::Tensors;

namespace {

/// A batch of rows by the width of a layer.
struct Rows {
  int64_t batch, width;
};

std::vector<Rows> all_rows() {
  std::vector<Rows> list;
  for (const int64_t width : {16, 64, 256, 1024, 4096})
    for (const int64_t batch : {1, 16, 128, 1024}) list.push_back({batch, width});
  return list;
}

void dense(const Comparison& compare) {
  const auto row_op = [&](const char* name, const Rows& r, Tensor (*op)(const Tensor&)) {
    compare(fmt::format("{} {}x{}", name, r.batch, r.width), {randn({r.batch, r.width})},
            [=](const Tensors& x) { return op(x[0]); });
  };
  for (const Rows& r : all_rows()) {
    compare(fmt::format("linear {}x{}", r.batch, r.width),
            {randn({r.batch, r.width}), randn({r.width, r.width}), randn({r.width})},
            [](const Tensors& x) { return linear(x[0], x[1], x[2]); });
    row_op("relu", r, [](const Tensor& x) { return relu(x); });
    row_op("gelu", r, [](const Tensor& x) { return gelu(x); });
    row_op("softmax", r, [](const Tensor& x) { return softmax(x, 1); });
    compare(fmt::format("layer_norm {}x{}", r.batch, r.width),
            {randn({r.batch, r.width}), ones({r.width}), zeros({r.width})},
            [=](const Tensors& x) { return layer_norm(x[0], {r.width}, x[1], x[2]); });
    compare(fmt::format("cross_entropy {}x{}", r.batch, r.width), {randn({r.batch, r.width})},
            [y = randint(0, r.width, {r.batch})](const Tensors& x) { return cross_entropy(x[0], y); });
  }
}

void images(const Comparison& compare) {
  for (const int64_t size : {8, 16, 32, 64, 128, 224})
    for (const int64_t batch : {1, 16, 64}) {
      if (batch * size * size > 16 * 224 * 224) continue;
      const std::string shape = fmt::format("{}x32x{}", batch, size);
      const Tensor image = randn({batch, 32, size, size});
      compare("conv k3 " + shape, {image, randn({32, 32, 3, 3})},
              [](const Tensors& x) { return conv2d(x[0], x[1], {}, {.padding = 1}); });
      compare("conv k1 " + shape, {image, randn({64, 32, 1, 1})},
              [](const Tensors& x) { return conv2d(x[0], x[1], {}); });
      compare("conv k3 s2 " + shape, {image, randn({64, 32, 3, 3})},
              [](const Tensors& x) { return conv2d(x[0], x[1], {}, {.stride = 2, .padding = 1}); });
      compare("batch_norm " + shape, {image, ones({32}), zeros({32})},
              [](const Tensors& x) { return batch_norm(x[0], {}, {}, x[1], x[2], {.training = true}); });
      compare("max_pool2d(2) " + shape, {image}, [](const Tensors& x) { return max_pool2d(x[0], 2); });
    }
}

void attention(const Comparison& compare) {
  for (const int64_t length : {16, 64, 256, 1024})
    for (const int64_t batch : {1, 8}) {
      const auto heads = [=] { return randn({batch, 8, length, 64}); };
      compare(fmt::format("attention {}x8x{}x64", batch, length), {heads(), heads(), heads()},
              [](const Tensors& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); });
    }
}

}  // namespace

void for_each_size(const OperationVisitor& visitor) {
  const Comparison compare(visitor);
  dense(compare);
  images(compare);
  attention(compare);
}
