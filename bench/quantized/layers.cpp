// Times layers with float32 and int8 weights, alternating, in one thread; tools/quantization.py writes the table of
// docs/deploy.md of it. Prints a line for each: name, batch, and the median microseconds of float32, weight-only and
// dynamic. The times are those of the processor for this thread, which other programs disturb less.
#include <levin/autograd/autograd.h>
#include <levin/core/parallel.h>
#include <levin/nn/nn.h>

#include <fmt/format.h>

#include <ctime>
#include <functional>
#include <memory>

#include "../median.h"

using namespace levin;

namespace {

double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

template <class L>
void measure(const std::string& name, const std::function<std::unique_ptr<L>()>& make, const Shape& sizes,
             int64_t calls) {
  manual_seed(0);
  std::unique_ptr<L> layers[] = {make(), make(), make()};
  nn::quantize_(*layers[1], {.mode = nn::QuantizeMode::weight_only_int8});
  nn::quantize_(*layers[2], {.mode = nn::QuantizeMode::dynamic_int8});
  const Tensor x = randn(sizes);
  std::vector<double> times[3];
  for (int round = 0; round < 15; ++round)
    for (std::size_t i = 0; i < 3; ++i) {
      const double start = now();
      for (int64_t c = 0; c < calls; ++c) layers[i]->forward(x);
      if (round > 0) times[i].push_back((now() - start) / static_cast<double>(calls));
    }
  fmt::print("{}\t{}\t{:.1f}\t{:.1f}\t{:.1f}\n", name, sizes[0], bench::median(times[0]), bench::median(times[1]),
             bench::median(times[2]));
}

}  // namespace

int main() {
  set_num_threads(1);
  const no_grad guard;
  for (const int64_t width : {1024, 4096})
    for (const int64_t batch : {1, 64})
      measure<nn::Linear>(fmt::format("Linear {0} x {0}", width),
                          [=] { return std::make_unique<nn::Linear>(width, width); }, {batch, width},
                          std::max<int64_t>(1, (int64_t{1} << 26) / (width * width * batch)));
  for (const int64_t batch : {1, 64})
    measure<nn::Conv2d>("Conv2d 16 to 32, 5x5, 14x14",
                        [] { return std::make_unique<nn::Conv2d>(16, 32, 5, nn::Conv2dOptions{.padding = 2}); },
                        {batch, 16, 14, 14}, batch == 1 ? 100 : 4);
  for (const int64_t batch : {1, 64})
    measure<nn::Conv2d>("Conv2d 64 to 64, 3x3, 28x28",
                        [] { return std::make_unique<nn::Conv2d>(64, 64, 3, nn::Conv2dOptions{.padding = 1}); },
                        {batch, 64, 28, 28}, batch == 1 ? 20 : 1);
  return 0;
}
