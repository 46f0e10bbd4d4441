// Classifies clothes by a vision transformer: ./run vit --help
// Dosovitskiy et al., "An image is worth 16x16 words: transformers for image recognition at scale", 2021.
#include <levin/levin.h>

#include <fmt/format.h>

#include "first_steps.h"

using namespace levin;

namespace {

struct Options {
  std::string data = data::kFashionMnistDir, record{};
  std::int64_t patch = 4, width = 64, heads = 4, layers = 4, batch_size = 64;
  double lr = 1.5e-3;
  TrainerConfig trainer{.max_epochs = 12,
                        .num_sanity_val_steps = 0,
                        .gradient_clip_val = 1.0,
                        .default_root_dir = "runs/vit",
                        .logger = "csv,html",
                        .seed = 1};
};

bool parse(int argc, char** argv, Options& o) {
  CommandLine line("Trains a vision transformer on Fashion-MNIST.");
  line.add_path("data", o.data, "Folder of the IDX files, plain or .gz");
  line.add("patch", o.patch, "Height and width of a patch in pixels", 1);
  line.add("width", o.width, "Features of a patch", 1);
  line.add("heads", o.heads, "Attention heads", 1);
  line.add("layers", o.layers, "Transformer layers", 1);
  line.add("batch-size", o.batch_size, "Images per batch", 1);
  line.add("lr", o.lr, "Highest learning rate");
  FirstSteps::add_option(line, o.record);
  line.add_trainer(o.trainer);
  return line.parse(argc, argv);
}

struct Vit : LevinModule {
  const Options o;
  const std::int64_t patches = (28 / o.patch) * (28 / o.patch);
  nn::Conv2d& embedding = add<nn::Conv2d>("embedding", 1, o.width, o.patch, {.stride = o.patch});
  Parameter& token = register_parameter("token", zeros({1, 1, o.width}));
  Parameter& positions = register_parameter("positions", randn({1, 1 + patches, o.width}));
  nn::TransformerEncoder& encoder =
      add<nn::TransformerEncoder>("encoder", o.width, o.heads, o.layers,
                                  nn::TransformerLayerOptions{.dim_feedforward = 4 * o.width,
                                                              .dropout = 0,
                                                              .activation = nn::TransformerActivation::gelu,
                                                              .batch_first = true,
                                                              .norm_first = true},
                                  true);
  nn::Linear& head = add<nn::Linear>("head", o.width, 10);

  explicit Vit(const Options& options) : o(options) {}
  Tensor forward(const Tensor& x) override {                      // (B, 1, 28, 28) to (B, 10)
    const Tensor seen = embedding(x).flatten(2).transpose(1, 2);  // (B, patches, width)
    const Tensor tokens = cat({token.expand({x.size(0), 1, o.width}), seen}, 1) + positions;
    return head(encoder(tokens)(Slice(), 0));
  }
  StepOutput training_step(const Batch& batch, int) override {
    auto [x, y] = batch;
    const auto loss = cross_entropy(forward(x), y);
    log("train_loss", loss, {.prog_bar = true});
    return loss;
  }
  void validation_step(const Batch& batch, int) override {
    auto [x, y] = batch;
    log("val_acc", accuracy(forward(x), y), {.prog_bar = true});
  }
  Optimizers configure_optimizers() override {
    return Optimizers(optim::AdamW(parameters(), {.lr = o.lr, .weight_decay = 0.05}))
        .schedule(
            [this](auto& adam) {
              return optim::OneCycleLR(adam,
                                       {.max_lr = o.lr, .total_steps = estimated_stepping_batches(), .pct_start = 0.1});
            },
            {.interval = Interval::step});
  }
};

int run(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) return 0;
  manual_seed(static_cast<std::uint64_t>(o.trainer.seed.value_or(1)));
  data::DataLoader train_loader(data::FashionMnist("train", o.data, data::RandomHorizontalFlip()),
                                {.batch_size = o.batch_size, .shuffle = true, .drop_last = true});
  data::DataLoader test_loader(data::FashionMnist("test", o.data), {.batch_size = 500});

  Vit vit(o);
  o.trainer.callbacks = {LearningRateMonitor(), FirstSteps(o.record)};
  Trainer trainer(o.trainer);
  trainer.fit(vit, train_loader, test_loader);
  const double accuracy = trainer.validate(vit, test_loader)[0]["val_acc"];
  if (trainer.is_global_zero())
    fmt::print("result: test_accuracy={:.4f} epochs={} parameters={}\n", accuracy, trainer.current_epoch(),
               vit.parameter_count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
