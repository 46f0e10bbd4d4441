// Classifies clothes by a residual network: ./run resnet --help
// He et al., "Deep residual learning for image recognition", 2016.
#include <levin/levin.h>

#include <fmt/format.h>

#include "first_steps.h"

using namespace levin;

namespace {

enum class Depth { resnet20, resnet18 };

struct Options {
  Depth model = Depth::resnet20;
  std::string data = data::kFashionMnistDir, record{};
  std::int64_t batch_size = 128;
  double lr = 0.1;
  TrainerConfig trainer{
      .max_epochs = 9, .num_sanity_val_steps = 0, .default_root_dir = "runs/resnet", .logger = "csv,html", .seed = 1};
};

bool parse(int argc, char** argv, Options& o) {
  CommandLine line("Trains a residual network on Fashion-MNIST.");
  line.add("model", o.model, {{"resnet20", Depth::resnet20}, {"resnet18", Depth::resnet18}},
           "Three stages of three blocks from 16 channels on, or four of two from 64 on");
  line.add_path("data", o.data, "Folder of the IDX files, plain or .gz");
  line.add("batch-size", o.batch_size, "Images per batch", 1);
  line.add("lr", o.lr, "Highest learning rate");
  FirstSteps::add_option(line, o.record);
  line.add_trainer(o.trainer);
  return line.parse(argc, argv);
}

struct Block : nn::Module {
  const std::int64_t inputs, outputs, stride;
  Block(std::int64_t i, std::int64_t o, std::int64_t s) : inputs(i), outputs(o), stride(s) {}
  nn::Conv2d& conv1 = add<nn::Conv2d>("conv1", inputs, outputs, 3, {.stride = stride, .padding = 1, .bias = false});
  nn::BatchNorm2d& bn1 = add<nn::BatchNorm2d>("bn1", outputs);
  nn::Conv2d& conv2 = add<nn::Conv2d>("conv2", outputs, outputs, 3, {.padding = 1, .bias = false});
  nn::BatchNorm2d& bn2 = add<nn::BatchNorm2d>("bn2", outputs);
  nn::Sequential* shortcut =
      inputs == outputs && stride == 1
          ? nullptr
          : &add<nn::Sequential>("shortcut", nn::Conv2d(inputs, outputs, 1, {.stride = stride, .bias = false}),
                                 nn::BatchNorm2d(outputs));

  Tensor forward(const Tensor& x) override {  // (B, inputs, H, W) to (B, outputs, H / stride, W / stride)
    const Tensor y = bn2(conv2(relu(bn1(conv1(x)))));
    return relu(y + (shortcut ? (*shortcut)(x) : x));
  }
};

struct ResNet : LevinModule {
  const Options o;
  const std::int64_t width = o.model == Depth::resnet18 ? 64 : 16, stages = o.model == Depth::resnet18 ? 4 : 3,
                     depth = o.model == Depth::resnet18 ? 2 : 3;
  nn::Conv2d& conv = add<nn::Conv2d>("conv", 1, width, 3, {.padding = 1, .bias = false});
  nn::BatchNorm2d& bn = add<nn::BatchNorm2d>("bn", width);
  nn::ModuleList<Block>& blocks = add<nn::ModuleList<Block>>("blocks");
  nn::Linear& head = add<nn::Linear>("head", width << (stages - 1), 10);

  explicit ResNet(const Options& options) : o(options) {
    std::int64_t channels = width;
    for (std::int64_t stage = 0; stage < stages; ++stage)
      for (std::int64_t i = 0; i < depth; ++i) {
        blocks.append(channels, width << stage, stage > 0 && i == 0 ? 2 : 1);
        channels = width << stage;
      }
  }
  Tensor forward(const Tensor& x) override {  // (B, 1, 28, 28) to (B, 10)
    Tensor h = relu(bn(conv(x)));
    for (auto& block : blocks) h = block(h);
    return head(h.mean({2, 3}));
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
    return Optimizers(optim::SGD(parameters(), {.lr = o.lr, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true}))
        .schedule(
            [this](auto& sgd) {
              return optim::OneCycleLR(
                  sgd, {.max_lr = o.lr, .total_steps = estimated_stepping_batches(), .cycle_momentum = false});
            },
            {.interval = Interval::step});
  }
};

int run(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) return 0;
  manual_seed(static_cast<std::uint64_t>(o.trainer.seed.value_or(1)));
  const data::Compose augment{data::RandomCrop(28, 2), data::RandomHorizontalFlip()};
  data::DataLoader train_loader(data::FashionMnist("train", o.data, augment),
                                {.batch_size = o.batch_size, .shuffle = true, .drop_last = true});
  data::DataLoader test_loader(data::FashionMnist("test", o.data), {.batch_size = 500});

  ResNet net(o);
  o.trainer.callbacks = {LearningRateMonitor(), FirstSteps(o.record)};
  Trainer trainer(o.trainer);
  trainer.fit(net, train_loader, test_loader);
  const double accuracy = trainer.validate(net, test_loader)[0]["val_acc"];
  if (trainer.is_global_zero())
    fmt::print("result: test_accuracy={:.4f} epochs={} parameters={}\n", accuracy, trainer.current_epoch(),
               net.parameter_count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
