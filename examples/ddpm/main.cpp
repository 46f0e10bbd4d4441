// Learns to remove noise from images of clothes, and draws new ones out of noise alone: ./run ddpm --help
// Ho, Jain & Abbeel, "Denoising diffusion probabilistic models", 2020.
#include <levin/levin.h>

#include <fmt/format.h>

#include <filesystem>

#include "first_steps.h"

using namespace levin;

namespace {

struct Options {
  std::string data = data::kFashionMnistDir, record{};
  std::int64_t width = 48, timesteps = 200, batch_size = 64, drawn = 8;
  double lr = 1e-3, decay = 0.995;
  TrainerConfig trainer{
      .max_epochs = 5, .num_sanity_val_steps = 0, .default_root_dir = "runs/ddpm", .logger = "csv,html", .seed = 1};
};

bool parse(int argc, char** argv, Options& o) {
  CommandLine line("Trains a U-Net to remove noise from Fashion-MNIST's images, and draws new images.");
  line.add_path("data", o.data, "Folder of the IDX files, plain or .gz");
  line.add("width", o.width, "Channels at 14 x 14 pixels, a multiple of 8", 8);
  line.add("timesteps", o.timesteps, "Steps from an image to noise", 50);
  line.add("batch-size", o.batch_size, "Images per batch", 1);
  line.add("drawn", o.drawn, "Images of each class to draw after an epoch", 1);
  line.add("lr", o.lr, "Learning rate");
  line.add("decay", o.decay, "Decay of the averaged weights");
  FirstSteps::add_option(line, o.record);
  line.add_trainer(o.trainer);
  return line.parse(argc, argv);
}

/// Images in [-1, 1] and their labels.
std::vector<Tensor> images(const Options& o, const std::string& split) {
  const data::FashionMnist data(split, o.data);
  return {data.images().to(kFloat32) / 127.5 - 1, data.labels()};
}

struct Block : nn::Layer<Block> {
  const std::int64_t inputs, outputs, features;
  Block(std::int64_t i, std::int64_t o, std::int64_t f) : inputs(i), outputs(o), features(f) {}
  nn::GroupNorm& norm1 = add<nn::GroupNorm>("norm1", 8, inputs);
  nn::Conv2d& conv1 = add<nn::Conv2d>("conv1", inputs, outputs, 3, {.padding = 1});
  nn::Linear& time = add<nn::Linear>("time", features, outputs);
  nn::GroupNorm& norm2 = add<nn::GroupNorm>("norm2", 8, outputs);
  nn::Conv2d& conv2 = add<nn::Conv2d>("conv2", outputs, outputs, 3, {.padding = 1});
  nn::Conv2d* shortcut = inputs == outputs ? nullptr : &add<nn::Conv2d>("shortcut", inputs, outputs, 1);

  Tensor forward(const Tensor& x, const Tensor& t) {  // (B, inputs, H, W) and (B, features) to (B, outputs, H, W)
    const Tensor h = conv1(silu(norm1(x))) + time(t)(Ellipsis, nil, nil);
    return conv2(silu(norm2(h))) + (shortcut ? (*shortcut)(x) : x);
  }
};

struct UNet : nn::Layer<UNet> {
  const std::int64_t width;
  explicit UNet(std::int64_t w) : width(w) {}
  Tensor frequencies = register_buffer("frequencies", logspace(0, -4, width / 2));
  nn::Sequential& time = add<nn::Sequential>("time", nn::Linear(width, 4 * width), nn::SiLU());
  nn::Embedding& classes = add<nn::Embedding>("classes", 10, 4 * width);
  nn::Conv2d& conv_in = add<nn::Conv2d>("conv_in", 1, width, 4, {.stride = 2, .padding = 1});
  Block& down1 = add<Block>("down1", width, width, 4 * width);
  nn::Conv2d& downsample = add<nn::Conv2d>("downsample", width, 2 * width, 4, {.stride = 2, .padding = 1});
  Block& down2 = add<Block>("down2", 2 * width, 2 * width, 4 * width);
  Block& up2 = add<Block>("up2", 2 * width, 2 * width, 4 * width);
  nn::ConvTranspose2d& upsample =
      add<nn::ConvTranspose2d>("upsample", 2 * width, width, 4, {.stride = 2, .padding = 1});
  Block& up1 = add<Block>("up1", 2 * width, width, 4 * width);
  nn::GroupNorm& norm = add<nn::GroupNorm>("norm", 8, width);
  nn::ConvTranspose2d& conv_out = add<nn::ConvTranspose2d>("conv_out", width, 1, 4, {.stride = 2, .padding = 1});

