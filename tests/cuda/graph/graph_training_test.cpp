// A training step that is captured once and replayed gives the eager run's weights bit for bit.

#include "cuda/gate.h"
#include "cuda/graph/graph_run.h"

#include <levin/autograd/captured_step.h>
#include <levin/autograd/ops.h>

#include <doctest/doctest.h>

#include <functional>
#include <optional>

using namespace levin;
using namespace levin::test;

namespace {

std::unique_ptr<optim::Optimizer> adam(const std::vector<Parameter>& p) {
  return std::make_unique<optim::Adam>(p, optim::AdamOptions{.lr = 0.02, .weight_decay = 0.01, .capturable = true});
}
std::unique_ptr<optim::Optimizer> adamw(const std::vector<Parameter>& p) {
  return std::make_unique<optim::AdamW>(
      p, optim::AdamWOptions{.lr = 0.02, .weight_decay = 0.1, .amsgrad = true, .capturable = true});
}
std::unique_ptr<optim::Optimizer> sgd(const std::vector<Parameter>& p) {
  return std::make_unique<optim::SGD>(
      p, optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true, .capturable = true});
}

}  // namespace

TEST_CASE("graph: a replayed step of an MLP with dropout gives the eager run's weights") {
  for (const auto optimizer : {adam, adamw, sgd}) check_replays_are_eager({.net = make<Mlp>, .optimizer = optimizer});
}

TEST_CASE("graph: a replayed step of a convolutional net gives the eager run's weights and statistics") {
  check_replays_are_eager({.net = make<Cnn>, .optimizer = adamw});
}

TEST_CASE("graph: replays follow a schedule and values set by hand") {
  for (const auto optimizer : {adam, adamw, sgd}) {
    check_replays_are_eager({.net = make<Mlp>, .optimizer = optimizer, .before_step = [](TrainingRun& run, int i) {
                               static std::optional<optim::CosineAnnealingLR> schedule;
                               if (i == 0) schedule.emplace(*run.optimizer, 20);
                               if (i > 0) schedule->step();
                               if (i == 6) run.optimizer->param_groups()[0]["lr"] = 0.003;
                             }});
  }
}

TEST_CASE("graph: a seed set between replays acts as between eager steps") {
  check_replays_are_eager({.net = make<Mlp>, .optimizer = adam, .before_step = [](TrainingRun&, int i) {
                             if (i == 5) manual_seed(99);
                           }});
}

TEST_CASE("graph: with autocast and GradScaler an overflow in a replay halves the scale and skips the step") {
  for (const auto optimizer : {adamw, sgd}) {
    for (const int bad : {0, 5}) {  // also the very first step, which leaves no momentum
      const Recipe recipe{.net = make<Mlp>,
                          .optimizer = optimizer,
                          .before_step =
                              [bad](TrainingRun& run, int i) {
                                if (i == bad) run.x.fill_(1e30);
                              },
                          .scaled = true};
      const Outcome o = check_replays_are_eager(recipe);
      for (std::size_t i = 1; i < o.scales.size(); ++i) {
        CHECK(o.scales[i] == (static_cast<int>(i) == bad ? o.scales[i - 1] / 2 : o.scales[i - 1]));
        CHECK((o.weights[i] == o.weights[i - 1]) == (static_cast<int>(i) == bad));
      }
      CHECK(o.scales.back() == 32768);
    }
  }
}

TEST_CASE("graph: a cast cached by autocast is used neither from a capture nor in one") {
  const autocast round_it_all(kHalf);  // casts are cached until it ends
  const auto cast_before_capture = [](TrainingRun& run, int i) {
    if (i == TrainingRun::kEager) run.net->forward(run.x);
  };
  check_replays_are_eager({make<Mlp>, sgd, cast_before_capture, true});
}

TEST_CASE("graph: capturable steps match ordinary ones bit for bit, and switching between them keeps the count") {
  const auto plain = [](const std::vector<Parameter>& p) -> std::unique_ptr<optim::Optimizer> {
    return std::make_unique<optim::Adam>(p, optim::AdamOptions{.lr = 0.02, .weight_decay = 0.01});
  };
  const auto overflow = [](TrainingRun& run, int i) {
    if (i == 2) run.x.fill_(1e30);
  };
  const auto switching = [overflow](TrainingRun& run, int i) {
    overflow(run, i);
    if (i == 1 || i == 5) run.optimizer->param_groups()[0]["capturable"] = i == 1;
  };
  const Outcome expected = TrainingRun({make<Mlp>, plain, overflow, true}).go(false);
  const Outcome capturable = TrainingRun({make<Mlp>, adam, overflow, true}).go(false);
  const Outcome switched = TrainingRun({make<Mlp>, plain, switching, true}).go(false);
  CHECK(capturable.weights == expected.weights);
  CHECK(switched.weights == expected.weights);
  CHECK(switched.state.at("state.fc1.weight.step") == expected.state.at("state.fc1.weight.step"));
  CHECK(capturable.state.at("state.fc1.weight.step") == expected.state.at("state.fc1.weight.step"));
}

