// Operations that cannot be captured or replayed: one sentence, the capture ends, and the process continues.

#include "cuda/graph/graph_run.h"
#include "support/files.h"

using namespace levin;
using namespace levin::test;

namespace {

struct Line : nn::Module {
  nn::Linear& fc = add<nn::Linear>("fc", 12, 5);
  Tensor forward(const Tensor& x) override { return fc(flatten(x, 1)); }
};

std::unique_ptr<nn::Module> line() { return std::make_unique<Line>(); }

template <class O>
Recipe recipe(const typename O::Options& options) {
  return {.net = line, .optimizer = [options](const std::vector<Parameter>& p) -> std::unique_ptr<optim::Optimizer> {
            return std::make_unique<O>(p, options);
          }};
}

/// Captures f and returns the message of its exception. Afterwards no capture is active and work continues.
std::string refused(const std::function<void()>& f) {
  cuda::Graph graph;
  std::string text = "nothing";
  try {
    graph.capture(f);
  } catch (const Error& e) {
    text = e.what();
  }
  CHECK(!cuda::is_current_stream_capturing());
  CHECK_THROWS_AS(graph.replay(), DeviceError);
  const Tensor x = ones({4}, {.device = cuda(0)});
  CHECK((x + 1).sum().item<float>() == 8);
  graph.capture([&] { x.add_(1); });
  graph.replay();
  CHECK(x.sum().item<float>() == 8);
  return text;
}

bool says(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CAPTURE(part);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("graph: an operation that waits for the device, or a copy to or from the host, ends the capture by name") {
  const Tensor x = ones({4}, {.device = cuda(0)});
  const cuda::Stream stream = cuda::current_stream();
  const std::string to_host = "[copy] a copy from cuda:0 to cpu cannot be part of a graph.";
  says(refused([&] { static_cast<void>((x * 2).sum().item<float>()); }), to_host);
  says(refused([&] { static_cast<void>(x.to(kCpu)); }), to_host);
  says(refused([&] { x.copy_(ones({4})); }), "[copy] a copy from cpu to cuda:0 cannot be part of a graph.");
  const std::string waits = "While a graph is captured nothing may wait for the device";
  for (const auto& [call, name] : std::initializer_list<std::pair<std::function<void()>, std::string>>{
           {[] { cuda::synchronize(); }, "cudaDeviceSynchronize"},
           {[&] { stream.synchronize(); }, "cudaStreamSynchronize"},
           {[&] { static_cast<void>(stream.query()); }, "cudaStreamQuery"},
           {[] {
              cuda::Event event;
              event.record();
              event.synchronize();
            },
            "cudaEventSynchronize"}}) {
    const std::string text = refused(call);
    says(text, "[cuda] " + name + " failed with cudaError");
    says(text, waits);
  }
}

TEST_CASE("graph: a user's exception also ends the capture and is propagated") {
  struct Own {};
  cuda::Graph graph;
  const Tensor x = ones({4}, {.device = cuda(0)});
  CHECK_THROWS_AS(graph.capture([&] {
    x.add_(1);
    throw Own{};
  }),
                  Own);
  CHECK(!cuda::is_current_stream_capturing());
  CHECK(x.sum().item<float>() == 4);
}

TEST_CASE("graph: a captured graph cannot be captured again, nor replayed into another capture") {
  cuda::Graph graph, other;
  const Tensor x = ones({4}, {.device = cuda(0)});
  graph.capture([&] { x.add_(1); });
  CHECK_THROWS_AS(graph.capture([] {}), DeviceError);
  CHECK_THROWS_WITH_AS(other.capture([&] { graph.replay(); }),
                       "[graph] a graph cannot be replayed while another one is captured. Replay it before or after.",
                       DeviceError);
  graph.replay();
  CHECK(x.sum().item<float>() == 8);
}

TEST_CASE("graph: an optimizer's step needs capturable and existing state") {
  for (const Recipe& r : {recipe<optim::SGD>({}), recipe<optim::Adam>({}), recipe<optim::AdamW>({})}) {
    TrainingRun run(r);
    run.step();
    says(refused([&] { run.step(); }),
         "[" + run.optimizer->name() +
             "] a step with its number and learning rate on the host cannot be captured into a graph. "
             "Set capturable = true.");
    run.step();
    CHECK(run.optimizer->state_dict().at("state.fc.weight.step").item<double>() == 2);
  }
  for (const Recipe& r : {recipe<optim::SGD>({.capturable = true}), recipe<optim::Adam>({.capturable = true})}) {
    TrainingRun run(r);
    const std::string anew =
        "the state of \"fc.weight\" would be made by the graph, and anew by each replay. Run a step "
        "before the capture.";
    says(refused([&] { run.step(); }), anew);
    run.step();
    if (run.optimizer->name() == "SGD") run.optimizer->param_groups()[0]["momentum"] = 0.9;
    if (run.optimizer->name() == "Adam") run.optimizer->param_groups()[0]["amsgrad"] = 1;
    says(refused([&] { run.step(); }), anew);
    CHECK(run.optimizer->state_dict().at("state.fc.weight.step").item<double>() == 1);
  }
}

TEST_CASE("graph: a hyperparameter that the graph has captured cannot be changed") {
  TrainingRun run(recipe<optim::AdamW>({.capturable = true}));
  run.step();
  cuda::Graph graph;
  graph.capture([&] { run.step(); });
  auto& settings = run.optimizer->param_groups()[0];
  settings["beta1"] = 0.5;
  const Bits before = run.weights();
  CHECK_THROWS_WITH_AS(graph.replay(),
                       "[AdamW] beta1 is 0.5 now and was 0.9 at the capture, of which only lr may change. Set it back, "
                       "or capture again.",
                       ValueError);
  CHECK(run.weights() == before);
  settings["beta1"] = 0.9;
  graph.replay();
  CHECK(run.weights() != before);
  CHECK(run.optimizer->state_dict().at("state.fc.weight.step").item<double>() == 2);
}

TEST_CASE("graph: the optimizer may be destroyed before its graph") {
  TrainingRun run(recipe<optim::AdamW>({.capturable = true})), same(recipe<optim::AdamW>({.capturable = true}));
  cuda::Graph graph;
  for (TrainingRun* r : {&run, &same}) {
    r->load(0);
    r->step();
  }
  graph.capture([&] { run.step(); });
  run.optimizer.reset();
  std::vector<Tensor> others;  // would get the state's memory if that were free
  for (int i = 0; i < 3; ++i) {
    graph.replay();
    for (int k = 0; k < 20; ++k) others.push_back(full({60}, -1.0, {.device = cuda(0)}));
    same.step();
  }
  CHECK(run.weights() == same.weights());
  for (const Tensor& t : others) CHECK(t.sum().item<float>() == -60);
}

// docs/cuda_graphs.md shows these lines; the test below compares and runs them.
// clang-format off
namespace page {

// begin of the page's program
struct Net : nn::Module {
  nn::Linear& fc1 = add<nn::Linear>("fc1", 20, 64);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 64, 3);
  Tensor forward(const Tensor& x) override { return fc2(dropout(relu(fc1(x)), 0.2, is_training())); }
};

float train(int steps) {
  manual_seed(1);
  Net net;
  net.to(cuda(0));
  optim::AdamW opt(net.parameters(), {.lr = 1e-2, .capturable = true});
  optim::CosineAnnealingLR schedule(opt, steps);
  const Tensor x = zeros({32, 20}, {.device = cuda(0)});                    // the input that the graph reads
  const Tensor y = zeros({32}, {.dtype = kInt64, .device = cuda(0)});
  Tensor loss;
  const auto step = [&] {
    opt.zero_grad();
    loss = cross_entropy(net(x), y);
    loss.backward();
    opt.step();
  };
  cuda::Graph graph;
  for (int i = 0; i < steps; ++i) {
    const Tensor batch = randn({32, 20});                                   // on the host, as from a DataLoader
    x.copy_(batch);
    y.copy_(argmax(batch.narrow(1, 0, 3), 1));
    if (i == 3) graph.capture(step);
    if (i < 3) step(); else graph.replay();
    schedule.step();
  }
  return loss.item<float>();
}
// end of the page's program

}  // namespace page
// clang-format on

TEST_CASE("graph: the program on the page about graphs compiles and learns") {
  const std::string shown = program_of_page("docs/cuda_graphs.md");
  CHECK(shown.size() > 500);
  CHECK(shown == marked_program("tests/cuda/graph/graph_errors_test.cpp"));
  CHECK(page::train(40) < 0.7f);
}
