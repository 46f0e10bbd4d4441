// Random numbers in graphs: a replay draws the numbers that eager code would have drawn at that moment.

#include "cuda/gate.h"

#include <levin/autograd/autograd.h>
#include <levin/autograd/ops.h>
#include <levin/core/capture/recording.h>
#include <levin/kernels/cuda.h>

#include <doctest/doctest.h>

#include <functional>
#include <optional>
#include <utility>

using namespace levin;

namespace {

using Values = std::vector<double>;

cudaStream_t native(const cuda::Stream& s) { return static_cast<cudaStream_t>(s.handle()); }

/// Calls every random function with all widths and returns the results as one vector.
Tensor draw_all(Generator& g) {
  const TensorOptions f32{.dtype = kFloat32, .device = cuda(0), .generator = &g};
  TensorOptions f64 = f32, i32 = f32;
  f64.dtype = kFloat64;
  i32.dtype = kInt32;
  std::vector<Tensor> parts = {rand({7}, f32), rand({5}, f64), randn({9}, f32), randn({3}, f64),
                               randint(-50, 50, {6}, i32)};
  parts.push_back(bernoulli(full({33}, 0.5, {.dtype = kFloat32, .device = cuda(0)}), &g));
  parts.push_back(dropout(ones({31}, {.dtype = kFloat32, .device = cuda(0)}), 0.3, true, &g));
  parts.push_back(uniform_(empty({3, 4}, {.dtype = kFloat32, .device = cuda(0)}).t(), -1, 1, &g).reshape({12}));
  for (Tensor& part : parts) part = part.to(kFloat64);
  return cat(parts, 0);
}

/// Returns the results of `n` consecutive calls of draw_all.
std::vector<Values> drawn_eagerly(Generator g, int n) {
  std::vector<Values> all;
  for (int i = 0; i < n; ++i) all.push_back(draw_all(g).to_vector<double>());
  return all;
}

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing";
}

/// A graph that fills `output` with draw_all.
class DrawingGraph {
 public:
  explicit DrawingGraph(Generator& g, int times = 1) {
    graph_.capture([&] {
      for (int i = 0; i < times; ++i) output_ = draw_all(g);
    });
  }
  void replay() { graph_.replay(); }
  Values values() const { return output_.to_vector<double>(); }
  Values operator()() {
    replay();
    return values();
  }

 private:
  cuda::Graph graph_;
  Tensor output_;
};

}  // namespace

TEST_CASE("graph: captured and eager steps draw from one sequence of numbers") {
  const std::vector<Values> expected = drawn_eagerly(Generator(5), 5);
  for (std::size_t i = 1; i < expected.size(); ++i) CHECK(expected[i] != expected[i - 1]);
  Generator g(5);
  CHECK(draw_all(g).to_vector<double>() == expected[0]);
  const GeneratorState before = g.state();
  DrawingGraph graph(g);
  CHECK(g.state() == before);  // the capture draws nothing
  CHECK(graph() == expected[1]);
  CHECK(graph() == expected[2]);
  CHECK(draw_all(g).to_vector<double>() == expected[3]);
  CHECK(graph() == expected[4]);
}

TEST_CASE("graph: several draws of one graph follow each other") {
  const std::vector<Values> expected = drawn_eagerly(Generator(6), 7);
  Generator g(6);
  DrawingGraph graph(g, 3);
  CHECK(graph() == expected[2]);
  CHECK(graph() == expected[5]);
  CHECK(draw_all(g).to_vector<double>() == expected[6]);
}

TEST_CASE("graph: a seed, a state or a generator set between replays takes effect") {
  Generator g(1);
  DrawingGraph graph(g);
  graph();
  g.manual_seed(8);
  CHECK(graph() == drawn_eagerly(Generator(8), 1)[0]);
  g = Generator(9);
  CHECK(graph() == drawn_eagerly(Generator(9), 1)[0]);
  const GeneratorState here = g.state();
  const Values next = graph();
  Generator copy = g;
  g.set_state(here);
  CHECK(graph() == next);
  CHECK(copy.state() == g.state());
  graph();
  CHECK(copy.state() != g.state());  // the copy is independent
  manual_seed(3);
  Generator& standard = default_generator();
  DrawingGraph of_default(standard);
  of_default();
  manual_seed(4);
  CHECK(of_default() == drawn_eagerly(Generator(4), 1)[0]);
}

TEST_CASE("graph: the backward of a captured dropout uses the mask of its forward") {
  manual_seed(11);
  const Tensor x = ones({200}, {.device = cuda(0), .requires_grad = true});
  Tensor y;
  cuda::Graph graph;
  graph.capture([&] {
    x.set_grad({});
    y = dropout(x, 0.5);
    y.sum().backward();
  });
  Values last;
  for (int i = 0; i < 3; ++i) {
    graph.replay();
    const Values now = y.detach().to_vector<double>();
    CHECK(x.grad().to_vector<double>() == now);
    CHECK(now != last);
    last = now;
  }
}

