// Optimizer steps over lists of tensors that fill several launches, compared with the CPU's; steps that a guard skips.

#include "support/tolerance.h"

#include <levin/autograd/ops.h>
#include <levin/core/generator.h>
#include <levin/kernels/amp.h>
#include <levin/kernels/optim.h>

#include <doctest/doctest.h>

#include <limits>

using namespace levin;
using namespace levin::test;
using kernels::OptimTensor;

namespace {

Tensor some_values(int64_t n, DType dtype, double low, std::uint64_t seed) {
  Generator g(seed);
  std::vector<double> v(static_cast<std::size_t>(n));
  for (double& x : v) x = low + g.uniform();
  return from_data(v, {n}, {.dtype = kFloat64}).to(dtype);
}

/// Parameters of many sizes and types with their gradients and state, on one device.
class Group {
 public:
  explicit Group(Device device) {
    const DType types[] = {DType::f32, DType::f16, DType::f64, DType::bf16};
    for (int i = 0; i < 240; ++i) {
      const int64_t n = i == 0 ? 20'001 : i % 7 == 0 ? 0 : 1 + i * 5 % 37;
      const DType dtype = types[i % 4];
      for (int k = 0; k < 5; ++k) {
        // Some have an unaligned address.
        const Tensor whole = some_values(n + 1, dtype, k > 2 ? 0.1 : -0.5, static_cast<std::uint64_t>(5 * i + k));
        tensors_.push_back(alias(whole.to(device), {n}, {1}, i % 5 == 4 ? 1 : 0));
      }
      const auto at = [&](int k) { return tensors_[tensors_.size() - 5 + static_cast<std::size_t>(k)].raw_data(); };
      list_.push_back({.param = at(0),
                       .grad = at(1),
                       .first = at(2),
                       .second = at(3),
                       .third = at(4),
                       .numel = n,
                       .dtype = dtype,
                       .step = 1.0 + i % 3,
                       .fresh = i % 11 == 0});
    }
  }
  std::span<const OptimTensor> list() const { return list_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<OptimTensor> list_;
};

/// Runs f(list, stream, device) on both devices and compares all tensors after it.
template <class F>
void on_both(F&& f) {
  const Group host(kCpu), device(cuda(0));
  Stream here(kCpu), there = current_stream(cuda(0));
  f(host.list(), here, Device(kCpu));
  f(device.list(), there, cuda(0));
  for (std::size_t i = 0; i < host.tensors().size(); ++i) {
    CAPTURE(i);
    CHECK(compare(device.tensors()[i].to(kCpu), host.tensors()[i], {.ulps = 2, .scale = 1}) == "");
  }
}

/// Steps one group with a step number and learning rate on the host and another with those in device memory.
template <class Args>
void check_device_numbers(const kernels::Kernel<void(const Args&, Stream&)>& kernel, Args a, Device device,
                          float found) {
  const Group by_host(device), by_device(device);
  std::vector<OptimTensor> list(by_device.list().begin(), by_device.list().end());
  std::vector<double> before;
  for (OptimTensor& t : list) {
    before.push_back(t.step - 1);
    t.step = 1e9;  // must not be read
  }
  const TensorOptions f64{.dtype = kFloat64, .device = device};
  const Tensor counts = from_data(before, {static_cast<int64_t>(list.size())}, f64), lr = full({}, a.lr, f64);
  for (std::size_t i = 0; i < list.size(); ++i) list[i].count = static_cast<double*>(counts.raw_data()) + i;
  const Tensor found_inf = full({}, found, {.device = device}), skipped = full({}, -3.0, {.device = device});
  Stream stream = current_stream(device);
  a.guard.found_inf = static_cast<const float*>(found_inf.raw_data());
  a.tensors = by_host.list();
  kernel(a, stream);
  a.guard.skipped = static_cast<const float*>(skipped.raw_data());  // counts exclude skipped steps
  a.lr_at = static_cast<const double*>(lr.raw_data());
  a.lr = 1e9;
  a.tensors = list;
  kernel(a, stream);
  const std::vector<double> after = counts.to_vector<double>();
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(after[i] == before[i] + (found == 0 ? 1 : 0));
  for (std::size_t i = 0; i < by_host.tensors().size(); ++i) {
    CAPTURE(i);
    CHECK(compare(by_device.tensors()[i].to(kCpu), by_host.tensors()[i].to(kCpu), {.ulps = 0}) == "");
  }
}

}  // namespace

TEST_CASE("SGD steps of lists of tensors match the CPU") {
  for (const bool nesterov : {false, true}) {
    on_both([nesterov](std::span<const OptimTensor> list, Stream& s, Device) {
      kernels::sgd_step({list, 0.1, 0.9, nesterov ? 0.0 : 0.2, 0.01, nesterov, nesterov}, s);
    });
  }
  on_both([](std::span<const OptimTensor> list, Stream& s, Device) { kernels::sgd_step({list, 0.1}, s); });
}

TEST_CASE("Adam steps of lists of tensors match the CPU") {
  for (const bool decoupled : {false, true}) {
    on_both([decoupled](std::span<const OptimTensor> list, Stream& s, Device) {
      kernels::adam_step({list, 0.01, 0.9, 0.99, 1e-8, 0.1, decoupled, decoupled, decoupled}, s);
    });
  }
}

TEST_CASE("RMSprop and Adagrad steps of lists of tensors match the CPU") {
  for (const bool flag : {false, true}) {
    on_both([flag](std::span<const OptimTensor> list, Stream& s, Device) {
      std::vector<OptimTensor> squares_first(list.begin(), list.end());
      for (OptimTensor& t : squares_first) std::swap(t.first, t.third);  // averages of squares are not negative
      kernels::rmsprop_step({.tensors = squares_first,
                             .lr = 0.01,
                             .eps = 0.1,
                             .momentum = flag ? 0.5 : 0.0,
                             .centered = flag,
                             .maximize = flag},
                            s);
      kernels::adagrad_step({.tensors = squares_first, .lr = 0.01, .lr_decay = 0.1, .eps = 0.1, .weight_decay = 0.1},
                            s);
    });
  }
}

TEST_CASE("a guard skips a step, and skipped steps do not count") {
  for (const float found : {0.0f, 1.0f}) {
    on_both([found](std::span<const OptimTensor> list, Stream& s, Device device) {
      const Tensor found_inf = full({}, found, {.device = device}), skipped = full({}, -2.0, {.device = device});
      const kernels::StepGuard guard{static_cast<const float*>(found_inf.raw_data()),
                                     static_cast<const float*>(skipped.raw_data())};
      kernels::sgd_step({.tensors = list, .lr = 0.1, .momentum = 0.9, .guard = guard}, s);
      kernels::adam_step({.tensors = list, .lr = 0.01, .guard = guard}, s);
    });
  }
}

TEST_CASE("a step count and a learning rate on the device match the host's bit for bit") {
  for (const Device device : {Device(kCpu), cuda(0)}) {
    for (const float found : {0.0f, 1.0f}) {
      kernels::AdamStepArgs adam{.tensors = {}, .lr = 0.01, .weight_decay = 0.1, .decoupled = true};
      check_device_numbers(kernels::adam_step, adam, device, found);
      kernels::SgdStepArgs sgd{.tensors = {}, .lr = 0.01, .momentum = 0.9};
      check_device_numbers(kernels::sgd_step, sgd, device, found);
    }
  }
}

TEST_CASE("unscaling divides and detects a value that is not finite, wherever it is") {
  for (const double bad : {1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      CAPTURE(bad);
      CAPTURE(name_of(dtype));
      Tensor large = some_values(9'001, dtype, 1.0, 1), small = some_values(5, dtype, 1.0, 2);
      small.narrow(0, 3, 1).fill_(bad);
      const Tensor large2 = large.to(cuda(0)), small2 = small.to(cuda(0));
      const auto unscale = [dtype](const Tensor& a, const Tensor& b, Stream s) {
        const TensorOptions there{.dtype = kFloat32, .device = s.device()};
        const Tensor scale = full({}, 65536.0, there), found_inf = zeros({}, there);
        const kernels::AmpTensor list[] = {{a.raw_data(), a.numel(), dtype}, {b.raw_data(), b.numel(), dtype}};
        kernels::amp_unscale(
            {list, static_cast<const float*>(scale.raw_data()), static_cast<float*>(found_inf.raw_data())}, s);
        return found_inf.item<float>();
      };
      CHECK(unscale(large, small, Stream(kCpu)) == (bad == 1.0 ? 0.0f : 1.0f));
      CHECK(unscale(large2, small2, current_stream(cuda(0))) == (bad == 1.0 ? 0.0f : 1.0f));
      CHECK(compare(large2.to(kCpu), large, {.ulps = 0}) == "");
      CHECK(compare(small2.to(kCpu), small, {.ulps = 0}) == "");
    }
  }
}

TEST_CASE("the scale falls to its floor, and grows while it is finite") {
  struct Step {
    float scale, tracker, found, expected_scale, expected_tracker, expected_skips;
  };
  for (const Step& step : {Step{65536, 5, 1, 32768, 0, 4},
                           {1.5, 5, 1, 1, 0, 4},
                           {8, 5, 0, 8, 6, 0},
                           {8, 9, 0, 16, 0, 0},
                           {0x1p127f, 9, 0, 0x1p127f, 0, 0}}) {
    const auto number = [](float x) { return full({}, x, {.dtype = kFloat32, .device = cuda(0)}); };
    const Tensor scale = number(step.scale), tracker = number(step.tracker), skips = number(3),
                 found = number(step.found);
    const auto at = [](const Tensor& t) { return static_cast<float*>(t.raw_data()); };
    Stream stream = current_stream(cuda(0));
    kernels::amp_update_scale(
        {.scale = at(scale), .tracker = at(tracker), .skips = at(skips), .found_inf = at(found), .growth_interval = 10},
        stream);
    CHECK(scale.item<float>() == step.expected_scale);
    CHECK(tracker.item<float>() == step.expected_tracker);
    CHECK(skips.item<float>() == step.expected_skips);
  }
}
