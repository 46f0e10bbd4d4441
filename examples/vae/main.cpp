// Trains a variational autoencoder on images of clothes, and draws new ones: ./run vae --help
// Kingma & Welling, "Auto-encoding variational Bayes", 2014.
#include <levin/levin.h>

#include <fmt/format.h>

#include <filesystem>

#include "first_steps.h"

using namespace levin;

namespace {

struct Options {
  std::string data = data::kFashionMnistDir, record{};
  std::int64_t hidden = 400, latent = 20, batch_size = 128;
  double lr = 1e-3;
  TrainerConfig trainer{
      .max_epochs = 10, .num_sanity_val_steps = 0, .default_root_dir = "runs/vae", .logger = "csv,html", .seed = 1};
};

bool parse(int argc, char** argv, Options& o) {
  CommandLine line("Trains a variational autoencoder on Fashion-MNIST.");
  line.add_path("data", o.data, "Folder of the IDX files, plain or .gz");
  line.add("hidden", o.hidden, "Features of the hidden layers", 1);
  line.add("latent", o.latent, "Dimensions of the code", 1);
  line.add("batch-size", o.batch_size, "Images per batch", 1);
  line.add("lr", o.lr, "Learning rate");
  FirstSteps::add_option(line, o.record);
  line.add_trainer(o.trainer);
  return line.parse(argc, argv);
}

/// Images in [0, 1].
data::ImageDataset images(const Options& o, const std::string& split) {
  const data::FashionMnist data(split, o.data);
  return {data.images(), data.labels()};
}

struct Encoder : nn::Layer<Encoder> {
  const std::int64_t hidden, latent;
  Encoder(std::int64_t h, std::int64_t z) : hidden(h), latent(z) {}
  nn::Linear& body = add<nn::Linear>("body", 784, hidden);
  nn::Linear& mean = add<nn::Linear>("mean", hidden, latent);
  nn::Linear& logvar = add<nn::Linear>("logvar", hidden, latent);

  std::pair<Tensor, Tensor> forward(Tensor x) {  // (B, 1, 28, 28)
    const Tensor h = relu(body(flatten(x, 1)));
    return {mean(h), logvar(h)};
  }
};

struct Vae : LevinModule {
  const Options o;
  explicit Vae(const Options& options) : o(options) {}
  Encoder& encoder = add<Encoder>("encoder", o.hidden, o.latent);
  nn::Sequential& decoder =
      add<nn::Sequential>("decoder", nn::Linear(o.latent, o.hidden), nn::ReLU(), nn::Linear(o.hidden, 784));

  Tensor draw(const Tensor& z) { return sigmoid(decoder(z)).view({-1, 1, 28, 28}); }
  /// Draws the noise that makes codes of means and variances.
  Batch on_after_batch_transfer(Batch batch) override {
    return {batch[0], batch[1], randn({batch.size(), o.latent}, like(batch[0]))};
  }
  /// The negative evidence lower bound, in nats per image.
  Tensor loss(const Batch& batch, const std::string& stage) {
    auto [x, label, noise] = batch.as<3>();
    auto [mean, logvar] = encoder(x);
    const Tensor logits = decoder(mean + noise * exp(0.5 * logvar));
    const auto reconstruction =
        binary_cross_entropy_with_logits(logits, flatten(x, 1), {.reduction = Reduction::sum}) / x.size(0);
    const auto kl = -0.5 * (1 + logvar - square(mean) - exp(logvar)).sum(1).mean();
    log_dict({{stage + "_reconstruction", reconstruction}, {stage + "_kl", kl}});
    log(stage + "_loss", reconstruction + kl, {.prog_bar = true});
    return reconstruction + kl;
  }
  StepOutput training_step(const Batch& batch, int) override { return loss(batch, "train"); }
  void validation_step(const Batch& batch, int) override { loss(batch, "val"); }
  Optimizers configure_optimizers() override { return optim::Adam(parameters(), {.lr = o.lr}); }
};

/// Logs images that are drawn from the same codes after each epoch.
struct Grid : Callback {
  explicit Grid(const Tensor& z) : codes(z) {}
  Tensor codes;

  void on_train_epoch_end(RunContext& run) override {
    const no_grad guard;
    auto& vae = static_cast<Vae&>(run.module);
    const Tensor images = vae.draw(codes.to(vae.device(), vae.decoder.parameters()[0].dtype())).to(kFloat32);
    for (const auto& logger : run.loggers) logger->log_image("drawn", images, run.state.global_step);
    std::filesystem::create_directories(run.root_dir);
    data::save_image(images, run.root_dir + "/drawn.png");
  }
};

int run(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) return 0;
  manual_seed(static_cast<std::uint64_t>(o.trainer.seed.value_or(1)));
  data::DataLoader train_loader(images(o, "train"), {.batch_size = o.batch_size, .shuffle = true, .drop_last = true});
  data::DataLoader test_loader(images(o, "test"), {.batch_size = 1000});

  Vae vae(o);
  o.trainer.callbacks = {Grid(randn({64, o.latent})), FirstSteps(o.record)};
  Trainer trainer(o.trainer);
  trainer.fit(vae, train_loader, test_loader);
  auto metrics = trainer.validate(vae, test_loader)[0];
  if (trainer.is_global_zero())
    fmt::print("images: {}\nresult: test_loss={:.2f} reconstruction={:.2f} kl={:.2f} epochs={}\n",
               (std::filesystem::path(o.trainer.default_root_dir) / "drawn.png").string(), metrics["val_loss"],
               metrics["val_reconstruction"], metrics["val_kl"], trainer.current_epoch());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
