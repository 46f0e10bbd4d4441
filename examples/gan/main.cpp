// Trains a GAN that draws clothes of a class from noise: ./run gan --help
#include <levin/levin.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "judge.h"
#include "lit_gan.h"

using namespace levin;

namespace {

constexpr std::int64_t kJudged = 2000;  // images that the classifier scores

struct Options {
  GanOptions gan;
  TrainerConfig trainer{.max_epochs = 4,
                        .num_sanity_val_steps = 0,
                        .default_root_dir = "runs/gan",
                        .logger = "csv,tensorboard,html",
                        .seed = 1};
  std::string data{}, classifier = "runs/mnist/best";
  std::int64_t batch_size = 32;
  std::int64_t threads = 0;
};

bool parse(int argc, char** argv, Options& o) {
  CommandLine line("Trains a GAN on Fashion-MNIST: a generator of images against a discriminator.");
  line.add_flag("tiny", o.gan.tiny, "Use two small perceptrons instead of the DCGAN");
  line.add_flag("unconditional", o.gan.unconditional, "Draw images without being told their classes");
  line.add("lr", o.gan.lr, "Learning rate of the generator");
  line.add("d-lr", o.gan.d_lr, "Learning rate of the discriminator");
  line.add("accumulate", o.gan.accumulate, "Batches per step of each optimizer", 1);
  line.add("batch-size", o.batch_size, "Images per batch", 1);
  line.add_path("data", o.data, "Folder of the IDX files, plain or .gz");
  line.add_path("classifier", o.classifier, "Checkpoint of ./run mnist that scores the images");
  line.add("threads", o.threads, "Cores to use; 0 for all");
  line.add_trainer(o.trainer);
  return line.parse(argc, argv);
}

/// Generates images (n, 1, 28, 28) in [-1, 1] in evaluation mode, and restores the module's mode.
Tensor draw(LitGan& gan, const Tensor& noise) {
  const inference_mode guard;
  const bool training = gan.is_training();
  gan.eval();
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < noise.size(0); i += 500)
    parts.push_back(gan.forward(noise.narrow(0, i, std::min<std::int64_t>(500, noise.size(0) - i))));
  gan.train(training);
  return cat(parts, 0);
}

/// After each epoch, generates images from the same noise, scores them, and gives the first 80, a column for each
/// class, to a PNG file and to every logger that takes images.
class Grid final : public Callback {
 public:
  Grid(LitGan& gan, Judge& judge, std::string dir, Tensor noise, Tensor y)
      : gan_(gan), judge_(judge), dir_(std::move(dir)), noise_(std::move(noise)), y_(std::move(y)) {}
  void on_train_start(RunContext& run) override { save(run, run.state.epoch); }
  void on_train_epoch_end(RunContext& run) override { save(run, run.state.epoch + 1); }

 private:
  void save(RunContext& run, std::int64_t epoch) {
    if (run.config.fast_dev_run > 0) return;
    const Tensor drawn = draw(gan_, noise_), images = (drawn.narrow(0, 0, 8 * kClasses) + 1.0) / 2.0;
    const Score score = judge_.score(drawn, y_);
    std::filesystem::create_directories(dir_);
    data::save_image(images, fmt::format("{}/epoch_{:02}.png", dir_, epoch), {.nrow = kClasses});
    for (const auto& logger : run.loggers) {
      logger->log_image("drawn", images, run.state.global_step);
      logger->log_metrics({run.state.epoch,
                           run.state.global_step,
                           {{"confident", score.confident}, {"entropy", score.entropy}, {"as_asked", score.as_asked}}});
    }
  }

  LitGan& gan_;
  Judge& judge_;
  std::string dir_;
  Tensor noise_, y_;
};

Score score_of_real_images(Judge& judge, const data::FashionMnist& data) {
  data::DataLoader loader(data, {.batch_size = kJudged});
  const auto [x, y] = *loader.begin();
  return judge.score(to_tanh_range(x), y);
}

int run(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) return 0;
  if (o.threads > 0) set_num_threads(static_cast<int>(o.threads));
  if (o.data.empty()) o.data = data::kFashionMnistDir;
  manual_seed(static_cast<std::uint64_t>(o.trainer.seed.value_or(1)));

  Judge judge(o.classifier);
  const data::FashionMnist images("train", o.data), unseen("test", o.data);
  const double accuracy = judge.accuracy(unseen);
  fmt::print("judge: {} is right for {:.2f} % of the test images{}\n", o.classifier, 100 * accuracy,
             accuracy < 0.9 ? "; use one with 90 % or more for meaningful scores" : "");

  LitGan gan(o.gan);
  const std::filesystem::path root = o.trainer.default_root_dir;
  const Tensor y = remainder(arange(kJudged), kClasses), noise = gan.noise_for(y);
  const Score real = score_of_real_images(judge, unseen), untrained = judge.score(draw(gan, noise), y);
  o.trainer.callbacks.push_back(Grid(gan, judge, root / "grids", noise, y));
  // The weights averaged over the last thousand steps draw better than those of any one step; short runs average over
  // fewer steps.
  o.trainer.callbacks.push_back(
      WeightAveraging({.avg_fn = [](const Tensor& average, const Tensor& now, std::int64_t count) {
        const double n = static_cast<double>(count);
        return lerp(now, average, std::min(0.999, (1 + n) / (10 + n)));
      }}));

  const auto start = std::chrono::steady_clock::now();
  data::DataLoader loader(images, {.batch_size = o.batch_size,
                                   .shuffle = true,
                                   .drop_last = true,
                                   .seed = static_cast<std::uint64_t>(o.trainer.seed.value_or(1))});
  Trainer(o.trainer).fit(gan, loader);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const Score drawn = judge.score(draw(gan, noise), y);
  fmt::print("images of every epoch: {}\n", (root / "grids").string());
  if (o.trainer.logger.has("html")) fmt::print("report: {}\n", (root / "report.html").string());
  fmt::print(
      "result: confident={:.4f} entropy={:.4f} {}real_confident={:.4f} untrained_confident={:.4f} "
      "real_entropy={:.4f} train_seconds={:.1f}\n",
      drawn.confident, drawn.entropy, o.gan.unconditional ? "" : fmt::format("as_asked={:.4f} ", drawn.as_asked),
      real.confident, untrained.confident, real.entropy, seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
