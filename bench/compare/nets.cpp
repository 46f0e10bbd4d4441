// Levin's side of the comparison of nets. Nets, inputs and output match bench/peers/torch_train.py.
// usage: levin_compare_nets NET [--inference B] [--threads N] [--steps N] [--init FILE] [--capture] [--mean]
//                           [--profile GFLOP/S GB/S]
// NET is mlp, lenet, cnn, dcgan, gpt, resnet18, vit or lstm. --inference runs forward passes of B samples in evaluation
// mode instead of training steps; of dcgan it runs the generator. --init names the safetensors file with initial
// weights and inputs that the other side wrote. With --capture the steps from the fifth on are replays of a captured
// step, and the memory that it planned is printed too. --mean reports the mean step instead of the median, which leaves
// out the time that other programs take. --profile prints where the time of a step goes, on a machine of these rates.

#include <levin/levin.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>

#include "nets.h"
#include "profile.h"

using namespace levin;

namespace {

constexpr int kWarmUp = 8;

struct Options {
  std::string net = "mlp";
  int steps = 60;
  int64_t inference = 0;  ///< samples of a forward pass; 0 trains
  std::string init;
  bool capture = false;
  bool mean = false;
  bench::Rates profile;  ///< the machine's rates; 0 prints no profile
};

/// Provides the weights and inputs that the other side wrote, or without a file random ones of the same shapes.
class Start {
 public:
  explicit Start(const std::string& file) {
    if (!file.empty()) tensors_ = interop::load_safetensors(file).tensors;
  }
  Tensor input(const std::string& name, const std::function<Tensor()>& otherwise) const {
    const Tensor* found = tensors_.find("input." + name);
    return found ? *found : otherwise();
  }
  void fill(nn::Module& net, const std::string& prefix = "") const {
    if (!tensors_.empty()) net.load_state_dict(tensors_.sub(prefix), {.strict = !prefix.empty()});
  }
  /// Frees the tensors of the file. The nets have copied their weights, and the other side does not read the file.
  void release() { tensors_ = {}; }

 private:
  StateDict tensors_;
};

/// Multiplies matrices for a third of a second: a process of 60 steps ends before an idle processor has raised its
/// clock, and the other side has done so while it imported its libraries.
void raise_the_clock() {
  using Clock = std::chrono::steady_clock;
  const Tensor x = full({256, 256}, 1.0f);
  const auto start = Clock::now();
  while (Clock::now() - start < std::chrono::duration<double>(1.0 / 3)) matmul(x, x);
}

/// Times `step`, which returns the loss or an output; `load` prepares the inputs of a step, which a captured one then
/// reads.
void report(
    const Options& o, double items, const std::function<Tensor()>& step,
    const std::function<void(int)>& load = [](int) {}) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds, losses;
  std::optional<CapturedStep> captured;
  Tensor loss;
  raise_the_clock();
  for (int i = 0; i < kWarmUp + o.steps; ++i) {
    if (o.capture && i == 4) captured.emplace(capture([&] { loss = step(); }));
    const auto start = Clock::now();
    load(i);
    if (captured)
      captured->replay();
    else
      loss = step();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    losses.push_back((o.inference > 0 ? mean(loss * loss) : loss).item<double>());
  }
  std::vector<double> timed(seconds.begin() + kWarmUp, seconds.end());
  std::ranges::sort(timed);
  const double median = (timed[timed.size() / 2] + timed[(timed.size() - 1) / 2]) / 2;
  const double average = std::accumulate(timed.begin(), timed.end(), 0.0) / static_cast<double>(timed.size());
  const double step_time = o.mean ? average : median;
  const double mean_loss = std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
  std::printf("%-6s %12.0f items/s %9.3f ms/step  loss %.6f\n", o.net.c_str(), items / step_time, step_time * 1e3,
              mean_loss);
  if (o.profile.flops > 0) {
    bench::StepProfile profile;
    for (int i = 0; i < o.steps; ++i) load(i), step();
    profile.print(o.steps, step_time, o.profile);
  }
  if (captured)
    std::printf("       %zu kernels, %.1f MiB of memory\n", captured->kernels(),
                static_cast<double>(captured->memory()) / 1048576);
}

void infer(const Options& o, nn::Module& net, const Tensor& x, double items) {
  net.eval();
  const inference_mode guard;
  report(o, items, [&] { return net(x); });
}

/// Trains a net on x of `sizes`, (B, C, H, W) for images or (B, T) for tokens, with labels y, or runs it on x.
template <class Optimizer>
void supervised(const Options& o, nn::Module& net, const Shape& sizes, int64_t classes, double lr) {
  Start start(o.init);
  start.fill(net);
  const bool tokens = sizes.size() == 2;
  Shape own = sizes;
  if (o.inference > 0) own[0] = o.inference;
  const Tensor x = start.input("x", [&] { return tokens ? randint(0, classes, own) : randn(own); });
  const auto items = static_cast<double>(tokens ? own.numel() : own[0]);
  if (o.inference > 0) return infer(o, net, x, items);
  const Tensor y = start.input("y", [&] { return randint(0, classes, tokens ? own : Shape{own[0]}); });
  start.release();
  Optimizer optimizer(net.parameters(), {.lr = lr, .capturable = o.capture});
  report(o, items, [&] {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(net(x).view({-1, classes}), y.view({-1}));
    loss.backward();
    optimizer.step();
    return loss.detach();
  });
}

