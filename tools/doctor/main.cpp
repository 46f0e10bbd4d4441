// levin-doctor: says what Levin finds on this machine, what is missing for which feature, and how fast it computes.

#include <levin/levin.h>

#include <levin/core/config.h>
#include <levin/core/parallel.h>
#include <levin/kernels/cuda.h>
#include <levin/kernels/kernel.h>
#include <levin/trainer/loggers/html_report.h>

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

using namespace levin;

namespace {

void row(const std::string& name, const std::string& text) { std::printf("  %-22s %s\n", name.c_str(), text.c_str()); }

/// Calls `work` for a third of a second, after one call to warm up, and returns the calls per second.
double calls_per_second(const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  work();
  const auto start = Clock::now();
  int calls = 0;
  std::chrono::duration<double> time{};
  do {
    work();
    ++calls;
    time = Clock::now() - start;
  } while (time.count() < 1.0 / 3);
  return calls / time.count();
}

std::string rounded(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, value < 100 ? "%.1f %s" : "%.0f %s", value, unit);
  return text;
}

void machine() {
  std::printf("Machine and build\n");
  for (const auto& [name, text] : environment_rows()) {
    if (name != "Process" && name != "Host") row(name, text);
  }
  const std::string_view target = kernels::cpu::simd_target();
  if (const char* limit = std::getenv("LEVIN_CPU_CAPABILITY"); limit && *limit)
    return row("", std::string("LEVIN_CPU_CAPABILITY=") + limit + " forbids wider instruction sets.");
  if (target == "SSE4") row("", "This processor has no AVX2, so the CPU kernels run at a fraction of their usual speed.");
  if (target == "AVX2") row("", "This processor has no AVX-512, for which there are kernels too.");
}

void gpus() {
  std::printf("\nGPU\n");
  if (!cuda::is_available()) {
    const std::string why = cuda::why_unavailable();  // begins with "[cuda] "
    return row("none used", why.substr(why.find(' ') + 1));
  }
  for (int i = 0; i < cuda::device_count(); ++i) {
    const auto p = cuda::get_device_properties(i);
    row("cuda:" + std::to_string(i), p.name + ", sm_" + std::to_string(p.major) + std::to_string(p.minor) + ", " +
                                        rounded(static_cast<double>(p.total_memory) / (1 << 30), "GiB"));
  }
}

void features() {
  std::printf("\nFeatures\n");
  row("CPU kernels", "yes");
  row("CUDA kernels", std::string_view(cuda::flavour()) == "OFF" ? "not in this build (-DLEVIN_CUDA=ON)" : "yes");
#ifdef LEVIN_STATIC
  row("several processes", "on one machine, by shared memory; not on several, as this is a static build without Gloo");
#else
  row("several processes", "on one machine, by shared memory, and on several, by Gloo");
#endif
  const bool shared = ::access("/dev/shm", W_OK) == 0;
  if (!shared) row("", "/dev/shm is not writable, so processes of one machine communicate by TCP, which is slower.");
  const bool data = std::filesystem::exists(data::kFashionMnistDir);
  row("Fashion-MNIST", data ? std::string("in ") + data::kFashionMnistDir
                            : "missing; ./run mnist and other programs need it (Debian: dataset-fashion-mnist)");
}

void benchmark() {
  std::printf("\nSpeed in one second, with %d threads\n", num_threads());
  const no_grad guard;
  const std::int64_t n = 768, many = 1 << 24;
  const auto a = randn({n, n}), b = randn({n, n});
  const double products = calls_per_second([&] { matmul(a, b); });
  row("matrix product", rounded(2e-9 * static_cast<double>(n * n * n) * products, "GFLOP/s (float32, 768 x 768)"));
  const auto x = randn({many}), y = randn({many});
  const double sums = calls_per_second([&] { x.add_(y); });
  row("sum of tensors", rounded(12e-9 * static_cast<double>(many) * sums, "GB/s (float32, 64 MiB each)"));
  nn::Sequential net(nn::Conv2d(1, 6, 5, {.padding = 2}), nn::ReLU(), nn::MaxPool2d(2), nn::Conv2d(6, 16, 5), nn::ReLU(),
                     nn::MaxPool2d(2), nn::Flatten(), nn::Linear(400, 120), nn::ReLU(), nn::Linear(120, 10));
  optim::SGD optimizer(net.parameters(), {.lr = 0.01});
  const auto images = randn({128, 1, 28, 28}), labels = randint(0, 10, {128});
  const double steps = calls_per_second([&] {
    const enable_grad with_gradients;
    optimizer.zero_grad();
    cross_entropy(net(images), labels).backward();
    optimizer.step();
  });
  row("training of LeNet", rounded(128 * steps, "images/s"));
}

}  // namespace

int main() try {
  machine();
  gpus();
  features();
  benchmark();
} catch (const std::exception& e) {
  std::printf("\nerror: %s\n", e.what());
  return 1;
}
