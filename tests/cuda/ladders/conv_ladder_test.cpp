// Every rung of the convolution ladder, and the shipping kernel, compared with simple loops in double precision.
#include "kernels/cuda/conv/ladder.h"

#include "cuda/matmul_problem.h"
#include "support/comparison.h"
#include "support/small_cases.h"
#include "support/thread_order.h"

#include <array>
#include <map>

using namespace levin;
using namespace levin::test;
namespace cuda_kernels = levin::kernels::cuda;

namespace {

struct Conv {
  int64_t batch, in, h, w, out, kernel_h, kernel_w;
  int64_t stride_h = 1, stride_w = 1, padding = 0, dilation = 1, groups = 1;
  int64_t extra = 0;  ///< rows and columns of x beyond the last window

  int64_t size(int64_t n, int64_t kernel, int64_t stride) const {
    return (n - extra + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
  }
  Shape x() const { return {batch, in, h, w}; }
  Shape weight() const { return {out, in / groups, kernel_h, kernel_w}; }
  Shape y() const { return {batch, out, size(h, kernel_h, stride_h), size(w, kernel_w, stride_w)}; }
};

std::string describe(const Conv& c) {
  std::string text;
  for (const Shape& s : {c.x(), c.weight(), c.y()}) text += to_string(s);
  return text + " groups " + std::to_string(c.groups) + " padding " + std::to_string(c.padding) + " dilation " +
         std::to_string(c.dilation);
}

/// Calls f(x index, weight index, y index) for every product.
template <class F>
void each_product(const Conv& c, F f) {
  const Shape y = c.y();
  const int64_t inputs = c.in / c.groups, outputs = c.out / c.groups;
  for (int64_t e = 0; e < y.numel(); ++e) {
    const int64_t j = e % y[3], i = e / y[3] % y[2], o = e / y[3] / y[2] % y[1], b = e / y[3] / y[2] / y[1];
    for (int64_t t = 0; t < inputs * c.kernel_h * c.kernel_w; ++t) {
      const int64_t q = t % c.kernel_w, p = t / c.kernel_w % c.kernel_h, ch = t / c.kernel_w / c.kernel_h;
      const int64_t h = i * c.stride_h - c.padding + p * c.dilation, w = j * c.stride_w - c.padding + q * c.dilation;
      if (h < 0 || h >= c.h || w < 0 || w >= c.w) continue;
      f(at(((b * c.in + o / outputs * inputs + ch) * c.h + h) * c.w + w), at(o * inputs * c.kernel_h * c.kernel_w + t),
        at(e));
    }
  }
}

/// An exact result with the sum of magnitudes and the number of terms of each element.
struct Exact {
  std::vector<double> value, magnitude, terms;
  explicit Exact(int64_t n) : value(at(n)), magnitude(at(n)), terms(at(n)) {}
  void add(std::size_t i, double term) { value[i] += term, magnitude[i] += std::abs(term), terms[i] += 1; }
  double worst(const std::vector<double>& got, DType dtype) const {
    const double unit = dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
    const double rounding = dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : unit;
    if (value.empty()) return got.empty() ? 0 : std::numeric_limits<double>::infinity();  // no images
    return largest_share(got, value, [&](std::size_t i) {
      return (terms[i] + 4) * unit * magnitude[i] + rounding * std::abs(value[i]) + 0x1p-25;
    });
  }
};

enum Pass { kForward, kBackwardInput, kBackwardWeight };

/// The three tensors with random values; run() computes one of them from the others.
class Convolution {
 public:
  Convolution(const Conv& conv, DType dtype) : c(conv), dtype_(dtype) {
    std::mt19937 random(static_cast<unsigned>(c.in * 100 + c.out));
    std::uniform_real_distribution<double> draw(-1, 1);
    const auto values = [&](int64_t n) {
      std::vector<double> v(at(n));
      for (double& x : v) x = draw(random);
      return host_tensor(v, dtype);
    };
    x_ = values(c.x().numel()), weight_ = values(c.weight().numel()), y_ = values(c.y().numel());
    bias_[kForward] = values(c.out), bias_[kBackwardInput] = values(c.in);
  }

