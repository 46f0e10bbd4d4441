// A pipeline of stages compared with the whole network on the whole batch; its schedule; its memory.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <levin/autograd/autograd.h>
#include <levin/autograd/function.h>
#include <levin/distributed/data_parallel.h>
#include <levin/distributed/pipeline.h>
#include <levin/nn/nn.h>
#include <levin/optim/optim.h>

#include <mutex>
#include <thread>

#include "distributed/groups.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::distributed;
using levin::test::errors_in_group;
using levin::test::in_group;
using levin::test::largest_difference;

namespace {

constexpr int kLayers = 4;

struct Layer : nn::Module {
  nn::Linear& fc = add<nn::Linear>("fc", 6, 6);
  Tensor forward(const Tensor& x) override { return tanh(fc(x)); }
};

/// Every rank has the whole network and computes layers [first, last).
struct Net : nn::Module {
  Net() {
    for (int i = 0; i < kLayers; ++i) layers.push_back(&add<Layer>(std::to_string(i)));
    to(kFloat64);
    Generator rng(8);  // separate, because the ranks are threads
    const no_grad guard;
    for (Parameter p : parameters()) p.copy_(mul(randn(p.sizes(), {.generator = &rng}), 0.4));
  }
  std::vector<Layer*> layers;
  Tensor part(Tensor x, int first, int last) {
    for (int i = first; i < last; ++i) x = (*layers[static_cast<std::size_t>(i)])(x);
    return x;
  }
};

struct Range {
  int first, last;
};
Range stage_of(const ProcessGroup& g) {
  return {g.rank() * kLayers / g.size(), (g.rank() + 1) * kLayers / g.size()};
}

Pipeline::Stage stage(Net& net, const ProcessGroup& g) {
  return [&net, r = stage_of(g)](const Tensor& x) { return net.part(x, r.first, r.last); };
}

std::string text(const std::vector<PipelineAction>& actions) {
  std::string out;
  for (const auto& a : actions) out += (out.empty() ? "" : " ") + to_string(a);
  return out;
}


/// Sleeps in forward, and twice as long in backward, to simulate computing.
struct Slow : Function<Slow> {
  static void rest(int times) { std::this_thread::sleep_for(times * std::chrono::milliseconds(3)); }
  static Tensor forward(Context&, const Tensor& x) {
    rest(1);
    return x * 1.0;
  }
  static Tensor backward(Context&, const Tensor& g) {
    rest(2);
    return g;
  }
};

}  // namespace

TEST_CASE("pipeline/equals_whole_network: 2 to 4 stages, 1 to 8 micro-batches") {
  Generator numbers(3);
  const Tensor x = randn({13, 6}, {.dtype = kFloat64, .generator = &numbers});
  const Tensor y = randn({13, 6}, {.dtype = kFloat64, .generator = &numbers});
  const auto loss = [](const Tensor& out, const Tensor& target) { return mse_loss(out, target); };
  Net whole;
  const Tensor expected = loss(whole.part(x, 0, kLayers), y);
  expected.backward();
  for (const int stages : {2, 3, 4}) {
    std::mutex doctest;
    in_group(stages, [&](ProcessGroup& g) {
      const std::shared_ptr<ProcessGroup> group(&g, [](ProcessGroup*) {});
      std::unique_ptr<Net> net;
      {
        const std::lock_guard lock(doctest);  // they seed the same generator
        net = std::make_unique<Net>();
      }
      for (int micro = 1; micro <= 8; ++micro) {
        Pipeline pipeline(stage(*net, g), group, {.micro_batches = micro});
        net->zero_grad();
        const bool first = g.rank() == 0, last = g.rank() == g.size() - 1;
        const Tensor got = pipeline.step(first ? x : Tensor(), last ? y : Tensor(), loss);
        const Tensor out = pipeline.forward(first ? x : Tensor());
        const std::lock_guard lock(doctest);
        CAPTURE(stages);
        CAPTURE(micro);
        CHECK(largest_difference(got, expected) <= 1e-14);
        const auto [from, to] = stage_of(g);
        for (int i = 0; i < kLayers; ++i) {
          const nn::Linear& own = net->layers[static_cast<std::size_t>(i)]->fc;
          CHECK(own.weight.grad().defined() == (i >= from && i < to));
          const nn::Linear& reference = whole.layers[static_cast<std::size_t>(i)]->fc;
          if (own.weight.grad().defined())
            CHECK(largest_difference(own.weight.grad(), reference.weight.grad()) <= 1e-14);
        }
        const int parts = static_cast<int>(DataParallel::part_sizes(13, static_cast<std::size_t>(micro)).size());
        CHECK(pipeline.most_alive() == std::min(stages - g.rank(), parts));
        CHECK(pipeline.schedule() == one_f_one_b(g.rank(), stages, parts));
        CHECK(out.defined() == last);
        if (last) CHECK(largest_difference(out, whole.part(x, 0, kLayers)) <= 1e-14);
      }
    });
  }
}

