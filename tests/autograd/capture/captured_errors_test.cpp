// Work that cannot be captured or replayed is refused by its name, and everything stays usable.

#include "autograd/capture/captured_training.h"
#include "support/files.h"

using namespace levin;
using namespace levin::test;
using namespace levin::test::capturing;

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

// docs/captured_steps.md shows these lines; the test below compares and runs them.
// clang-format off
namespace page {

// begin of the page's program
struct Net : nn::Module {
  nn::Linear& fc1 = add<nn::Linear>("fc1", 16, 32);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 32, 4);
  Tensor forward(const Tensor& x) override { return fc2(dropout(tanh(fc1(x)), 0.1, is_training())); }
};

float train(int steps, Device device) {
  manual_seed(1);
  Net net;
  net.to(device);
  optim::Adam opt(net.parameters(), {.lr = 1e-2, .capturable = true});
  optim::CosineAnnealingLR schedule(opt, steps);
  const Tensor x = zeros({8, 16}, {.device = device});                      // the inputs that the step reads
  const Tensor y = zeros({8}, {.dtype = kInt64, .device = device});
  Tensor loss;
  const auto work = [&] {
    opt.zero_grad();
    loss = cross_entropy(net(x), y);
    loss.backward();
    opt.step();
  };
  std::optional<CapturedStep> step;
  for (int i = 0; i < steps; ++i) {
    const Tensor batch = randn({8, 16});
    x.copy_(batch);
    y.copy_(argmax(batch.narrow(1, 0, 4), 1));
    if (i == 3) step.emplace(capture(work));
    if (step) step->replay(); else work();
    schedule.step();
  }
  return loss.item<float>();
}
// end of the page's program

}  // namespace page
// clang-format on

TEST_CASE("captured step: the program on the page about captured steps compiles and learns") {
  const std::string shown = test::program_of_page("docs/captured_steps.md");
  CHECK(shown.size() > 500);
  CHECK(shown == test::marked_program("tests/autograd/capture/captured_errors_test.cpp"));
  CHECK(page::train(40, kCpu) < 1.0f);
}
