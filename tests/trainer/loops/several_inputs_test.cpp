// A network with several inputs under the Trainer: its names and shapes in reports, and the place of its errors.
#include <levin/trainer/model_graph.h>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

struct Denoiser : nn::Layer<Denoiser> {
  nn::Linear& in = add<nn::Linear>("in", 6, 12);
  nn::Linear& time = add<nn::Linear>("time", 1, 12);
  nn::ModuleList<nn::Linear>& out = add<nn::ModuleList<nn::Linear>>("out");
  explicit Denoiser(std::int64_t width = 12) { out.append(width, std::int64_t{6}); }
  template <class F>
  auto with_arguments(F construct) const {
    return construct(out[0].in_features);
  }
  std::pair<Tensor, Tensor> forward(const Tensor& x, const Tensor& t) {
    const Tensor hidden = tanh(in(x) + time(t));
    return {out[0](hidden), hidden};
  }
};

struct Denoising : LevinModule {
  explicit Denoising(std::int64_t width = 12) : net(add<Denoiser>("net", width)) {}
  Denoiser& net;
  Tensor loss(const Batch& b) {
    const Tensor t = b[1].to(kFloat32).reshape({-1, 1});
    const auto [y, hidden] = net(b[0] * (t + 1.0), t);
    return mse_loss(y, b[0]) + square(hidden).mean();
  }
  StepOutput training_step(const Batch& b, int) override { return loss(b); }
  void validation_step(const Batch& b, int) override { log("val_loss", loss(b)); }
  Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.1}); }
};

const std::string wrong_width =
    "in net.out.0 (Linear): [linear] x is (4, 12), weight is (6, 13): the last size of x must be the weight's second.";

/// Keeps the message that callbacks get.
struct Heard : Callback {
  std::string message;
  void on_exception(RunContext&, const std::exception& e) override { message = e.what(); }
};

}  // namespace

TEST_CASE("reports name a module of several inputs, and its operations with their shapes") {
  Denoising model;
  CHECK(contains(summary(model, -1), "  net            Denoiser                  186\n"));
  CHECK(contains(summary(model, -1), "  net.out.0      Linear                     78\n"));
  CHECK(module_rows(model)[0].type == "Denoiser");

  const Tensor x = randn({4, 6}), t = rand({4, 1});
  const auto [y, hidden] = model.net(x, t);
  const ModelGraph graph = trace_graph(model, y);
  std::map<std::string, Shape> shapes;
  for (const auto& node : graph.nodes) shapes[node.name] = node.shape;
  CHECK(shapes.at("net.in.weight") == Shape{12, 6});
  CHECK(shapes.at("net.time.weight") == Shape{12, 1});
  CHECK(shapes.at("tanh_1") == Shape{4, 12});
  CHECK(shapes.at("linear_3") == Shape{4, 6});

  const auto profiler = std::make_shared<SimpleProfiler>(SimpleProfilerOptions{.filename = "profile.txt"});
  const TempDir folder;
  TrainerConfig config = quiet({.max_epochs = 1, .default_root_dir = folder.path});
  config.profiler = profiler;
  data::DataLoader train(toy_points(8), {.batch_size = 4});
  Trainer(config).fit(model, train);
  CHECK(contains(profiler->summary(), "[LevinModule]Denoising.training_step"));
}

TEST_CASE("an error in a network says where, from the module that the Trainer trains") {
  Denoising model(13);
  data::DataLoader train(toy_points(8), {.batch_size = 4}), val(toy_points(8), {.batch_size = 4});
  const auto heard = std::make_shared<Heard>();
  TrainerConfig config = quiet({.max_epochs = 1, .num_sanity_val_steps = 0});
  config.callbacks = {heard};
  const auto message = message_of<ShapeError>([&] { Trainer(config).fit(model, train, val); });
  CHECK(message == wrong_width);
  CHECK(heard->message == message);
  CHECK(message_of<ShapeError>([&] { Trainer(config).validate(model, val); }) == message);
}

TEST_CASE("an error of a step itself is as it was thrown") {
  struct Own : Denoising {
    StepOutput training_step(const Batch&, int) override { throw ValueError("[own] no."); }
  };
  Own model;
  data::DataLoader train(toy_points(8), {.batch_size = 4});
  CHECK(message_of<ValueError>([&] { Trainer(quiet({.max_epochs = 1})).fit(model, train); }) == "[own] no.");
}