TEST_CASE("pipeline: the schedule is 1F1B") {
  CHECK(text(one_f_one_b(0, 4, 6)) == "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5");
  CHECK(text(one_f_one_b(1, 4, 6)) == "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5");
  CHECK(text(one_f_one_b(2, 4, 6)) == "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5");
  CHECK(text(one_f_one_b(3, 4, 6)) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5");
  CHECK(text(one_f_one_b(0, 4, 2)) == "F0 F1 B0 B1");
  CHECK(text(one_f_one_b(0, 1, 2)) == "F0 B0 F1 B1");
  CHECK(one_f_one_b(1, 2, 0).empty());
  CHECK_THROWS_AS(one_f_one_b(2, 2, 1), ValueError);
}

TEST_CASE("pipeline: layers are partitioned to minimise the largest stage") {
  using Numbers = std::vector<int64_t>;
  CHECK(balanced_stages({0, 401'920, 0, 262'656, 0, 5130}, 2) == Numbers{3, 3});
  CHECK(balanced_stages({84, 0, 130, 0, 88, 0, 27}, 3) == Numbers{2, 2, 3});
  CHECK(balanced_stages({5, 1, 1, 5}, 3) == Numbers{1, 2, 1});
  CHECK(balanced_stages({1, 1, 1, 100}, 2) == Numbers{3, 1});
  CHECK(balanced_stages({100, 1, 1, 1}, 2) == Numbers{1, 3});
  CHECK(balanced_stages({0, 0, 0}, 3) == Numbers{1, 1, 1});
  CHECK(balanced_stages({7}, 1) == Numbers{1});
  CHECK_THROWS_AS(balanced_stages({7}, 2), ValueError);
  CHECK_THROWS_AS(balanced_stages({}, 0), ValueError);
}

TEST_CASE("pipeline: training on three stages matches one process, also with batches of different sizes") {
  const auto data = [](int64_t rows) {
    Generator rng(static_cast<std::uint64_t>(rows));
    return std::pair(randn({rows, 6}, {.dtype = kFloat64, .generator = &rng}),
                     randn({rows, 6}, {.dtype = kFloat64, .generator = &rng}));
  };
  const auto loss = [](const Tensor& out, const Tensor& target) { return mse_loss(out, target); };
  Net one;
  optim::SGD alone(one.parameters(), {.lr = 0.5, .momentum = 0.9});
  for (const int64_t rows : {12, 12, 7, 2, 1}) {
    const auto [x, y] = data(rows);
    alone.zero_grad();
    loss(one.part(x, 0, kLayers), y).backward();
    alone.step();
  }
  std::mutex mutex;
  in_group(3, [&](ProcessGroup& g) {
    std::unique_ptr<Net> net;
    {
      const std::lock_guard lock(mutex);
      net = std::make_unique<Net>();
    }
    Pipeline pipeline(stage(*net, g), {&g, [](ProcessGroup*) {}}, {.micro_batches = 3});
    optim::SGD optimizer(net->parameters(), {.lr = 0.5, .momentum = 0.9});
    for (const int64_t rows : {12, 12, 7, 2, 1}) {
      const auto [x, y] = data(rows);
      optimizer.zero_grad();
      pipeline.step(x, y, loss);
      optimizer.step();
    }
    const std::lock_guard lock(mutex);
    for (int i = stage_of(g).first; i < stage_of(g).last; ++i) {
      const auto at = static_cast<std::size_t>(i);
      CHECK(largest_difference(net->layers[at]->fc.weight, one.layers[at]->fc.weight) <= 1e-13);
    }
  });
}

TEST_CASE("pipeline: stages pass several tensors, of any type and also such as do not influence the loss") {
  Generator numbers(5);
  const Tensor x = randn({7, 4}, {.dtype = kFloat64, .generator = &numbers});
  const Tensor y = randn({7, 4}, {.dtype = kFloat64, .generator = &numbers});
  const Tensor weight = randn({4, 4}, {.dtype = kFloat64, .generator = &numbers});
  using List = std::vector<Tensor>;
  /// Three stages; the last one does not use the first tensor of the second one.
  const auto stage = [](int rank, const Tensor& w, const List& in) -> List {
    if (rank == 0) return {matmul(in[0], w), in[0].gt(0), tanh(matmul(in[0], w.t())), ones({3}, {.dtype = kInt64})};
    if (rank == 1) return {w * 2.0, in[0], in[1], in[2] * in[0] + sum(w), in[3] + 1};
    return {where(in[2], in[1] * in[3], matmul(in[3], w)) / in[4].sum().to(kFloat64)};
  };
  const auto loss = [](const Tensor& out, const Tensor& target) { return mse_loss(out, target); };
  List weights;
  for (int i = 0; i < 3; ++i) weights.push_back(weight.clone().requires_grad_());
  List all{x};
  for (int i = 0; i < 3; ++i) all = stage(i, weights[static_cast<std::size_t>(i)], all);
  const Tensor expected = loss(all[0], y);
  expected.backward();
  std::mutex doctest;
  in_group(3, [&](ProcessGroup& g) {
    const Tensor w = weight.clone().requires_grad_();
    Pipeline pipeline([&](const List& in) { return stage(g.rank(), w, in); }, {&g, [](ProcessGroup*) {}},
                      {.micro_batches = 4});
    const Tensor got = pipeline.step(x, y, loss), out = pipeline.forward(x, /*on_all=*/true);
    const std::lock_guard lock(doctest);
    CHECK(largest_difference(got, expected) <= 1e-14);
    CHECK(largest_difference(out, all[0]) <= 1e-14);
    CHECK(largest_difference(w.grad(), weights[static_cast<std::size_t>(g.rank())].grad()) <= 1e-13);
  });
}

TEST_CASE("pipeline: more micro-batches make the bubble smaller") {
  const int stages = 3;
  const auto bubble = [&](int micro) {
    std::vector<double> waited(stages), ideal;
    in_group(stages, [&](ProcessGroup& g) {
      Pipeline pipeline([](const Tensor& x) { return Slow::apply(x); }, {&g, [](ProcessGroup*) {}},
                        {.micro_batches = micro});
      const Tensor x = ones({8, 2}).requires_grad_();
      pipeline.step(x, x.detach(), [](const Tensor& out, const Tensor& target) { return mse_loss(out, target); });
      waited[static_cast<std::size_t>(g.rank())] = pipeline.times().bubble();
    });
    const double worst = *std::max_element(waited.begin(), waited.end());
    MESSAGE(fmt::format("{} stages, {} micro-batches: {:.0f} % of the time is idle, {:.0f} % in theory", stages,
                        micro, 100 * worst, 100.0 * (stages - 1) / (micro + stages - 1)));
    return worst;
  };
  const double one = bubble(1), many = std::min(bubble(8), bubble(8));
  CHECK(one >= 0.6);  // two thirds in theory
  CHECK(many < one - 0.2);
}

TEST_CASE("pipeline: every rank reports the error") {
  const auto loss = [](const Tensor& out, const Tensor& target) { return mse_loss(out, target); };
  in_group(1, [&](ProcessGroup& g) {
    const std::shared_ptr<ProcessGroup> group(&g, [](ProcessGroup*) {});
    const auto same = [](const Tensor& x) { return x; };
    CHECK_THROWS_AS(Pipeline(same, group, {.micro_batches = 0}), ValueError);
    CHECK_THROWS_WITH_AS(Pipeline(same, group).step(ones({4, 2}), ones({3, 2}), loss),
                         "[Pipeline] the batch has 4 rows, the target (3, 2). Give one for each.", ShapeError);
    CHECK_THROWS_AS(Pipeline(same, group).step(Tensor(), ones({3, 2}), loss), ShapeError);
    const auto two = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0], in[0]}; };
    CHECK_THROWS_WITH_AS(Pipeline(two, group).forward(ones({4, 2})),
                         "[Pipeline] the last stage returned 2 tensors. Return one, from which the loss is computed.",
                         ShapeError);
  });
  using List = std::vector<Tensor>;
  const auto first_returns = [](const List& outputs) {
    return errors_in_group(2, [&](ProcessGroup& g) {
      try {
        if (g.rank() == 0)
          Pipeline([&](const List&) { return outputs; }, {&g, [](ProcessGroup*) {}}).forward(ones({4, 2}));
        else
          Pipeline([](const Tensor& x) { return x; }, {&g, [](ProcessGroup*) {}}).forward({});
      } catch (const Error& e) {
        g.abort(e.what());
        throw;
      }
    });
  };
  CHECK(first_returns({ones({4}), ones({4})})[1] ==
        "[Pipeline] the stage before sent 2 tensors to a stage that takes one. Give this stage a function of "
        "std::vector<Tensor>.");
  CHECK(first_returns({})[0] == "[Pipeline] a stage returned no tensor. Return at least one.");
  CHECK(first_returns({ones({4}), {}})[0] ==
        "[Pipeline] tensor 1 of 2 that a stage returned is undefined. Return a tensor, such as one without elements.");
  const auto errors = errors_in_group(2, [&](ProcessGroup& g) {
    Pipeline pipeline(
        [&](const Tensor& x) {
          if (g.rank() == 1) throw std::runtime_error("this stage is broken");
          return x * 2.0;
        },
        {&g, [](ProcessGroup*) {}});
    try {
      pipeline.step(ones({4, 2}).requires_grad_(), ones({4, 2}), loss);
    } catch (const std::runtime_error& e) {
      g.abort(e.what());
      throw;
    }
  });
  CHECK(errors[1] == "this stage is broken");
  CHECK(errors[0].find("this stage is broken") != std::string::npos);
}
