// Networks with several inputs and outputs, and with weights that modules share, under strategies.
#include "strategies/pipelines.h"

using namespace levin;
using namespace levin::test;

namespace {

/// Two inputs, and two outputs of which the loss uses the second one.
struct Denoiser : nn::Layer<Denoiser> {
  nn::Linear& in = add<nn::Linear>("in", 6, 12);
  nn::Linear& time = add<nn::Linear>("time", 1, 12);
  nn::Linear& out = add<nn::Linear>("out", 12, 6);
  std::pair<Tensor, Tensor> forward(const Tensor& x, const Tensor& t) {
    const Tensor hidden = tanh(in(x) + time(t));
    return {hidden, out(hidden)};
  }
};

struct Denoising : LevinModule {
  Denoiser& net = add<Denoiser>("net");
  Tensor loss(const Batch& b) {
    const Tensor t = b[1].to(kFloat32).reshape({-1, 1});
    return mse_loss(net(b[0] * (t + 1.0), t).second, b[0]);
  }
  StepOutput training_step(const Batch& b, int) override { return loss(b); }
  void validation_step(const Batch& b, int) override { log("val_loss", loss(b)); }
  Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.1, .momentum = 0.9}); }
};

/// The decoder uses the encoder's weight.
struct Tied : LevinModule {
  nn::Linear& encoder = add<nn::Linear>("encoder", 6, 12, {.bias = false});
  nn::Linear& middle = add<nn::Linear>("middle", 12, 6);
  nn::Linear& decoder = add<nn::Linear>("decoder", 6, 12, {.bias = false});
  Tied() { decoder.weight = encoder.weight; }
  Tensor forward(const Tensor& x) override { return decoder(tanh(middle(encoder(x)))); }
  StepOutput training_step(const Batch& b, int) override { return cross_entropy((*this)(b[0]), b[1]); }
  Optimizers configure_optimizers() override { return optim::AdamW(parameters(), {.lr = 0.02}); }
};

bool is_tied(const Tied& m) {
  return m.decoder.weight.is_same(m.encoder.weight) &&
         m.decoder.weight.to_vector<float>() == m.encoder.weight.to_vector<float>() && m.parameters().size() == 3;
}

/// By default every linear layer is a unit of fsdp.
TrainerConfig in_units(const std::string& strategy, std::int64_t epochs, std::int64_t unit_size = 10) {
  return with_strategy(strategy, {.max_epochs = epochs, .fsdp = {.unit_size = unit_size}});
}

template <class Module>
std::vector<std::vector<float>> fit(Module& model, const std::string& strategy, TrainerConfig config,
                                    const std::string& ckpt = {}) {
  data::DataLoader train(toy_points(48),
                         {.batch_size = strategy == "single" ? 12 : 12 / ranks(), .shuffle = true, .seed = 7});
  Trainer(std::move(config)).fit(model, DataModule{.train = borrowed(train)}, ckpt);
  return values_of(model);
}

struct Halves : nn::Layer<Halves> {
  nn::Linear& left = add<nn::Linear>("left", 12, 5);
  nn::Linear& right = add<nn::Linear>("right", 12, 5);
  std::tuple<Tensor, Tensor, Tensor> forward(Tensor x) { return {left(x), right(x), gt(x.mean(1, true), 0)}; }
};
struct Product : nn::Layer<Product> {
  Tensor forward(const Tensor& a, const Tensor& b, const Tensor& mask) { return where(mask, a * tanh(b), a); }
};
/// Three tensors pass from its third layer to the fourth, of which one is a mask.
struct Staged : LogsInEveryWay {
  explicit Staged(const StagedOptions& = {}) {}
  nn::Sequential& net =
      add<nn::Sequential>("net", nn::Sequential(nn::Linear(6, 12), nn::Tanh(), Halves(), Product(), nn::Linear(5, 3)));
  Tensor forward(const Tensor& x) override { return net(x); }
  Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.3, .momentum = 0.9}); }
};

}  // namespace