  /// Predicts the noise in images (B, 1, 28, 28) of these classes (B) at times (B).
  Tensor forward(const Tensor& x, const Tensor& label, const Tensor& t) {
    const Tensor angles = t(Ellipsis, nil) * frequencies;
    const Tensor features = time(cat({sin(angles), cos(angles)}, 1)) + classes(label);
    const Tensor fine = down1(conv_in(x), features);          // (B, width, 14, 14)
    const Tensor coarse = down2(downsample(fine), features);  // (B, 2 width, 7, 7)
    const Tensor grown = upsample(up2(coarse, features));     // (B, width, 14, 14)
    return conv_out(silu(norm(up1(cat({grown, fine}, 1), features))));
  }
};

struct Ddpm : LevinModule {
  const Options o;
  explicit Ddpm(const Options& options) : o(options) {}
  UNet& unet = add<UNet>("unet", o.width);
  // Variances of the noise that each step adds: the paper's, which go from 1e-4 to 0.02 in 1000 steps.
  Tensor beta = register_buffer("beta", linspace(0.1, 20, o.timesteps) / o.timesteps);
  Tensor alpha_bar = register_buffer("alpha_bar", cumprod(1 - beta, 0));  // part of the image's variance that is left

  /// Draws noise and times.
  Batch on_after_batch_transfer(Batch batch) override {
    if (batch.tensors.size() == 4) return batch;
    return {batch[0], batch[1], randn_like(batch[0]), randint(0, o.timesteps, {batch.size()}, {.device = device()})};
  }
  /// Mean squared error of the predicted noise.
  Tensor loss(const Batch& batch, const std::string& stage) {
    auto [x, label, noise, t] = batch.as<4>();
    const Tensor a = alpha_bar(t).view({-1, 1, 1, 1});
    const Tensor loss = mse_loss(unet(sqrt(a) * x + sqrt(1 - a) * noise, label, t), noise);
    log(stage + "_loss", loss, {.prog_bar = true});
    return loss;
  }
  StepOutput training_step(const Batch& batch, int) override { return loss(batch, "train"); }
  void validation_step(const Batch& batch, int) override { loss(batch, "val"); }
  Optimizers configure_optimizers() override { return optim::Adam(parameters(), {.lr = o.lr}); }

  /// Turns noise (B, 1, 28, 28) into images of these classes, step by step.
  Tensor draw(Tensor x, const Tensor& label) {
    for (std::int64_t t = o.timesteps - 1; t >= 0; --t) {
      const Tensor noise = unet(x, label, full_like(label, t));
      x = (x - noise * beta[t] / sqrt(1 - alpha_bar[t])) / sqrt(1 - beta[t]);
      if (t > 0) x = x + sqrt(beta[t]) * randn_like(x);
    }
    return (x + 1) / 2;
  }
};

/// Logs images that are drawn out of the same noise after each epoch, by the averaged weights.
struct Grid : Callback {
  explicit Grid(const Tensor& n) : noise(n) {}
  Tensor noise;

  void on_validation_epoch_end(RunContext& run) override {
    if (run.stage != Stage::fit) return;
    auto& ddpm = static_cast<Ddpm&>(run.module);
    const Tensor label = arange(noise.size(0), {.device = ddpm.device()}) % 10;
    const Tensor images = ddpm.draw(noise.to(ddpm.device(), ddpm.beta.dtype()), label).to(kFloat32);
    for (const auto& logger : run.loggers) logger->log_image("drawn", images, run.state.global_step);
    std::filesystem::create_directories(run.root_dir);
    data::save_image(images, run.root_dir + "/drawn.png", {.nrow = 10});
  }
};

int run(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) return 0;
  manual_seed(static_cast<std::uint64_t>(o.trainer.seed.value_or(1)));
  auto test = images(o, "test");
  test.insert(test.end(), {randn_like(test[0]), randint_like(test[1], 0, o.timesteps)});
  data::DataLoader train_loader(data::TensorDataset(images(o, "train")),
                                {.batch_size = o.batch_size, .shuffle = true, .drop_last = true});
  data::DataLoader test_loader(data::TensorDataset(test), {.batch_size = 500});

  Ddpm ddpm(o);
  o.trainer.callbacks = {Grid(randn({10 * o.drawn, 1, 28, 28})), EMA({.decay = o.decay}), FirstSteps(o.record)};
  Trainer trainer(o.trainer);
  trainer.fit(ddpm, train_loader, test_loader);
  const double loss = trainer.validate(ddpm, test_loader)[0]["val_loss"];
  if (trainer.is_global_zero())
    fmt::print("images: {}\nresult: val_loss={:.4f} epochs={} parameters={}\n",
               (std::filesystem::path(o.trainer.default_root_dir) / "drawn.png").string(), loss,
               trainer.current_epoch(), ddpm.parameter_count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
