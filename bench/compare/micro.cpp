// Levin's side of the micro comparisons. The names are those of bench/peers/torch_micro.py and torch_operations.py,
// with --sizes those of torch_sizes.py, and with --gemm those of gemm_peers.py.
// usage: levin_compare_micro [--threads N] [--sizes | --gemm] [PART-OF-A-NAME...]        prints: name  figure  unit

#include "operations.h"

#include <levin/levin.h>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

using namespace levin;
using Clock = std::chrono::steady_clock;

namespace {

std::vector<std::string> filters;

bool wanted(const std::string& name) {
  return filters.empty() ||
         std::ranges::any_of(filters, [&](const std::string& f) { return name.find(f) != std::string::npos; });
}

/// Returns the seconds per call: the best of `rounds` means over n calls.
template <class F>
double best(F&& f, int n, int rounds = 5) {
  for (int i = 0; i < std::max(1, n / 5); ++i) f();
  double least = 1e30;
  for (int r = 0; r < rounds; ++r) {
    const auto start = Clock::now();
    for (int i = 0; i < n; ++i) f();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count() / n);
  }
  return least;
}

/// Returns the microseconds of a call: the least mean of windows of about a millisecond, measured for `time`.
double least(const std::function<void()>& f, std::chrono::milliseconds time) {
  const auto seconds = [&](int n) {
    const auto start = Clock::now();
    for (int i = 0; i < n; ++i) f();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  f();
  const int n = std::clamp(static_cast<int>(1e-3 / seconds(1)), 1, 1000);
  double best = 1e30;
  const auto end = Clock::now() + time;
  for (int round = 0; round < 5 || Clock::now() < end; ++round) best = std::min(best, seconds(n) / n);
  return best * 1e6;
}

template <class F>
void row(const std::string& name, const char* unit, F&& figure) {
  if (!wanted(name)) return;
  std::printf("%-32s %12.4f %s\n", name.c_str(), figure(), unit);
  std::fflush(stdout);
}

void overhead() {
  const Tensor x = ones({4}), y = ones({4}), g = ones({4}).requires_grad_();
  row("add tiny, no grad", "us", [&] { return best([&] { const Tensor z = x + y; }, 20000) * 1e6; });
  row("add tiny, recorded", "us", [&] { return best([&] { const Tensor z = g + y; }, 20000) * 1e6; });
  row("chain of 1000 adds fwd+bwd", "us/op", [&] {
    return best([&] {
      Tensor z = g;
      for (int i = 0; i < 1000; ++i) z = z + y;
      sum(z).backward();
      g.set_grad({});
    }, 20) * 1e3;
  });
}

/// A network of 1,072 parameters with one sample: no arithmetic to speak of, only what surrounds it.
void tiny_net() {
  nn::Sequential net(nn::Linear(16, 32), nn::Tanh(), nn::Linear(32, 16));
  const Tensor x = randn({1, 16}), target = randn({1, 16});
  optim::Adam optimizer(net.parameters(), {.capturable = true});
  Tensor y;
  const auto forward = [&] {
    const no_grad guard;
    y = net(x);
  };
  const auto train = [&] {
    optimizer.zero_grad();
    mse_loss(net(x), target).backward();
    optimizer.step();
  };
  const auto rows = [](const std::string& name, const std::function<void()>& work) {
    row(name, "us", [&] { return best(work, 20000) * 1e6; });
    row(name + ", captured", "us", [&] {
      work();
      CapturedStep step = capture(work);
      return best(step, 20000) * 1e6;
    });
  };
  rows("tiny net forward", forward);
  rows("tiny net training", train);
}

void products() {
  for (const int n : {128, 256, 512, 1024, 2048}) {
    row("gemm " + std::to_string(n), "GFLOP/s", [&] {
      const Tensor a = randn({n, n}), b = randn({n, n});
      return 2.0 * n * n * n / best([&] { matmul(a, b); }, n > 1000 ? 3 : 50) / 1e9;
    });
  }
  const int shapes[][3] = {{128, 512, 784}, {128, 784, 512}, {784, 512, 128}, {1024, 576, 192}, {1024, 192, 768}};
  for (const auto& [m, n, k] : shapes) {
    row("linear " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " (x @ w.T)", "GFLOP/s",
        [&] {
          const Tensor a = randn({m, k}), w = randn({n, k});
          return 2.0 * m * n * k / best([&] { linear(a, w); }, 100) / 1e9;
        });
  }
}

void convolutions() {
  const int shapes[][7] = {
      {128, 1, 28, 32, 3, 1, 0}, {128, 32, 26, 64, 3, 1, 0}, {32, 64, 56, 64, 3, 1, 1}, {64, 64, 14, 128, 4, 2, 1}};
  for (const auto& [b, c, h, o, k, s, p] : shapes) {
    const std::string name = "conv " + std::to_string(b) + "x" + std::to_string(c) + "x" + std::to_string(h) + " -> " +
                             std::to_string(o) + " k" + std::to_string(k) + "s" + std::to_string(s);
    if (!wanted(name)) continue;
    const Tensor x = randn({b, c, h, h}).requires_grad_(), w = randn({o, c, k, k}).requires_grad_();
    const Conv2dOptions options{.stride = s, .padding = p};
    const Tensor g = randn(conv2d(x, w, {}, options).sizes());
    const double flops = 2.0 * static_cast<double>(g.numel()) * c * k * k;
    row(name + " fwd", "GFLOP/s", [&] { return flops / best([&] { conv2d(x, w, {}, options); }, 4) / 1e9; });
    row(name + " fwd+bwd", "GFLOP/s", [&] {
      return 3 * flops / best([&] { grad({conv2d(x, w, {}, options)}, {x, w}, {}, {g}); }, 3) / 1e9;
    });
  }
}

/// Operations whose bound is the memory, each beside the copy of a tensor of the same size: in a cache and beyond it.
void memory_bound(int64_t rows, int64_t columns) {
  const std::string size = " " + std::to_string(rows) + "x" + std::to_string(columns);
  const Tensor x = randn({rows, columns}), y = empty({rows, columns});
  const Tensor weight = ones({columns}), bias = zeros({columns}), labels = randint(0, columns, {rows});
  const double bytes = 2.0 * static_cast<double>(x.numel()) * 4 / 1e9;
  const int calls = static_cast<int>(std::max<int64_t>(30, 30 * 65'536 / x.numel() * 8));
  no_grad guard;
  const auto rate = [&](const char* name, double share, auto f) {
    row(name + size, "GB/s", [&] { return bytes * share / best(f, calls); });
  };
  rate("copy", 1, [&] { y.copy_(x); });
  rate("softmax", 1, [&] { softmax(x, 1); });
  rate("log_softmax", 1, [&] { log_softmax(x, 1); });
  rate("cross-entropy", 0.5, [&] { cross_entropy(x, labels); });
  rate("layernorm", 1, [&] { layer_norm(x, {columns}, weight, bias); });
  rate("gelu", 1, [&] { gelu(x); });
  rate("relu", 1, [&] { relu(x); });
  rate("tanh", 1, [&] { tanh(x); });
  rate("exp", 1, [&] { exp(x); });
  rate("sum rows", 0.5, [&] { sum(x, {1}); });
  rate("transpose copy", 1, [&] { x.t().contiguous(); });
}

void copies() {
  row("copy 40 MB", "GB/s", [&] {
    const Tensor z = randn({10'000'000}), y = empty({10'000'000});
    return 2 * 4e7 / best([&] { y.copy_(z); }, 10) / 1e9;
  });
}

void optimizers() {
  for (const char* name : {"adam fused", "adam default"}) {
    row(std::string(name) + " 10M", "GB/s", [&] {
      const Tensor p = randn({10'000'000}).requires_grad_();
      p.set_grad(randn({10'000'000}));
      optim::Adam optimizer({p});
      return 7 * 4e7 / best([&] { optimizer.step(); }, 5, 3) / 1e9;
    });
  }
}

/// Prints a row of each operation, which takes `time`.
OperationVisitor rows_of(std::chrono::milliseconds time) {
  return {.wanted = wanted, .visit = [=](const std::string& name, const auto&, const std::function<void()>& run) {
            std::printf("%-32s %12.3f us\n", name.c_str(), least(run, time));
            std::fflush(stdout);
          }};
}

}  // namespace

int main(int argc, char** argv) {
  bool sizes = false, gemm = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
      set_num_threads(std::atoi(argv[++i]));
    } else if (std::strcmp(argv[i], "--sizes") == 0) {
      sizes = true;
    } else if (std::strcmp(argv[i], "--gemm") == 0) {
      gemm = true;
    } else {
      filters.emplace_back(argv[i]);
    }
  }
  const Tensor first = ones({4}) + ones({4});
  if (filters == std::vector<std::string>{"first operation only"}) return 0;  // compare.py measures start-up with it
  if (sizes) for_each_size(rows_of(std::chrono::milliseconds(100)));
  if (gemm) {
    for_each_product({.wanted = wanted, .visit = [](const std::string& name, double flops, const auto& run) {
                        const double seconds = least(run, std::chrono::milliseconds(150)) * 1e-6;
                        std::printf("%-32s %12.3f GFLOP/s\n", name.c_str(), 1e-9 * flops / seconds);
                        std::fflush(stdout);
                      }});
  }
  if (sizes || gemm) return 0;
  overhead();
  tiny_net();
  products();
  convolutions();
  memory_bound(256, 256);
  memory_bound(4096, 1024);
  copies();
  optimizers();
  row("peak memory", "MB", [] {  // of the rows above, which torch_micro.py has too
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024;
  });
  for_each_operation(rows_of(std::chrono::milliseconds(300)));
}
