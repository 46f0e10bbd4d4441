// A captured step of the CPU: replays give the bits of the same steps without a capture.

#include <levin/autograd/captured_step.h>

#include "support/comparison.h"

#include <levin/autograd/autograd.h>
#include <levin/nn/nn.h>
#include <levin/optim/optim.h>

#include <doctest/doctest.h>

#include <bit>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

using namespace levin;

namespace {

using Bits = std::vector<std::uint64_t>;

Bits bits(const Tensor& t) {
  Bits result;
  for (const double v : t.detach().to_vector<double>()) result.push_back(std::bit_cast<std::uint64_t>(v));
  return result;
}

struct Mlp : nn::Module {
  nn::Linear& fc1 = add<nn::Linear>("fc1", 12, 24);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 24, 5);
  Tensor forward(const Tensor& x) override { return fc2(dropout(relu(fc1(flatten(x, 1))), 0.4, is_training())); }
};

struct Cnn : nn::Module {
  nn::Conv2d& conv1 = add<nn::Conv2d>("conv1", 1, 4, 3, nn::Conv2d::Options{.padding = 1});
  nn::BatchNorm2d& norm = add<nn::BatchNorm2d>("norm", 4);
  nn::Conv2d& conv2 = add<nn::Conv2d>("conv2", 4, 6, 2);
  nn::Linear& fc = add<nn::Linear>("fc", 12, 5);
  Tensor forward(const Tensor& x) override {
    const Tensor h = relu(norm(conv1(x)));                        // (B, 4, 4, 3)
    const Tensor k = max_pool2d(relu(conv2(h)), Tuple<2>{2, 1});  // (B, 6, 1, 2)
    return fc(flatten(k, 1));
  }
};

/// One block of GPT over the 12 values as 4 positions of 3 features.
struct Block : nn::Module {
  nn::Linear& embed = add<nn::Linear>("embed", 3, 16);
  nn::LayerNorm& norm1 = add<nn::LayerNorm>("norm1", Shape{16});
  nn::Linear& qkv = add<nn::Linear>("qkv", 16, 48);
  nn::Linear& out = add<nn::Linear>("out", 16, 16);
  nn::LayerNorm& norm2 = add<nn::LayerNorm>("norm2", Shape{16});
  nn::Linear& up = add<nn::Linear>("up", 16, 64);
  nn::Linear& down = add<nn::Linear>("down", 64, 16);
  nn::Linear& head = add<nn::Linear>("head", 16, 5);
  Tensor forward(const Tensor& given) override {
    Tensor x = embed(given.reshape({-1, 4, 3}));  // (B, 4, 16)
    const auto parts = split(qkv(norm1(x)), 16, -1);
    const auto heads = [](const Tensor& t) { return transpose(t.reshape({-1, 4, 2, 8}), 1, 2); };  // (B, 2, 4, 8)
    const Tensor a = scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]),
                                                  {.dropout_p = is_training() ? 0.1 : 0.0, .is_causal = true});
    x = x + dropout(out(transpose(a, 1, 2).reshape({-1, 4, 16})), 0.1, is_training());
    x = x + down(gelu(up(norm2(x))));
    return head(mean(x, {1}));
  }
};

template <class Net>
std::unique_ptr<nn::Module> make() {
  return std::make_unique<Net>();
}
using Parameters = std::vector<Parameter>;
std::unique_ptr<optim::Optimizer> adam(const Parameters& p) {
  return std::make_unique<optim::Adam>(p, optim::AdamOptions{.lr = 0.02, .weight_decay = 0.01, .capturable = true});
}
std::unique_ptr<optim::Optimizer> adamw(const Parameters& p) {
  return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 0.01, .amsgrad = true, .capturable = true});
}
std::unique_ptr<optim::Optimizer> sgd(const Parameters& p) {
  return std::make_unique<optim::SGD>(
      p, optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .capturable = true});
}

struct Recipe {
  std::function<std::unique_ptr<nn::Module>()> net;
  std::function<std::unique_ptr<optim::Optimizer>(const Parameters&)> optimizer;
  bool scheduled = false;
};

/// A training that begins with the same weights and draws the same batches each time.
class Training {
 public:
  static constexpr int kSteps = 20, kEager = 3;

