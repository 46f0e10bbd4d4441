// Levin's side of the training comparison. Nets, inputs and output match bench/peers/torch_train.py.
// usage: levin_compare_nets mlp|lenet|cnn|dcgan|gpt [--threads N] [--steps N] [--init FILE] [--capture] [--mean]
// --init names the safetensors file with initial weights and inputs that the other side wrote. With --capture
// the steps from the fifth on are replays of a captured step, and the memory that it planned is printed too. --mean
// reports the mean step instead of the median, which leaves out the time that other programs take.

#include <levin/levin.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>

#include "classifiers.h"

using namespace levin;

namespace {

constexpr int kWarmUp = 8;

struct Options {
  std::string net = "mlp";
  int steps = 60;
  std::string init;
  bool capture = false;
  bool mean = false;
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

 private:
  StateDict tensors_;
};

/// Trains; `load` prepares the inputs of a step, which a captured one then reads.
void report(const Options& o, double items, const std::function<Tensor()>& step,
            const std::function<void(int)>& load = [](int) {}) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds, losses;
  std::optional<CapturedStep> captured;
  Tensor loss;
  for (int i = 0; i < kWarmUp + o.steps; ++i) {
    if (o.capture && i == 4) captured.emplace(capture([&] { loss = step(); }));
    const auto start = Clock::now();
    load(i);
    if (captured)
      captured->replay();
    else
      loss = step();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    losses.push_back(loss.item<double>());
  }
  std::vector<double> timed(seconds.begin() + kWarmUp, seconds.end());
  std::ranges::sort(timed);
  const double median = (timed[timed.size() / 2] + timed[(timed.size() - 1) / 2]) / 2;
  const double mean = std::accumulate(timed.begin(), timed.end(), 0.0) / static_cast<double>(timed.size());
  const double step_time = o.mean ? mean : median;
  const double mean_loss = std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
  std::printf("%-6s %12.0f items/s %9.3f ms/step  loss %.6f\n", o.net.c_str(), items / step_time, step_time * 1e3,
              mean_loss);
  if (captured)
    std::printf("       %zu kernels, %.1f MiB of memory\n", captured->kernels(),
                static_cast<double>(captured->memory()) / 1048576);
}

void train_classifier(const Options& o, nn::Module& net) {
  const Start start(o.init);
  start.fill(net);
  const Tensor x = start.input("x", [] { return randn({128, 1, 28, 28}); });  // (128, 1, 28, 28)
  const Tensor y = start.input("y", [] { return randint(0, 10, {128}); });    // (128)
  optim::Adam optimizer(net.parameters(), {.lr = 1e-3, .capturable = o.capture});
  report(o, 128, [&] {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    optimizer.step();
    return loss.detach();
  });
}

void mlp(const Options& o) {
  nn::Sequential net = bench::make_mlp();
  train_classifier(o, net);
}

void lenet(const Options& o) {
  nn::Sequential net = bench::make_lenet();
  train_classifier(o, net);
}

void cnn(const Options& o) {
  nn::Sequential net = bench::make_cnn();
  train_classifier(o, net);
}

void dcgan(const Options& o) {
  nn::Sequential g(nn::ConvTranspose2d(100, 256, 7, {.bias = false}), nn::BatchNorm2d(256), nn::ReLU(),
                   nn::ConvTranspose2d(256, 128, 4, {.stride = 2, .padding = 1, .bias = false}), nn::BatchNorm2d(128),
                   nn::ReLU(), nn::ConvTranspose2d(128, 1, 4, {.stride = 2, .padding = 1}), nn::Tanh());
  nn::Sequential d(nn::Conv2d(1, 64, 4, {.stride = 2, .padding = 1}), nn::LeakyReLU(0.2),
                   nn::Conv2d(64, 128, 4, {.stride = 2, .padding = 1, .bias = false}), nn::BatchNorm2d(128),
                   nn::LeakyReLU(0.2), nn::Flatten(), nn::Linear(128 * 49, 1));
  const Start start(o.init);
  start.fill(g, "g.");
  start.fill(d, "d.");
  const Tensor real = start.input("real", [] { return randn({64, 1, 28, 28}); });  // (64, 1, 28, 28)
  const Tensor z = start.input("z", [&] {
    return randn({kWarmUp + o.steps, 64, 100, 1, 1});
  });  // (steps, 64, 100, 1, 1)
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

struct Block : nn::Module {
  explicit Block(int64_t width, int64_t heads_) : channels(width), heads(heads_) {}
  int64_t channels, heads;
  nn::LayerNorm& l1 = add<nn::LayerNorm>("l1", channels);
  nn::LayerNorm& l2 = add<nn::LayerNorm>("l2", channels);
  nn::Linear& qkv = add<nn::Linear>("qkv", channels, 3 * channels);
  nn::Linear& o = add<nn::Linear>("o", channels, channels);
  nn::Sequential& m =
      add<nn::Sequential>("m", nn::Linear(channels, 4 * channels), nn::GELU(), nn::Linear(4 * channels, channels));

  Tensor forward(const Tensor& x) override {
    const int64_t batch = x.size(0), length = x.size(1);
    const auto parts = qkv(l1(x)).view({batch, length, 3, heads, channels / heads}).permute({2, 0, 3, 1, 4}).unbind(0);
    // (B, H, T, C / H)
    const Tensor y = scaled_dot_product_attention(parts[0], parts[1], parts[2], {.is_causal = true});
    const Tensor h = x + o(y.transpose(1, 2).reshape({batch, length, channels}));
    return h + m(l2(h));
  }
};

struct Gpt : nn::Module {
  nn::Embedding& te = add<nn::Embedding>("te", 256, 192);
  nn::Embedding& pe = add<nn::Embedding>("pe", 128, 192);
  nn::Sequential& b = add<nn::Sequential>("b", Block(192, 6), Block(192, 6), Block(192, 6), Block(192, 6));
  nn::LayerNorm& n = add<nn::LayerNorm>("n", 192);
  nn::Linear& h = add<nn::Linear>("h", 192, 256, nn::LinearOptions{.bias = false});

  Tensor forward(const Tensor& i) override { return h(n(b(te(i) + pe(arange(i.size(1)))))); }  // (B, T) to (B, T, 256)
};

void gpt(const Options& o) {
  Gpt net;
  const Start start(o.init);
  start.fill(net);
  const Tensor x = start.input("x", [] { return randint(0, 256, {8, 128}); });  // (8, 128)
  const Tensor y = start.input("y", [] { return randint(0, 256, {8, 128}); });  // (8, 128)
  optim::AdamW optimizer(net.parameters(), {.lr = 3e-4, .capturable = o.capture});
  report(o, 8 * 128, [&] {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(net(x).view({-1, 256}), y.view({-1}));
    loss.backward();
    optimizer.step();
    return loss.detach();
  });
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
    } else if (argument == "--init" && i + 1 < argc) {
      o.init = argv[++i];
    } else if (argument == "--capture") {
      o.capture = true;
    } else if (argument == "--mean") {
      o.mean = true;
    } else {
      o.net = argument;
    }
  }
  const std::pair<const char*, void (*)(const Options&)> nets[] = {
      {"mlp", mlp}, {"lenet", lenet}, {"cnn", cnn}, {"dcgan", dcgan}, {"gpt", gpt}};
  try {
    manual_seed(0);
    for (const auto& [name, run] : nets)
      if (o.net == name) {
        run(o);
        return 0;
      }
    std::fprintf(stderr, "error: %s is none of mlp, lenet, cnn, dcgan, gpt\n", o.net.c_str());
    return 2;
  } catch (const Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