  /// Returns the error of `run`'s result relative to the allowed rounding error.
  template <class F>
  double worst(Pass pass, bool with_bias, F run) {
    const Shape shapes[] = {c.y(), c.x(), c.weight()};
    const Tensor result = to_device(
        host_tensor(std::vector<double>(at(shapes[pass].numel()), std::numeric_limits<double>::quiet_NaN()), dtype_));
    const Tensor x = to_device(x_), weight = to_device(weight_), y = to_device(y_);
    const Tensor bias = with_bias ? to_device(bias_[pass]) : Tensor();
    kernels::Conv2dArgs args{view(pass == kBackwardInput ? result : x, c.x()),
                             view(pass == kBackwardWeight ? result : weight, c.weight()),
                             {},
                             view(pass == kForward ? result : y, c.y()),
                             c.stride_h,
                             c.stride_w,
                             c.padding,
                             c.padding,
                             c.dilation,
                             c.dilation,
                             c.groups};
    if (with_bias) args.bias = bias.tensor_view();
    if (!run(args)) return 0;
    return exact(pass, with_bias).worst(to_host(result).to_vector<double>(), dtype_);
  }

  Conv c;

 private:
  static TensorView view(const Tensor& t, const Shape& sizes) {
    TensorView v = t.tensor_view();
    v.sizes = sizes;
    v.strides = contiguous_strides(sizes);
    return v;
  }
  const Exact& exact(Pass pass, bool with_bias) {
    std::optional<Exact>& e = exact_[at(pass * 2 + with_bias)];
    if (e) return *e;
    const auto x = x_.to_vector<double>(), w = weight_.to_vector<double>(), y = y_.to_vector<double>();
    const Shape shapes[] = {c.y(), c.x(), c.weight()};
    e.emplace(shapes[pass].numel());
    each_product(c, [&](std::size_t xi, std::size_t wi, std::size_t yi) {
      if (pass == kForward) e->add(yi, x[xi] * w[wi]);
      if (pass == kBackwardInput) e->add(xi, y[yi] * w[wi]);
      if (pass == kBackwardWeight) e->add(wi, x[xi] * y[yi]);
    });
    if (with_bias) {
      const auto bias = bias_[at(pass)].to_vector<double>();
      const int64_t channels = shapes[pass][1], plane = shapes[pass][2] * shapes[pass][3];
      for (std::size_t i = 0; i < e->value.size(); ++i) e->add(i, bias[at(static_cast<int64_t>(i) / plane % channels)]);
    }
    return *e;
  }

