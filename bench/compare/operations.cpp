// Operations that people train with: forward alone, and forward with the gradients of all floating inputs. The names,
// shapes and order are those of bench/peers/torch_operations.py.

#include "comparison.h"

#include <levin/nn/nn.h>

#include <memory>

using namespace levin;
using bench::Comparison, bench::Rows, bench::Tensors;

namespace {

Tensor image() { return randn({16, 64, 32, 32}); }
Tensor positive(const Shape& sizes) { return rand(sizes) * 0.9 + 0.05; }
Tensor integers(int64_t bound, const Shape& sizes) { return randint(0, bound, sizes); }

template <class Module>
void layer(const Comparison& compare, const std::string& name, Module module, int64_t steps, int64_t batch) {
  const auto owned = std::make_shared<Module>(std::move(module));
  const Tensor x = randn({steps, batch, owned->input_size});
  Tensors leaves;
  for (const Parameter& p : owned->parameters()) leaves.push_back(p);
  compare.gradients(name, leaves, [=] { return (*owned)(x).first; });
}

void recurrent(const Comparison& compare) {
  layer(compare, "lstm 2x256 T64 B32", nn::LSTM(256, 256, {.num_layers = 2}), 64, 32);
  layer(compare, "gru 2x256 T64 B32", nn::GRU(256, 256, {.num_layers = 2}), 64, 32);
  layer(compare, "rnn 2x256 T64 B32", nn::RNN(256, 256, {.num_layers = 2}), 64, 32);
  layer(compare, "lstm 1x64 T32 B16", nn::LSTM(64, 64), 32, 16);
  layer(compare, "gru 1x64 T32 B16", nn::GRU(64, 64), 32, 16);
  layer(compare, "rnn 1x64 T32 B16", nn::RNN(64, 64), 32, 16);
}

void convolutions(const Comparison& compare) {
  compare("conv1d 32x64x256 k3", {randn({32, 64, 256}), randn({64, 64, 3})},
          [](const Tensors& x) { return conv1d(x[0], x[1], {}, {.padding = 1}); });
  compare("conv2d depthwise 3x3", {image(), randn({64, 1, 3, 3})},
          [](const Tensors& x) { return conv2d(x[0], x[1], {}, {.padding = 1, .groups = 64}); });
  compare("conv2d depthwise 5x5 s2", {image(), randn({64, 1, 5, 5})},
          [](const Tensors& x) { return conv2d(x[0], x[1], {}, {.stride = 2, .padding = 2, .groups = 64}); });
  compare("conv2d grouped 3x3", {image(), randn({64, 16, 3, 3})},
          [](const Tensors& x) { return conv2d(x[0], x[1], {}, {.padding = 1, .groups = 4}); });
  compare("conv3d 2x8x8x16x16 k3", {randn({2, 8, 8, 16, 16}), randn({16, 8, 3, 3, 3})},
          [](const Tensors& x) { return conv3d(x[0], x[1], {}, {.padding = 1}); });
  compare("conv_transpose3d 2x16x8x16x16 k3", {randn({2, 16, 8, 16, 16}), randn({16, 8, 3, 3, 3})},
          [](const Tensors& x) { return conv_transpose3d(x[0], x[1], {}, {.padding = 1}); });
}

void norms(const Comparison& compare) {
  const auto channels = [] { return ones({64}); };
  compare("group_norm 8 groups", {image(), channels(), channels()},
          [](const Tensors& x) { return group_norm(x[0], 8, x[1], x[2]); });
  compare("instance_norm", {image(), channels(), channels()},
          [](const Tensors& x) { return instance_norm(x[0], x[1], x[2]); });
  compare("batch_norm training", {image(), channels(), channels()},
          [](const Tensors& x) { return batch_norm(x[0], {}, {}, x[1], x[2], {.training = true}); });
  compare("rms_norm 2048x512", {randn({2048, 512}), ones({512})},
          [](const Tensors& x) { return rms_norm(x[0], {512}, x[1]); });
}

void activations(const Comparison& compare) {
  const auto x = [] { return randn({256, 4096}); };
  compare("mish", {x()}, [](const Tensors& in) { return mish(in[0]); });
  compare("hardswish", {x()}, [](const Tensors& in) { return hardswish(in[0]); });
  compare("hardsigmoid", {x()}, [](const Tensors& in) { return hardsigmoid(in[0]); });
  compare("selu", {x()}, [](const Tensors& in) { return selu(in[0]); });
  compare("celu", {x()}, [](const Tensors& in) { return celu(in[0]); });
  compare("silu", {x()}, [](const Tensors& in) { return silu(in[0]); });
  compare("prelu", {image(), full({64}, 0.25)}, [](const Tensors& in) { return prelu(in[0], in[1]); });
  compare("glu", {x()}, [](const Tensors& in) { return glu(in[0]); });
}

void losses(const Comparison& compare) {
  const auto pair = [&](const std::string& name, const Tensor& x, const Tensor& y, auto loss) {
    compare(name, {x}, [=](const Tensors& in) { return loss(in[0], y); });
  };
  const auto values = [] { return randn({256, 4096}); };
  pair("smooth_l1_loss", values(), values(), [](auto& x, auto& y) { return smooth_l1_loss(x, y); });
  pair("huber_loss", values(), values(), [](auto& x, auto& y) { return huber_loss(x, y); });
  pair("mse_loss", values(), values(), [](auto& x, auto& y) { return mse_loss(x, y); });
  pair("kl_div", values(), positive({256, 4096}), [](auto& x, auto& y) { return kl_div(x, y); });
  pair("binary_cross_entropy", positive({256, 4096}), positive({256, 4096}),
       [](auto& x, auto& y) { return binary_cross_entropy(x, y); });
  pair("cross_entropy 512x1000", randn({512, 1000}), integers(1000, {512}),
       [](auto& x, auto& y) { return cross_entropy(x, y); });
  const std::vector<int64_t> lengths(16, 64), labels(16, 16);
  pair("ctc_loss T64 B16 C32", log_softmax(randn({64, 16, 32}), 2), integers(31, {16, 16}) + 1,
       [=](auto& x, auto& y) { return ctc_loss(x, y, lengths, labels); });
}

void images(const Comparison& compare) {
  compare("interpolate bilinear x2", {image()},
          [](const Tensors& x) { return interpolate(x[0], {.scale_factor = {2.0}, .mode = ResizeMode::linear}); });
  compare("interpolate nearest x2", {image()},
          [](const Tensors& x) { return interpolate(x[0], {.scale_factor = {2.0}}); });
  compare("adaptive_avg_pool2d(1)", {image()}, [](const Tensors& x) { return adaptive_avg_pool2d(x[0], 1); });
  compare("adaptive_avg_pool2d(7)", {image()}, [](const Tensors& x) { return adaptive_avg_pool2d(x[0], 7); });
  compare("max_pool2d(2)", {image()}, [](const Tensors& x) { return max_pool2d(x[0], 2); });
  compare("avg_pool2d(2)", {image()}, [](const Tensors& x) { return avg_pool2d(x[0], 2); });
  compare("avg_pool1d(2)", {randn({32, 64, 512})}, [](const Tensors& x) { return avg_pool1d(x[0], 2); });
  compare("max_pool1d(2)", {randn({32, 64, 512})}, [](const Tensors& x) { return max_pool1d(x[0], 2); });
  compare("pad reflect", {image()}, [](const Tensors& x) { return pad(x[0], {1, 1, 1, 1}, PadMode::reflect); });
  compare("pixel_shuffle(2)", {image()}, [](const Tensors& x) { return pixel_shuffle(x[0], 2); });
  compare("grid_sample", {randn({8, 16, 32, 32}), rand({8, 32, 32, 2}) * 2 - 1},
          [](const Tensors& x) { return grid_sample(x[0], x[1]); });
}

void statistics(const Comparison& compare) {
  const auto x = [] { return randn({256, 1024}); };
  compare("cumsum", {x()}, [](const Tensors& in) { return cumsum(in[0], 1); });
  compare("cumprod", {positive({256, 1024}) + 0.5}, [](const Tensors& in) { return cumprod(in[0], 1); });
  compare("cummax", {x()}, [](const Tensors& in) { return cummax(in[0], 1).values; });
  compare("logcumsumexp", {x()}, [](const Tensors& in) { return logcumsumexp(in[0], 1); });
  compare("median", {x()}, [](const Tensors& in) { return median(in[0], 1).values; });
  compare("quantile", {x()}, [](const Tensors& in) { return quantile(in[0], 0.3, 1); });
  compare("sort", {x()}, [](const Tensors& in) { return sort(in[0], 1).values; });
  compare("topk 10", {x()}, [](const Tensors& in) { return topk(in[0], 10, 1).values; });
  compare(
      "unique", {integers(1000, {100'000})}, [](const Tensors& in) { return unique(in[0]).values; }, Rows::forward);
  compare("searchsorted 1000", {sort(randn({1000})).values, x()},
          [](const Tensors& in) { return searchsorted(in[0], in[1]); }, Rows::forward);
}

void products(const Comparison& compare) {
  compare("einsum bij,bjk->bik", {randn({16, 128, 128}), randn({16, 128, 128})},
          [](const Tensors& x) { return einsum("bij,bjk->bik", x); });
  compare("cdist 512x512x64", {randn({512, 64}), randn({512, 64})}, [](const Tensors& x) { return cdist(x[0], x[1]); });
}

void factorizations(const Comparison& compare) {
  for (const auto& [size, sizes] : {std::pair{"256", Shape{256, 256}}, {"64x16", Shape{64, 16, 16}}}) {
    const auto name = [&, n = std::string(" ") + size](const char* operation) { return operation + n; };
    const Tensor x = randn(sizes), spd = matmul(x, x.transpose(-2, -1)) + eye(sizes.back());
    compare(name("cholesky"), {spd}, [](const Tensors& in) { return linalg::cholesky(in[0]); });
    compare(name("qr"), {x}, [](const Tensors& in) { return linalg::qr(in[0]).q; });
    compare(name("eigh"), {spd}, [](const Tensors& in) { return linalg::eigh(in[0]).eigenvectors; });
    compare(name("svd"), {x}, [](const Tensors& in) { return linalg::svd(in[0]).u; });
    compare(name("solve"), {spd, x}, [](const Tensors& in) { return linalg::solve(in[0], in[1]); });
    compare(name("slogdet"), {spd}, [](const Tensors& in) { return linalg::slogdet(in[0]).logabsdet; });
  }
}

void indexing(const Comparison& compare) {
  const auto bag = std::make_shared<nn::EmbeddingBag>(10'000, 64);
  const Tensor words = integers(10'000, {256, 16});
  compare.gradients("embedding_bag 256x16", {bag->weight}, [=] { return (*bag)(words); });
  const Tensor table = randn({1000, 64}), rows = integers(1000, {4096}), columns = integers(64, {4096});
  const Tensor wide_rows = integers(1000, {4096, 1}).expand({4096, 64}).contiguous();
  compare("index x[i, j]", {table}, [=](const Tensors& x) { return index(x[0], std::vector<Index>{rows, columns}); });
  compare("index x[i]", {table}, [=](const Tensors& x) { return index(x[0], std::vector<Index>{rows}); });
  compare("index_put", {table, randn({4096, 64})},
          [=](const Tensors& x) { return index_put(x[0], {Index(rows)}, x[1], {.accumulate = true}); });
  compare("scatter_reduce sum", {table, randn({4096, 64})},
          [=](const Tensors& x) { return scatter_reduce(x[0], 0, wide_rows, x[1], ScatterReduce::sum); });
  compare("scatter_reduce amax", {table, randn({4096, 64})},
          [=](const Tensors& x) { return scatter_reduce(x[0], 0, wide_rows, x[1], ScatterReduce::amax); });
  compare("repeat_interleave", {randn({1024, 256})}, [](const Tensors& x) { return repeat_interleave(x[0], 4, 0); });
  compare("roll", {image()}, [](const Tensors& x) { return roll(x[0], {3, 5}, {2, 3}); });
}

}  // namespace

void for_each_operation(const OperationVisitor& visitor) {
  const Comparison compare(visitor);
  recurrent(compare);
  convolutions(compare);
  norms(compare);
  activations(compare);
  losses(compare);
  images(compare);
  statistics(compare);
  products(compare);
  factorizations(compare);
  indexing(compare);
}
