#include "programs/programs.h"

using namespace levin;
using levin::test::Losses, levin::test::numbers, levin::test::with_options;

namespace {

struct Encoder : nn::Layer<Encoder> {
  int64_t inputs, latent;
  Encoder(int64_t x, int64_t z) : inputs(x), latent(z) {}
  nn::Sequential& body = add<nn::Sequential>("body", nn::Linear(inputs, 32), nn::Tanh());
  nn::Linear& mean = add<nn::Linear>("mean", 32, latent);
  nn::Linear& logvar = add<nn::Linear>("logvar", 32, latent);

  std::pair<Tensor, Tensor> forward(Tensor x) {
    auto h = body(x);
    return {mean(h), logvar(h)};
  }
};

struct VAE : LevinModule {
  int64_t inputs, latent;
  VAE(int64_t x, int64_t z) : inputs(x), latent(z) {}
  Encoder& encoder = add<Encoder>("encoder", inputs, latent);
  nn::Sequential& decoder = add<nn::Sequential>("decoder", nn::Linear(latent, 32), nn::Tanh(), nn::Linear(32, inputs));

  StepOutput training_step(const Batch& batch, int) override {
    auto [x, noise] = batch;
    auto [mean, logvar] = encoder(x);
    auto z = mean + noise * exp(0.5 * logvar);
    auto sum = binary_cross_entropy_with_logits(decoder(z), x, {.reduction = Reduction::sum});
    auto reconstruction = sum / batch.size();
    auto kl = -0.5 * (1 + logvar - square(mean) - exp(logvar)).sum(1).mean();
    log_dict({{"reconstruction", reconstruction}, {"kl", kl}});
    return reconstruction + kl;
  }
  Tensor predict_step(const Batch& batch, int) override { return sigmoid(decoder(encoder(batch[0]).first)); }
  Optimizers configure_optimizers() override { return optim::Adam(parameters(), 3e-3); }
};

void run() {
  data::TensorDataset data({(numbers({64, 49}, 5) > 0).to(kFloat32), numbers({64, 4}, 6)});
  data::DataLoader loader(data, {.batch_size = 16});
  VAE vae(49, 4);
  Trainer trainer(with_options({.max_epochs = 5, .callbacks = {Losses("vae")}}));
  trainer.fit(vae, loader);
  levin::test::check_result("vae/predicted", cat(trainer.predict(vae, loader)[0]).mean().item<double>());
}

}  // namespace

TEST_CASE("a variational autoencoder trains and predicts as in PyTorch") { levin::test::in_both_precisions(run); }