  DType dtype_;
  Tensor x_, weight_, y_;
  std::array<Tensor, 2> bias_;
  std::array<std::optional<Exact>, 6> exact_;
};

using Runs = std::map<std::string, int>;

/// Compares all rungs from `first` on, and what the library launches, with the exact sums.
void check(const Conv& c, DType dtype, Runs& runs, std::size_t first = 0) {
  Convolution convolution(c, dtype);
  Stream stream = current_stream(levin::cuda(0));
  for (const Pass pass : {kForward, kBackwardInput, kBackwardWeight}) {
    const bool bias = pass != kBackwardWeight && c.in % 2 == 0;
    const auto verify = [&](const std::string& name, double worst) {
      CHECK_MESSAGE(worst <= 1.0, name << " pass " << int{pass} << " " << name_of(dtype) << " " << describe(c)
                                       << " error over allowance " << worst);
    };
    for (const cuda_kernels::ConvRung& rung : cuda_kernels::conv_rungs().subspan(first)) {
      const ThreadOrder order(describe(c) + std::string(rung.name) + std::to_string(int{pass}));
      verify(rung.name, convolution.worst(pass, bias, [&](const kernels::Conv2dArgs& args) {
        if (!rung.can(args)) return false;
        ++runs[rung.name];
        (pass == kForward         ? rung.forward
         : pass == kBackwardInput ? rung.backward_input
                                  : rung.backward_weight)(args, stream);
        return true;
      }));
    }
    verify("the launcher", convolution.worst(pass, bias, [&](const kernels::Conv2dArgs& args) {
      (pass == kForward         ? kernels::conv2d
       : pass == kBackwardInput ? kernels::conv2d_backward_input
                                : kernels::conv2d_backward_weight)(args, stream);
      return true;
    }));
  }
}

const Conv kConvs[] = {
    {.batch = 1, .in = 1, .h = 3, .w = 3, .out = 1, .kernel_h = 1, .kernel_w = 1},
    {.batch = 3, .in = 4, .h = 9, .w = 7, .out = 6, .kernel_h = 3, .kernel_w = 2, .padding = 1},
    {.batch = 2,
     .in = 5,
     .h = 11,
     .w = 12,
     .out = 8,
     .kernel_h = 3,
     .kernel_w = 3,
     .stride_h = 2,
     .stride_w = 3,
     .padding = 2,
     .extra = 1},
    {.batch = 2,
     .in = 8,
     .h = 9,
     .w = 10,
     .out = 12,
     .kernel_h = 2,
     .kernel_w = 3,
     .padding = 1,
     .dilation = 2,
     .groups = 2},
    {.batch = 2,
     .in = 6,
     .h = 6,
     .w = 5,
     .out = 6,
     .kernel_h = 3,
     .kernel_w = 3,
     .stride_h = 2,
     .stride_w = 2,
     .groups = 6},
    {.batch = 5, .in = 9, .h = 14, .w = 13, .out = 67, .kernel_h = 3, .kernel_w = 3, .padding = 1},
};

/// Shapes at which the copies with the channels innermost, or the tiles of pixels, end differently.
const Conv kChannelsLast[] = {
    // An image smaller than a tile, and images of one pixel.
    {.batch = 1, .in = 8, .h = 5, .w = 4, .out = 8, .kernel_h = 3, .kernel_w = 3, .padding = 1},
    {.batch = 130, .in = 16, .h = 1, .w = 1, .out = 24, .kernel_h = 1, .kernel_w = 1},
    // More outputs, taps and pixels than a tile has, without padding and with more than the filter reaches.
    {.batch = 3, .in = 24, .h = 13, .w = 11, .out = 72, .kernel_h = 3, .kernel_w = 3, .padding = 2, .dilation = 2},
    {.batch = 2, .in = 64, .h = 8, .w = 8, .out = 16, .kernel_h = 3, .kernel_w = 3},
    {.batch = 1, .in = 16, .h = 6, .w = 6, .out = 16, .kernel_h = 2, .kernel_w = 1, .padding = 2},
    // Channels padded to eight: a first layer, and groups.
    {.batch = 2,
     .in = 3,
     .h = 17,
     .w = 16,
     .out = 16,
     .kernel_h = 7,
     .kernel_w = 7,
     .stride_h = 2,
     .stride_w = 2,
     .padding = 3},
    {.batch = 2, .in = 6, .h = 6, .w = 5, .out = 27, .kernel_h = 3, .kernel_w = 3, .padding = 1, .groups = 3},
    {.batch = 2, .in = 16, .h = 8, .w = 7, .out = 32, .kernel_h = 3, .kernel_w = 2, .padding = 1, .groups = 2},
    // Strides, of which the input's gradient takes one remainder after the other; some have no tap.
    {.batch = 2,
     .in = 16,
     .h = 10,
     .w = 9,
     .out = 24,
     .kernel_h = 3,
     .kernel_w = 3,
     .stride_h = 2,
     .stride_w = 2,
     .padding = 1},
    {.batch = 2, .in = 8, .h = 7, .w = 8, .out = 40, .kernel_h = 1, .kernel_w = 1, .stride_h = 2, .stride_w = 2},
    {.batch = 2,
     .in = 16,
     .h = 9,
     .w = 11,
     .out = 8,
     .kernel_h = 3,
     .kernel_w = 3,
     .stride_h = 2,
     .stride_w = 3,
     .padding = 2,
     .dilation = 2},
    {.batch = 1, .in = 8, .h = 2, .w = 3, .out = 8, .kernel_h = 2, .kernel_w = 2, .stride_h = 4, .stride_w = 4},
    // The sum over the pixels in several parts, of which the last one is shorter.
    {.batch = 9, .in = 8, .h = 15, .w = 13, .out = 8, .kernel_h = 3, .kernel_w = 3, .padding = 1},
    // The longest axis of a filter; a longer one, and more remainders, which rung 4 takes.
    {.batch = 1, .in = 8, .h = 17, .w = 18, .out = 8, .kernel_h = 15, .kernel_w = 15, .padding = 2},
    {.batch = 1, .in = 8, .h = 17, .w = 3, .out = 8, .kernel_h = 16, .kernel_w = 1},
    {.batch = 1, .in = 8, .h = 11, .w = 9, .out = 8, .kernel_h = 3, .kernel_w = 3, .stride_h = 5, .stride_w = 4},
    // Three slabs of channels, of which the last one has a single chunk; a tile with several images.
    {.batch = 3, .in = 136, .h = 5, .w = 7, .out = 16, .kernel_h = 3, .kernel_w = 2, .padding = 1},
    {.batch = 4, .in = 8, .h = 6, .w = 5, .out = 72, .kernel_h = 2, .kernel_w = 3, .padding = 1, .dilation = 2},
};

}  // namespace

TEST_CASE("conv ladder: every rung of the three convolutions") {
  Runs runs;
  int number = 0;
  for (const Conv& c : kConvs) {
    const DType one = number++ % 2 == 0 ? DType::f16 : DType::f32;
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      if (!small_cases() || dtype == one) check(c, dtype, runs);
    }
  }
  check(kConvs[2], DType::f64, runs);
  check(kConvs[3], DType::f64, runs);
  for (const cuda_kernels::ConvRung& rung : cuda_kernels::conv_rungs())
    CHECK_MESSAGE(runs[rung.name] >= (small_cases() ? 3 : 12), std::string(rung.name));
}