TEST_CASE("graph: queued replays keep their own numbers" * LEVIN_HOLDS_A_STREAM) {
  const std::vector<Values> expected = drawn_eagerly(Generator(12), 4);
  Generator g(12);
  const cuda::Stream stream(0);
  const cuda::StreamGuard on(stream);
  Tensor now = draw_all(g), all = zeros({4, now.size(0)}, {.dtype = kFloat64, .device = cuda(0)});
  g.manual_seed(12);
  cuda::Graph graph;
  graph.capture([&] { now = draw_all(g); });
  {
    test::Gate gate(native(stream));
    for (int i = 0; i < 4; ++i) {
      graph.replay();
      all.select(0, i).copy_(now);
    }
    g.manual_seed(0);
  }
  for (int i = 0; i < 4; ++i) CHECK(all.select(0, i).to_vector<double>() == expected[static_cast<std::size_t>(i)]);
}

TEST_CASE("graph: a replay on another stream waits for the previous replay") {
  constexpr int kReplays = 6;
  const std::vector<Values> expected = drawn_eagerly(Generator(13), kReplays);
  Generator g(13);
  const cuda::Stream streams[] = {cuda::Stream(0), cuda::Stream(0)};
  Tensor kept;
  cuda::Graph graph;
  {
    const cuda::StreamGuard on(streams[0]);
    kept = zeros_like(draw_all(g));
    graph.capture([&] { kept.add_(draw_all(g)); });
  }
  Values sum(expected[0].size());
  for (const Values& drawn : expected)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += drawn[i];
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
#if LEVIN_TEST_EMULATED
    const auto before = std::exchange(emulator::config().seed, seed);
#endif
    kept.zero_();
    cuda::synchronize();
    g.manual_seed(13);
    for (int i = 0; i < kReplays; ++i) {
      const cuda::StreamGuard on(streams[i % 2]);
      graph.replay();
    }
    cuda::synchronize();
#if LEVIN_TEST_EMULATED
    emulator::config().seed = before;
#endif
    CHECK(kept.to_vector<double>() == sum);
  }
}

TEST_CASE("graph: two alternating graphs share one sequence, also with more generators than one write holds") {
  const std::vector<Values> expected = drawn_eagerly(Generator(14), 5);
  Generator g(14);
  DrawingGraph a(g), b(g);
  CHECK(a() == expected[0]);
  CHECK(b() == expected[1]);
  CHECK(b() == expected[2]);
  CHECK(a() == expected[3]);
  CHECK(draw_all(g).to_vector<double>() == expected[4]);

  std::vector<Generator> many;
  for (std::uint64_t i = 0; i < 70; ++i) many.emplace_back(i);
  std::vector<Tensor> outputs(many.size());
  cuda::Graph graph;
  graph.capture([&] {
    for (std::size_t i = 0; i < many.size(); ++i) outputs[i] = rand({5}, {.device = cuda(0), .generator = &many[i]});
  });
  for (int run = 0; run < 2; ++run) graph.replay();
  for (std::size_t i = 0; i < many.size(); ++i) {
    Generator alone(i);
    rand({5}, {.generator = &alone});
    CHECK(outputs[i].to_vector<float>() == rand({5}, {.generator = &alone}).to_vector<float>());
  }
}

TEST_CASE("graph: the graph may outlive its generator, and the generator the graph") {
  const std::vector<Values> expected = drawn_eagerly(Generator(15), 3);
  auto g = std::make_unique<Generator>(15);
  std::optional<DrawingGraph> graph(*g);
  CHECK((*graph)() == expected[0]);
  g.reset();
  CHECK((*graph)() == expected[1]);
  Generator other(15), moved(15);
  graph.emplace(other);
  CHECK((*graph)() == expected[0]);
  moved = other;
  graph.reset();
  CHECK(draw_all(other).to_vector<double>() == expected[1]);
  Generator taken = std::move(other);
  CHECK(draw_all(taken).to_vector<double>() == expected[2]);
}

TEST_CASE("graph: host code draws its random numbers at the capture") {
  Generator g(16), same(16);
  Tensor on_host;
  cuda::Graph graph;
  const Tensor there = zeros({1}, {.device = cuda(0)});
  graph.capture([&] {
    there.add_(1);
    on_host = rand({3}, {.generator = &g});
  });
  CHECK(on_host.to_vector<float>() == rand({3}, {.generator = &same}).to_vector<float>());
  CHECK(g.state() == same.state());
}

TEST_CASE("graph: a foreign capture would repeat its numbers, so drawing in it is refused") {
  const cuda::Stream stream(0);
  const cuda::StreamGuard on(stream);
  Generator g(17);
  const GeneratorState before = g.state();
  const Tensor x = ones({8}, {.device = cuda(0)});
  REQUIRE(cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  const std::string text = message([&] { uniform_(x, 0, 1, &g); });
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(native(stream), &graph) == cudaSuccess);
  cudaGraphDestroy(graph);
  CHECK(text ==
        "[graph] the stream is captured, but not by cuda::Graph, so every replay would draw the same random numbers. "
        "Capture with cuda::Graph.");
  CHECK(g.state() == before);
}
