// Convolution on raw pointers compared with simple loops in double precision.
#include "kernels/conv_oracle.h"
#include "kernels/cpu/conv/plan.h"

#include <levin/core/parallel.h>

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

namespace {

using namespace levin;
using namespace levin::kernels::cpu;
using namespace levin::test;

struct ThreadsGuard {
  int before = num_threads();
  ~ThreadsGuard() { set_num_threads(before); }
};

namespace direct = levin::kernels::cpu::detail;

int64_t strips(const Conv2dShape& s, const direct::DirectPlan& plan) {
  return direct::DirectStrips(plan, s.batch, sizeof(float)).count();
}

}  // namespace

TEST_CASE("conv2d: strides, padding and dilation, few and many channels") {
  for (const int64_t in : {1, 8, 17}) {
    for (const int64_t out : {1, 8, 33}) {
      for (const int64_t stride : {1, 2, 3}) {
        for (const int64_t pad : {0, 1, 4}) {
          for (const int64_t dilation : {1, 2}) {
            check<float>(shape(2, in, 9, 11, out, {.stride = stride, .pad = pad, .dilation = dilation}));
          }
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("conv2d: kernels of all shapes", T, float, double) {
  for (const auto& [kh, kw] : {std::pair<int64_t, int64_t>{1, 1}, {1, 3}, {5, 2}, {4, 4}, {7, 7}}) {
    for (const int64_t stride : {1, 2}) {
      check<T>(shape(3, 9, 10, 13, 18, {.kernel_h = kh, .kernel_w = kw, .stride = stride, .pad = 2}));
      check<T>(shape(1, 3, 8, 7, 5, {.kernel_h = kh, .kernel_w = kw, .stride = stride, .pad = 1}));
    }
  }
}

TEST_CASE_TEMPLATE("conv2d: groups, depthwise included", T, float, double) {
  for (const int64_t stride : {1, 2}) {
    check<T>(shape(2, 16, 7, 6, 32, {.stride = stride, .pad = 1, .groups = 2}));
    check<T>(shape(2, 6, 7, 6, 6, {.stride = stride, .pad = 1, .groups = 6}));
    check<T>(shape(2, 4, 7, 6, 32, {.stride = stride, .pad = 1, .groups = 4}));
    check<T>(shape(2, 40, 5, 5, 20, {.stride = stride, .groups = 2}));
  }
}

TEST_CASE("conv2d: the layers of the sample nets") {
  check<float>(shape(9, 1, 28, 28, 16, {.kernel_h = 5, .kernel_w = 5, .pad = 2}));
  check<float>(shape(9, 16, 14, 14, 32, {.kernel_h = 5, .kernel_w = 5}));
  check<float>(shape(2, 32, 26, 26, 64, {}));
  check<float>(shape(9, 24, 14, 14, 40, {.kernel_h = 4, .kernel_w = 4, .stride = 2, .pad = 1}));
  check<float>(shape(9, 20, 7, 7, 10, {.kernel_h = 7, .kernel_w = 7}));
}

TEST_CASE("conv2d: rows and columns that no window reaches, more padding than kernel, one pixel") {
  check<float>(shape(2, 10, 9, 9, 12, {.stride = 2, .pad = 1, .extra = 1}));
  check<float>(shape(2, 10, 8, 8, 12, {.kernel_h = 1, .kernel_w = 1, .stride = 3, .pad = 2}));
  check<float>(shape(2, 10, 3, 3, 12, {.kernel_h = 2, .kernel_w = 2, .pad = 5}));
  check<float>(shape(2, 10, 1, 1, 12, {.pad = 1}));
  check<float>(shape(1, 8, 1, 40, 8, {.kernel_h = 1, .kernel_w = 5}));
  check<float>(shape(0, 8, 5, 5, 8, {}));
}

TEST_CASE("conv2d: a kernel of 1 x 1 whose only row lies in the padding") {
  for (const int64_t channels : {2, 12}) {
    Conv2dShape s = shape(2, channels, 1, 7, channels, {.kernel_h = 1, .kernel_w = 1});
    s.stride_h = 3, s.pad_h = 1;
    check<float>(s);
  }
}

TEST_CASE_TEMPLATE("conv2d: one image of few pixels, whose weight is read in place", T, float, double) {
  check<T>(shape(1, 24, 4, 4, 20, {.pad = 1}));
  check<T>(shape(1, 100, 8, 8, 33, {.stride = 2, .pad = 1}));
  check<T>(shape(1, 17, 6, 7, 9, {.kernel_w = 2, .pad = 2, .dilation = 2}));
  check<T>(shape(1, 40, 8, 8, 10, {.pad = 1}));
  check<T>(shape(1, 12, 8, 8, 10, {.kernel_h = 1, .kernel_w = 1, .stride = 2}));
  check<T>(shape(1, 10, 6, 6, 16, {.kernel_h = 2, .kernel_w = 2, .stride = 2, .extra = 1}));
}

TEST_CASE_TEMPLATE("conv2d: without input channels, the result is the bias", T, float, double) {
  for (const int64_t pad : {0, 1}) check<T>(shape(2, 0, 9, 9, 12, {.stride = 2, .pad = pad}));
}

TEST_CASE("conv2d: large images, in strips of rows") {
  check<double>(shape(1, 9, 130, 61, 33, {.stride = 2, .pad = 1}));
  for (const Conv2dShape& s : {
           shape(1, 9, 130, 61, 33, {.stride = 2, .pad = 1}),
           shape(1, 9, 131, 60, 34, {.stride = 2, .pad = 2, .extra = 1}),
           shape(1, 16, 150, 40, 20, {.pad = 3, .dilation = 3, .groups = 2}),
           shape(1, 10, 70, 50, 20, {.dilation = 2}),  // y is computed in place
           shape(1, 24, 160, 90, 40, {.kernel_h = 2, .kernel_w = 2, .stride = 3, .pad = 1}),  // phases without a tap
           shape(1, 24, 40, 60, 24, {.kernel_h = 5, .kernel_w = 1, .pad = 1}),
           shape(2, 16, 80, 100, 16, {.stride = 2}),
       }) {
    CHECK_MESSAGE(strips(s, direct::forward_plan(s)) > 1, describe(s));
    CHECK_MESSAGE(strips(s, direct::backward_plan(s)) > 1, describe(s));
    check<float>(s);
  }
}

TEST_CASE("conv2d: the same bits with any number of threads") {
  const ThreadsGuard guard;
  for (const Conv2dShape& s : {shape(37, 5, 9, 8, 40, {.pad = 1}), shape(3, 40, 9, 8, 70, {.stride = 2, .pad = 1}),
                               shape(20, 3, 6, 6, 4, {.pad = 1}), shape(1, 256, 4, 4, 70, {.pad = 1}),
                               shape(1, 9, 130, 61, 33, {.stride = 2, .pad = 1}),
                               shape(5, 16, 7, 7, 24, {.kernel_h = 7, .kernel_w = 7}),
                               shape(19, 17, 14, 11, 40, {.pad = 1}), shape(1, 48, 43, 46, 33, {.pad = 2}),
                               shape(26, 32, 16, 14, 50, {.kernel_h = 4, .kernel_w = 4, .stride = 2, .pad = 1}),
                               shape(72, 48, 8, 8, 160, {.pad = 1}), shape(150, 96, 4, 4, 128, {.pad = 1})}) {
    const Case<float> c(s);
    std::vector<float> first;
    for (const int threads : {1, 2, 3, 7}) {
      set_num_threads(threads);
      std::vector<float> all(c.dy.size() + c.x.size() + c.w.size());
      float* y = all.data();
      float *dx = y + c.dy.size(), *dw = dx + c.x.size();
      conv2d_forward(s, c.x.data(), c.w.data(), c.b.data(), y);
      conv2d_backward_input(s, c.dy.data(), c.w.data(), dx);
      conv2d_backward_weight(s, c.x.data(), c.dy.data(), dw);
      if (first.empty()) first = all;
      CHECK_MESSAGE(std::memcmp(all.data(), first.data(), all.size() * sizeof(float)) == 0, describe(s));
    }
  }
}

TEST_CASE_TEMPLATE("conv2d: more images than chunks of the weight's gradient, and large weights of few channels", T,
                   float, double) {
  check<T>(shape(37, 3, 6, 6, 4, {.pad = 1}));
  check<T>(shape(37, 6, 5, 5, 4, {.groups = 2}));
  check<T>(shape(37, 9, 17, 18, 10, {.pad = 1}));  // one image at a time
  check<T>(shape(50, 9, 9, 9, 10, {.pad = 1}));    // three images at a time
  check<T>(shape(2, 300, 3, 3, 4, {.pad = 1}));
}

TEST_CASE_TEMPLATE("conv2d: groups whose kernel covers the whole image", T, float, double) {
  check<T>(shape(3, 8, 3, 3, 16, {.groups = 2}));
  check<T>(shape(3, 6, 3, 3, 4, {.groups = 2}));
  check<T>(shape(3, 16, 3, 3, 32, {.groups = 2}));
}
