// A captured step of the CPU: replays give the bits of the same steps without a capture.

#include "autograd/capture/allocations.h"
#include "autograd/capture/captured_training.h"

#include <levin/core/allocator.h>

using namespace levin;
using namespace levin::test;
using namespace levin::test::capturing;

namespace {

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

TEST_CASE("captured step: padding by reflection and index expressions give the bits of ordinary steps") {
  check_replays_are_eager({.net = make<Padded>, .optimizer = adam});
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
    manual_seed(7);  // of the dropout
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

TEST_CASE("captured step: a replay of a small network's training step allocates nothing") {
  nn::Sequential net(nn::Linear(16, 32), nn::Tanh(), nn::Linear(32, 16));
  const Tensor x = randn({1, 16}), target = randn({1, 16});
  optim::Adam optimizer(net.parameters(), {.capturable = true});
  const auto work = [&] {
    optimizer.zero_grad();
    mse_loss(net(x), target).backward();
    optimizer.step();
  };
  work();
  CapturedStep step = capture(work);
  step();  // the kernels' scratch memory grows once
  const Bits before = bits(net.parameters()[0]);
  const std::size_t count = test::allocations(), blocks = cpu_allocator::stats().system_allocations;
  for (int i = 0; i < 100; ++i) step();
  CHECK(test::allocations() == count);
  CHECK(cpu_allocator::stats().system_allocations == blocks);
  CHECK(bits(net.parameters()[0]) != before);
  CHECK(test::allocations() > count);  // the count works
}