TEST_CASE("conv ladder: channels innermost") {
  Runs runs;  // without the first rung, which takes most of the time and knows no layout
  int number = 0;
  for (const Conv& c : kChannelsLast) {
    const bool even = number++ % 2 == 0;
    if (!small_cases() || even) check(c, DType::f16, runs, 1);
    if (!small_cases() || !even) check(c, DType::bf16, runs, 1);
    check(c, DType::f32, runs, 2);  // without the columns as well
  }
  for (const char* rung : {"channels_last", "halo"}) CHECK(runs[rung] == 3 * (small_cases() ? 16 : 32));
  CHECK(runs["tensor_cores"] == 3 * (small_cases() ? 18 : 36));
  CHECK(runs["tap_major"] == 3 * 16);
}

TEST_CASE("conv ladder: an empty batch, and no channels") {
  Runs runs;
  const Conv empty{.batch = 0, .in = 4, .h = 5, .w = 4, .out = 6, .kernel_h = 3, .kernel_w = 2};
  for (const DType dtype : {DType::f64, DType::f32, DType::f16}) check(empty, dtype, runs);
  const Conv no_inputs{.batch = 2, .in = 0, .h = 5, .w = 4, .out = 6, .kernel_h = 3, .kernel_w = 2};
  const Conv no_outputs{.batch = 2, .in = 6, .h = 5, .w = 4, .out = 0, .kernel_h = 3, .kernel_w = 2};
  for (const DType dtype : {DType::f32, DType::f16}) check(no_inputs, dtype, runs), check(no_outputs, dtype, runs);
}

TEST_CASE("conv ladder: the weight's gradient has the same bits each time") {
  const Conv c{.batch = 8, .in = 3, .h = 16, .w = 16, .out = 5, .kernel_h = 3, .kernel_w = 3, .padding = 1};
  Stream stream = current_stream(levin::cuda(0));
  for (const DType dtype : {DType::f32, DType::f16}) {
    std::vector<double> first;
    for (int i = 0; i < 2; ++i) {
      const ThreadOrder order(std::to_string(i));
      Convolution convolution(c, dtype);
      CHECK(convolution.worst(kBackwardWeight, false, [&](const kernels::Conv2dArgs& args) {
        kernels::conv2d_backward_weight(args, stream);
        device_backend(levin::cuda(0)).synchronize(0);
        const Tensor copy = levin::empty(c.weight(), {.dtype = dtype});
        device_backend(levin::cuda(0))
            .copy(copy.raw_data(), kCpu, args.weight.pointer, levin::cuda(0),
                  static_cast<std::size_t>(copy.numel() * size_of(dtype)), stream);
        const auto values = copy.to_vector<double>();
        if (i == 0) first = values;
        CHECK(values == first);
        return true;
      }) <= 1.0);
    }
  }
}