  explicit Training(Recipe r) : recipe_(std::move(r)) {
    manual_seed(1);
    net = recipe_.net();
    optimizer = recipe_.optimizer(net->parameters());
    if (recipe_.scheduled) schedule.emplace(*optimizer, kSteps);
    manual_seed(7);
  }
  void load(int batch) {
    Generator g(static_cast<std::uint64_t>(100 + batch));
    x.copy_(randn({8, 1, 4, 3}, {.generator = &g}));
    y.copy_(randint(0, 5, {8}, {.generator = &g}));
  }
  void forward_backward() {
    loss = cross_entropy(net->forward(x), y);
    loss.backward();
  }
  void step() {
    optimizer->zero_grad();
    forward_backward();
    optimizer->step();
  }
  Bits weights() const {
    Bits all;
    for (const Parameter& p : net->parameters()) {
      const Bits one = bits(p);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  std::map<std::string, Bits> state() const {
    std::map<std::string, Bits> all;
    for (const auto& [name, t] : net->state_dict()) all[name] = bits(t);
    for (const auto& [name, t] : optimizer->state_dict()) all[name] = bits(t);
    return all;
  }

 private:
  Recipe recipe_;

 public:
  std::unique_ptr<nn::Module> net;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<optim::CosineAnnealingLR> schedule;
  Tensor x = zeros({8, 1, 4, 3}), y = zeros({8}, {.dtype = kInt64}), loss;
};

/// Trains the recipe with and without a capture and compares everything after each step.
void check_replays_are_eager(const Recipe& recipe) {
  Training plain(recipe);
  std::vector<Bits> losses, weights;
  for (int i = 0; i < Training::kSteps; ++i) {
    plain.load(i);
    plain.step();
    if (plain.schedule) plain.schedule->step();
    losses.push_back(bits(plain.loss));
    weights.push_back(plain.weights());
    if (i > 0) CHECK(losses[static_cast<std::size_t>(i)] != losses[static_cast<std::size_t>(i - 1)]);
  }
  Training other(recipe);
  std::optional<CapturedStep> captured;
  for (int i = 0; i < Training::kSteps; ++i) {
    CAPTURE(i);
    other.load(i);
    if (i == Training::kEager) captured.emplace(capture([&] { other.step(); }));
    if (captured && i != Training::kSteps - 2)  // one ordinary step between replays
      captured->replay();
    else
      other.step();
    if (other.schedule) other.schedule->step();
    if (i != Training::kSteps - 1) CHECK(bits(other.loss) == losses[static_cast<std::size_t>(i)]);
    CHECK(other.weights() == weights[static_cast<std::size_t>(i)]);
  }
  CHECK(other.state() == plain.state());
}

}  // namespace

TEST_CASE("captured step: an MLP with dropout and Adam gives the bits of ordinary steps") {
  check_replays_are_eager({.net = make<Mlp>, .optimizer = adam});
}

TEST_CASE("captured step: a convolutional net with batch norm and SGD with momentum gives the bits of ordinary steps") {
  check_replays_are_eager({.net = make<Cnn>, .optimizer = sgd});
}

TEST_CASE("captured step: a GPT block with AdamW and a scheduler gives the bits of ordinary steps") {
  check_replays_are_eager({.net = make<Block>, .optimizer = adamw, .scheduled = true});
}

TEST_CASE("captured step: nothing is computed by the capture, and each replay computes with the inputs of its time") {
  const Tensor x = full({3}, 2.0), sum = zeros({3});
  Tensor y;
  CapturedStep step = capture([&] {
    y = x * 10.0 + 1.0;
    sum.add_(y);
  });
  CHECK(step.kernels() == 3);
  CHECK(bits(sum) == bits(zeros({3})));
  step();
  CHECK(bits(y) == bits(full({3}, 21.0)));
  x.copy_(full({3}, 3.0));
  step.replay();
  CHECK(bits(y) == bits(full({3}, 31.0)));
  CHECK(bits(sum) == bits(full({3}, 52.0)));
}

TEST_CASE("captured step: gradients accumulate over replays, and a step of its own applies them") {
  const Recipe recipe{.net = make<Mlp>, .optimizer = adam};
  const auto close = [](Training& t) {
    t.optimizer->step();
    t.optimizer->zero_grad(/*set_to_none=*/false);
  };
  Training plain(recipe), other(recipe);
  std::optional<CapturedStep> batch, window;
  for (Training* t : {&plain, &other}) {
    manual_seed(3);
    for (int i = 0; i < 12; ++i) {
      t->load(i);
      if (t == &other && i == 3) {
        batch.emplace(capture([&] { other.forward_backward(); }));
        window.emplace(capture([&] { close(other); }));
      }
      t == &other && i >= 3 ? batch->replay() : t->forward_backward();
      if (i % 3 == 2) t == &other && i >= 3 ? window->replay() : close(*t);
    }
  }
  CHECK(other.weights() == plain.weights());
  CHECK(other.state() == plain.state());
}

TEST_CASE("captured step: it keeps the memory of tensors that the program has destroyed") {
  Tensor result;
  std::optional<CapturedStep> step;
  const Tensor x = full({1000}, 2.0);
  {
    const Tensor weight = full({1000}, 3.0);  // destroyed before the replay
    const Tensor list = full({1000}, 4.0);
    step.emplace(capture([&] { result = cat({x * weight, list}); }));
  }
  std::vector<Tensor> others;  // would get that memory if it were free
  for (int i = 0; i < 50; ++i) others.push_back(full({1000}, -1.0));
  step->replay();
  CHECK(bits(result) == bits(cat({full({1000}, 6.0), full({1000}, 4.0)})));
  Training run({.net = make<Mlp>, .optimizer = adam}), same({.net = make<Mlp>, .optimizer = adam});
  std::optional<CapturedStep> training;
  for (Training* t : {&run, &same}) {
    manual_seed(5);
    t->load(0);
    t->step();
    if (t == &run) {
      training.emplace(capture([&] { run.step(); }));
      run.optimizer.reset();
    }
    for (int i = 0; i < 3; ++i) {
      t == &run ? training->replay() : t->step();
      for (int k = 0; k < 20; ++k) others.push_back(full({24, 12}, -1.0));
    }
  }
  CHECK(run.weights() == same.weights());
  for (const Tensor& t : others) CHECK(t.min().item<float>() == -1);
  step.reset();
  CHECK(result.max().item<float>() == 6);  // a result outlives its step
}

TEST_CASE("captured step: tensors that are not alive at the same time share memory") {
  const Tensor x = ones({1 << 16});
  Tensor y;
  const CapturedStep step = capture([&] {
    y = x;
    for (int i = 0; i < 20; ++i) y = y * 2.0 + 1.0;
  });
  CHECK(step.memory() <= 4u << 18);  // three of the 40 tensors of 256 KiB
  CapturedStep same = capture([&] {
    y = x;
    for (int i = 0; i < 20; ++i) y = y * 2.0 + 1.0;
  });
  same();
  CHECK(y[0].item<double>() == 2097151.0);
}

TEST_CASE("captured step: two captured steps in turn draw from one sequence of random numbers") {
  const auto draw = [](bool captured) {
    manual_seed(11);
    const Tensor a = zeros({40}), b = zeros({7});
    const auto first = [&] { a.copy_(dropout(ones({40}), 0.5)); };
    const auto second = [&] { b.copy_(rand({7}) + randn({7})); };
    std::optional<CapturedStep> one, two;
    if (captured) {
      one.emplace(capture(first));
      two.emplace(capture(second));
    }
    Bits all;
    for (int i = 0; i < 4; ++i) {
      captured ? one->replay() : first();
      captured ? two->replay() : second();
      if (i == 2) manual_seed(12);
      for (const Tensor& t : {a, b, rand({3})}) {
        const Bits more = bits(t);
        all.insert(all.end(), more.begin(), more.end());
      }
    }
    return all;
  };
  CHECK(draw(true) == draw(false));
}

TEST_CASE("captured step: a replay after load_state_dict continues from the loaded state") {
  const Recipe recipe{.net = make<Cnn>, .optimizer = sgd};
  Training run(recipe), same(recipe);
  std::optional<CapturedStep> step;
  for (Training* t : {&run, &same}) {
    StateDict net, optimizer;
    for (int i = 0; i < 9; ++i) {
      t->load(i);
      if (i == 2) {
        for (const auto& [name, value] : t->net->state_dict()) net.set(name, value.clone());
        for (const auto& [name, value] : t->optimizer->state_dict()) optimizer.set(name, value.clone());
      }
      if (i == 6) {
        t->net->load_state_dict(net);
        t->optimizer->load_state_dict(optimizer);
      }
      if (t == &run && i == 3) step.emplace(capture([&] { run.step(); }));
      t == &run && i >= 3 ? step->replay() : t->step();
    }
  }
  CHECK(run.weights() == same.weights());
  CHECK(run.state() == same.state());
}

namespace {

/// Captures f and returns the message of its exception; afterwards ordinary work and captures go on.
std::string refused(const std::function<void()>& f) {
  std::string text = "nothing";
  try {
    static_cast<void>(capture(f));
  } catch (const Error& e) {
    text = e.what();
  }
  const Tensor x = ones({4});
  CHECK((x + 1.0).sum().item<float>() == 8);
  CapturedStep step = capture([&] { x.add_(1); });
  step();
  CHECK(x.sum().item<float>() == 8);
  return text;
}

}  // namespace

TEST_CASE("captured step: what needs values now is refused by its name") {
  const std::string later = "a captured step computes only when it is replayed, so ";
  const Tensor x = ones({4}), mask = x > 0.0;
  const std::string item = "[item] " + later + "no number can be read now. Read it after a replay.";
  CHECK(refused([&] { static_cast<void>((x * 2.0).sum().item<float>()); }) == item);
  CHECK(refused([&] { static_cast<void>(allclose(x, x)); }) == item);
  const std::string vector = "[to_vector] " + later + "no values can be read or printed now. Read them after a replay.";
  CHECK(refused([&] { static_cast<void>(x.to_vector<float>()); }) == vector);
  CHECK(refused([&] {
          std::ostringstream out;
          out << x;
        }) == vector);
  CHECK(refused([&] { static_cast<void>(masked_select(x, mask)); }).find(later) != std::string::npos);
  CHECK(refused([&] { static_cast<void>(nonzero(x)); }).find(later) != std::string::npos);
  CHECK(refused([&] { static_cast<void>(x.data<float>()); }) ==
        "[data] " + later + "its values cannot be read or written by the host now. Do it between replays.");
  CHECK(refused([&] { static_cast<void>(tensor({1.0f, 2.0f})); }) ==
        "[from_data] " + later +
            "the host's values would be lost. Create the tensor before the capture, or fill it by full().");
  CHECK(refused([&] { static_cast<void>(linalg::inv(ones({2, 2}))); }) ==
        "[linalg] " + later + "a factorization, which the host computes, cannot be part of it.");
  CHECK(refused([&] { static_cast<void>(capture([] {})); }) ==
        "[capture] " + later + "no other capture can begin now. End this one first.");
  CapturedStep other = capture([&] { x.add_(0); });
  CHECK(refused([&] { other.replay(); }) ==
        "[capture] " + later + "another one cannot be replayed now. Replay it before or after the capture.");
  struct Own {};
  CHECK_THROWS_AS(static_cast<void>(capture([&] {
                    x.add_(1);
                    throw Own{};
                  })),
                  Own);
  CHECK(x.sum().item<float>() == 4);
}

TEST_CASE("captured step: an optimizer needs capturable, existing state and unchanged settings") {
  const auto plain = [](const Parameters& p) -> std::unique_ptr<optim::Optimizer> {
    return std::make_unique<optim::Adam>(p);
  };
  Training host({.net = make<Mlp>, .optimizer = plain});
  host.step();
  CHECK(refused([&] { host.step(); }) ==
        "[Adam] a step with its number and learning rate on the host cannot be captured into a graph. "
        "Set capturable = true.");
  Training run({.net = make<Mlp>, .optimizer = adam});
  CHECK(refused([&] { run.step(); }) ==
        "[Adam] the state of \"fc1.weight\" would be made by the graph, and anew by each replay. Run a step before "
        "the capture.");
  run.step();
  CapturedStep step = capture([&] { run.step(); });
  auto& settings = run.optimizer->param_groups()[0];
  settings["beta1"] = 0.5;
  const Bits before = run.weights();
  CHECK_THROWS_WITH_AS(step(),
                       "[Adam] beta1 is 0.5 now and was 0.9 at the capture, of which only lr may change. Set it back, "
                       "or capture again.",
                       ValueError);
  CHECK(run.weights() == before);
  settings["beta1"] = 0.9;
  step();
  CHECK(run.weights() != before);
}

TEST_CASE("captured step: a label out of range is found by the replay, after which it can be replayed again") {
  Training run({.net = make<Mlp>, .optimizer = adam});
  run.load(0);
  run.step();
  CapturedStep step = capture([&] { run.step(); });
  run.y.fill_(5);
  CHECK_THROWS_AS(step(), IndexError);
  run.load(1);
  step();
  CHECK(run.loss.item<float>() > 0);
}