TEST_CASE("graph: alternating steps of two networks match two eager runs") {
  // Both use one generator, so the order of the steps matters.
  const auto run_two = [](bool graphed) {
    TrainingRun a({.net = make<Mlp>, .optimizer = adam}), b({.net = make<Mlp>, .optimizer = sgd});
    cuda::Graph of_a, of_b;
    manual_seed(21);
    for (int i = 0; i < 8; ++i) {
      for (TrainingRun* run : {&a, &b}) run->load(i);
      if (!graphed || i < 2) {
        a.step();
        b.step();
        continue;
      }
      if (i == 2) {
        of_a.capture([&] { a.step(); });
        of_b.capture([&] { b.step(); });
      }
      of_a.replay();
      of_b.replay();
    }
    return std::pair(a.weights(), b.weights());
  };
  CHECK(run_two(true) == run_two(false));
}

TEST_CASE("graph: queued replays use the learning rate and the numbers of their own step" *
          LEVIN_HOLDS_A_STREAM) {
  const auto run = [](bool graphed) {
    TrainingRun r({.net = make<Mlp>, .optimizer = adam});
    manual_seed(22);
    for (int i = 0; i < 2; ++i) {
      r.load(i);
      r.step();
    }
    cuda::Graph graph;
    if (graphed) graph.capture([&] { r.step(); });
    cuda::synchronize();
    {
      Gate gate(static_cast<cudaStream_t>(cuda::current_stream().handle()));
      for (int i = 0; i < 4; ++i) {
        r.optimizer->param_groups()[0]["lr"] = 0.01 * (1 + i);
        if (graphed)
          graph.replay();
        else
          r.step();
      }
    }
    return r.weights();
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("graph: gradients that are not reset in the capture accumulate in place") {
  TrainingRun eager({.net = make<Mlp>, .optimizer = sgd}), graphed({.net = make<Mlp>, .optimizer = sgd});
  for (TrainingRun* r : {&eager, &graphed}) {
    manual_seed(23);
    r->load(0);
    r->forward_backward();
    cuda::Graph graph;
    if (r == &graphed) graph.capture([&] { r->forward_backward(); });
    for (int i = 1; i < 4; ++i) {
      r->load(i);
      if (r == &graphed)
        graph.replay();
      else
        r->forward_backward();
    }
    r->optimizer->step();
  }
  CHECK(eager.weights() == graphed.weights());
}

TEST_CASE("graph: replays allocate no memory") {
  TrainingRun r({.net = make<Mlp>, .optimizer = adamw});
  r.load(0);
  for (int i = 0; i < 2; ++i) r.step();
  cuda::Graph graph;
  graph.capture([&] { r.step(); });
  graph.replay();
  const cuda::MemoryReport before = cuda::memory_stats();
  for (int i = 0; i < 5; ++i) graph.replay();
  const cuda::MemoryReport after = cuda::memory_stats();
  CHECK(after.allocated == before.allocated);
  CHECK(after.system_allocations == before.system_allocations);
}

TEST_CASE("graph: the next replay continues from a loaded state") {
  TrainingRun r({.net = make<Mlp>, .optimizer = adamw});
  manual_seed(24);
  r.load(0);
  for (int i = 0; i < 3; ++i) r.step();
  StateDict weights, state;
  for (const auto& [name, t] : r.net->state_dict()) weights.set(name, t.clone());
  for (const auto& [name, t] : r.optimizer->state_dict()) state.set(name, t.clone());
  cuda::Graph graph;
  graph.capture([&] { r.step(); });
  const GeneratorState here = default_generator().state();
  const auto replay_twice = [&] {
    for (int i = 0; i < 2; ++i) graph.replay();
    return r.weights();
  };
  const Bits expected = replay_twice();
  r.net->load_state_dict(weights);
  r.optimizer->load_state_dict(state);
  default_generator().set_state(here);
  CHECK(replay_twice() == expected);
}

TEST_CASE("graph: capture() records a step on the device by a graph, and one on the CPU beside it") {
  const Recipe recipe{.net = make<Mlp>, .optimizer = adam};
  TrainingRun eager(recipe), run(recipe);
  std::optional<CapturedStep> step;
  for (TrainingRun* r : {&eager, &run}) {
    manual_seed(7);
    for (int i = 0; i < 7; ++i) {
      r->load(i);
      if (r == &run && i == 3) step.emplace(capture([&] { run.step(); }));
      r == &run && i >= 3 ? step->replay() : r->step();
    }
  }
  CHECK(run.weights() == eager.weights());
  CHECK(bits(run.loss) == bits(eager.loss));
  CHECK(step->kernels() == 0);  // on the CPU
  const Tensor x = ones({3});
  CapturedStep host = capture([&] { x.add_(1); });
  CHECK(x.sum().item<float>() == 3);
  host();
  CHECK(x.sum().item<float>() == 6);
}