TEST_CASE("a module of several inputs trains under ddp, fsdp and zero to the weights of one rank") {
  const auto body = [] {
    const auto trained = [](const std::string& strategy, std::int64_t unit_size = 10) {
      manual_seed(3);
      Denoising model;
      return fit(model, strategy, in_units(strategy, 3, unit_size));
    };
    manual_seed(3);
    const auto start = values_of(Denoising());
    const auto single = trained("single");
    CHECK(largest_difference(single, start) > 1e-2);
    for (const char* strategy : {"ddp", "fsdp", "zero_2"}) {
      CAPTURE(strategy);
      CHECK(largest_difference(trained(strategy), single) <= 1e-6);
    }
    CHECK(largest_difference(trained("fsdp", 100), single) <= 1e-6);  // the network is one unit
    if (ranks() == 2) CHECK(trained("fsdp") == trained("ddp"));
  };
  in_turn({{2, body}, {3, body}});
}

TEST_CASE("a shared weight trains under ddp and fsdp as on one rank, and remains shared") {
  pass_on(2, [] {
    const auto trained = [](const std::string& strategy) {
      manual_seed(3);
      Tied model;
      const auto weights = fit(model, strategy, in_units(strategy, 3));
      CHECK(is_tied(model));
      return weights;
    };
    const auto single = trained("single"), ddp = trained("ddp");
    CHECK(largest_difference(ddp, single) <= 1e-5);
    CHECK(trained("fsdp") == ddp);
  });
}

TEST_CASE("a checkpoint has a shared weight under both names, and resumes with the bits of an uninterrupted fit") {
  const CommonDir dir;
  pass_on(2, [&] {
    for (const std::string strategy : {"ddp", "fsdp"}) {
      CAPTURE(strategy);
      manual_seed(3);
      Tied first;
      auto config = in_units(strategy, 2);
      config.callbacks = {std::make_shared<SaveAlways>(dir.path / strategy)};
      const auto whole = fit(first, strategy, config);
      const auto saved = dir.path / strategy / "2";
      manual_seed(99);
      Tied second;
      CHECK(fit(second, strategy, in_units(strategy, 2), saved.string()) == whole);
      CHECK(is_tied(second));
      const auto loaded = load_from_checkpoint<Tied>(saved);
      CHECK(is_tied(*loaded));
      const StateDict state = interop::load_safetensors(saved / "model.safetensors").tensors;
      CHECK(state.contains("encoder.weight"));
      CHECK(state.contains("decoder.weight"));
      CHECK(loaded->encoder.weight.to_vector<float>() == state.at("decoder.weight").to_vector<float>());
    }
  });
}

TEST_CASE("strategy pipeline: several tensors pass between the layers of a stage, and from a stage to the next") {
  const auto equals_one_rank = [](const char* balance) {
    CAPTURE(balance);
    TrainerConfig config;
    config.pipeline.balance = balance;
    equals(staged_fit<Staged>("single", config), staged_fit<Staged>("pipeline", config));
  };
  const auto two = [&] {
    equals_one_rank("4,1");
    equals_one_rank("3,2");
  };
  in_turn({{2, two}, {3, [&] { equals_one_rank("3,1,1"); }}});
}

TEST_CASE("strategy pipeline: a last layer that returns several tensors is refused") {
  struct Open : Staged {
    using Staged::Staged;
    nn::Sequential& open = add<nn::Sequential>("open", nn::Sequential(nn::Linear(6, 12), Halves()));
    nn::Sequential* pipeline_module() override { return &open; }
    Tensor forward(const Tensor& x) override { return open(x); }
  };
  pass_on(2, [] {
    const auto message = message_of<Error>([] { staged_fit<Open>("pipeline", {}); });
    CHECK(contains(message, "[pipeline] the last layer, \"open.1\" (Halves), returns 3 tensors, and a Sequential "
                            "returns one. Append a module that selects or combines them."));
  });
}

TEST_CASE("strategy pipeline: an error in a stage names the layer by its path in the whole module") {
  struct Narrow : Staged {
    using Staged::Staged;
    StepOutput training_step(const Batch& b, int index) override {
      return Staged::training_step({{b[0].narrow(1, 0, 5), b[1]}}, index);
    }
  };
  pass_on(2, [] {
    const auto message = message_of<Error>([] { staged_fit<Narrow>("pipeline", {}); });
    CHECK(contains(message, "in net.0 (Linear): [linear] "));
  });
}