void classifier(const Options& o, nn::Module& net, const Shape& sizes) {
  supervised<optim::Adam>(o, net, sizes, 10, 1e-3);
}

void language_model(const Options& o, nn::Module& net, const Shape& sizes) {
  supervised<optim::AdamW>(o, net, sizes, 256, 3e-4);
}

void mlp(const Options& o) {
  nn::Sequential net = bench::make_mlp();
  classifier(o, net, {128, 1, 28, 28});
}

void lenet(const Options& o) {
  nn::Sequential net = bench::make_lenet();
  classifier(o, net, {128, 1, 28, 28});
}

void cnn(const Options& o) {
  nn::Sequential net = bench::make_cnn();
  classifier(o, net, {128, 1, 28, 28});
}

void resnet18(const Options& o) {
  nn::Sequential net = bench::make_resnet18();
  classifier(o, net, {32, 3, 32, 32});
}

void vit(const Options& o) {
  bench::Vit net;
  classifier(o, net, {32, 3, 32, 32});
}

void gpt(const Options& o) {
  bench::Gpt net;
  language_model(o, net, {8, 128});
}

void lstm(const Options& o) {
  bench::Recurrent net;
  language_model(o, net, {32, 64});
}

void dcgan(const Options& o) {
  nn::Sequential g = bench::make_generator(), d = bench::make_discriminator();
  Start start(o.init);
  start.fill(g, "g.");
  start.fill(d, "d.");
  if (o.inference > 0) {
    const Tensor x = start.input("x", [&] { return randn({o.inference, 100, 1, 1}); });  // (B, 100, 1, 1)
    return infer(o, g, x, static_cast<double>(o.inference));
  }
  const Tensor real = start.input("real", [] { return randn({64, 1, 28, 28}); });  // (64, 1, 28, 28)
  const Tensor z = start.input("z", [&] {
    return randn({kWarmUp + o.steps, 64, 100, 1, 1});
  });  // (steps, 64, 100, 1, 1)
  start.release();
  optim::Adam g_optimizer(g.parameters(), {.lr = 2e-4, .betas = {0.5, 0.999}, .capturable = o.capture});
  optim::Adam d_optimizer(d.parameters(), {.lr = 2e-4, .betas = {0.5, 0.999}, .capturable = o.capture});
  const Tensor noise = empty({64, 100, 1, 1});
  const auto step = [&] {
    const Tensor fake = g(noise);
    d_optimizer.zero_grad();
    const Tensor d_loss = bce_with_logits(d(real), 1.0f) + bce_with_logits(d(fake.detach()), 0.0f);
    d_loss.backward();
    d_optimizer.step();
    g_optimizer.zero_grad();
    d.requires_grad_(false);  // the generator's step needs no gradient of d's weights
    const Tensor g_loss = bce_with_logits(d(fake), 1.0f);
    g_loss.backward();
    g_optimizer.step();
    d.requires_grad_(true);
    return (d_loss + g_loss).detach();
  };
  report(o, 64, step, [&](int i) { noise.copy_(z[i]); });
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--threads" && i + 1 < argc) {
      set_num_threads(std::atoi(argv[++i]));
    } else if (argument == "--steps" && i + 1 < argc) {
      o.steps = std::atoi(argv[++i]);
    } else if (argument == "--inference" && i + 1 < argc) {
      o.inference = std::atoi(argv[++i]);
    } else if (argument == "--init" && i + 1 < argc) {
      o.init = argv[++i];
    } else if (argument == "--profile" && i + 2 < argc) {
      o.profile.flops = 1e9 * std::atof(argv[++i]);
      o.profile.bytes = 1e9 * std::atof(argv[++i]);
    } else if (argument == "--capture") {
      o.capture = true;
    } else if (argument == "--mean") {
      o.mean = true;
    } else {
      o.net = argument;
    }
  }
  const std::pair<const char*, void (*)(const Options&)> nets[] = {
      {"mlp", mlp}, {"lenet", lenet},       {"cnn", cnn}, {"dcgan", dcgan},
      {"gpt", gpt}, {"resnet18", resnet18}, {"vit", vit}, {"lstm", lstm}};
  try {
    manual_seed(0);
    for (const auto& [name, run] : nets)
      if (o.net == name) {
        run(o);
        return 0;
      }
    std::fprintf(stderr, "error: %s is none of mlp, lenet, cnn, dcgan, gpt, resnet18, vit, lstm\n", o.net.c_str());
    return 2;
  } catch (const Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
