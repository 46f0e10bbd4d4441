// Benchmarks the rungs of the CPU's convolution: columns and a matrix product, direct, and Winograd's. The flops are
// those of the direct sums for all.

#include "bench/benchmarks.h"
#include "kernels/cpu/conv/columns.h"
#include "kernels/cpu/conv/winograd_weight.h"

#include <memory>
#include <string>
#include <vector>

namespace levin::bench {
namespace {

namespace conv = kernels::cpu::detail;
using kernels::cpu::Conv2dShape;

/// Inputs, gradients and results of one shape, with the three rungs of each of the three passes.
struct Problem {
  Conv2dShape s;
  std::vector<float> x = filled(s.batch * s.in_channels * s.in_plane()), w = filled(s.out_channels * s.taps()),
                     y = filled(s.batch * s.out_channels * s.out_plane());
  conv::DirectPlan forth = conv::forward_plan(s), back = conv::backward_plan(s);
  conv::WeightStrides forth_strides{s.taps(), s.kernel(), s.out_channels * s.taps()};
  conv::WeightStrides back_strides{s.kernel(), s.taps(), s.out_channels * s.taps()};

  static std::vector<float> filled(int64_t size) { return std::vector<float>(static_cast<std::size_t>(size), 0.5f); }

  void columns(int pass) {
    if (pass == 0) conv::columns_forward<float>(s, x.data(), w.data(), nullptr, y.data());
    if (pass == 1) conv::columns_backward_input(s, y.data(), w.data(), x.data());
    if (pass == 2) conv::columns_backward_weight(s, x.data(), y.data(), w.data());
  }
  void direct(int pass) {
    const float* const no_bias = nullptr;
    if (pass == 0) conv::direct_run(forth, s.batch, 1, x.data(), w.data(), forth_strides, no_bias, y.data());
    if (pass == 1) conv::direct_run(back, s.batch, 1, y.data(), w.data(), back_strides, no_bias, x.data());
    if (pass == 2) conv::direct_backward_weight(s, x.data(), y.data(), w.data());
  }
  void winograd(int pass) {
    const float* const no_bias = nullptr;
    if (pass == 0)
      conv::winograd_run(conv::winograd_forward(s), forth, x.data(), w.data(), forth_strides, no_bias, y.data());
    if (pass == 1)
      conv::winograd_run(conv::winograd_backward(s), back, y.data(), w.data(), back_strides, no_bias, x.data());
    if (pass == 2) conv::winograd_backward_weight(s, x.data(), y.data(), w.data());
  }
};

Conv2dShape square(int64_t batch, int64_t in, int64_t size, int64_t out, int64_t kernel = 3, int64_t pad = 1) {
  const int64_t result = size + 2 * pad - kernel + 1;
  return {.batch = batch, .in_channels = in, .in_h = size, .in_w = size, .out_channels = out, .kernel_h = kernel,
          .kernel_w = kernel, .pad_h = pad, .pad_w = pad, .out_h = result, .out_w = result};
}

}  // namespace

void add_conv_ladder(const Filters& filters) {
  const std::pair<const char*, Conv2dShape> shapes[] = {{"128x16x28_to_16", square(128, 16, 28, 16)},
                                                        {"128x32x24_to_64", square(128, 32, 24, 64)},
                                                        {"128x16x14_to_32_5x5", square(128, 16, 14, 32, 5, 0)},
                                                        {"32x64x28_to_64_5x5", square(32, 64, 28, 64, 5, 2)},
                                                        {"32x64x56_to_64", square(32, 64, 56, 64)},
                                                        {"32x256x8_to_256", square(32, 256, 8, 256)}};
  const char* const passes[] = {"forward", "input_gradient", "weight_gradient"};
  const std::pair<const char*, void (Problem::*)(int)> rungs[] = {
      {"columns", &Problem::columns}, {"direct", &Problem::direct}, {"winograd", &Problem::winograd}};
  for (const auto& [shape_name, shape] : shapes)
    for (int pass = 0; pass < 3; ++pass)
      for (const auto& [rung_name, rung] : rungs) {
        const std::string label = std::string("conv_ladder/") + shape_name + "/" + passes[pass] + "/" + rung_name;
        if (!wanted(label, filters)) continue;
        benchmark::RegisterBenchmark(label.c_str(), [s = shape, pass, run = rung](benchmark::State& state) {
          const auto problem = std::make_unique<Problem>(s);
          const Speed speed = speed_now();
          for (auto _ : state) (problem.get()->*run)(pass);
          const double elements = static_cast<double>(problem->x.size() + problem->w.size() + problem->y.size());
          const double products = static_cast<double>(problem->y.size()) * static_cast<double>(s.taps());
          set_counters(state, 4 * elements, 2 * products, speed);
        })->UseRealTime();
      }
}

}  // namespace levin::bench
