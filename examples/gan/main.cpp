// Learns to draw clothes from noise: ./run gan --help
#include <levin/levin.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "judge.h"
#include "lit_gan.h"

using namespace levin;

namespace {

constexpr std::int64_t kJudged = 2000;  // pictures

struct Options {
  GanOptions gan;
  TrainerConfig trainer{.max_epochs = 18,
                        .num_sanity_val_steps = 0,
                        .default_root_dir = "runs/gan",
                        .logger = "csv,tensorboard,html",
                        .seed = 1};
  std::filesystem::path data{}, classifier = "runs/mnist/best";
  std::int64_t batch_size = 32;
  std::int64_t threads = 0;
};

bool parse(int argc, char** argv, Options& o) {
  CommandLine line("Trains a generator of pictures against a discriminator, on Fashion-MNIST.");
  line.add_flag("tiny", o.gan.tiny, "Two small perceptrons in place of the DCGAN");
  line.add("lr", o.gan.lr, "Learning rate of the generator");
  line.add("d-lr", o.gan.d_lr, "Learning rate of the discriminator");
  line.add("accumulate", o.gan.accumulate, "Batches a step of either optimizer", 1);
  line.add("batch-size", o.batch_size, "Pictures a batch", 1);
  line.add("data", o.data, "Folder of the IDX files, plain or .gz");
  line.add("classifier", o.classifier, "Checkpoint of ./run mnist, which judges the pictures");
  line.add("threads", o.threads, "Cores to use; 0 for all");
  line.add_trainer(o.trainer);
  return line.parse(argc, argv);
}

/// Pictures (n, 1, 28, 28) in [-1, 1] as evaluation draws them; the module keeps its mode.
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

/// After each epoch the same noises as pictures, judged; the first 64 as a PNG file, and for every logger that takes
/// pictures.
class Grid final : public Callback {
 public:
  Grid(LitGan& gan, Judge& judge, std::filesystem::path dir, Tensor noise)
      : gan_(gan), judge_(judge), dir_(std::move(dir)), noise_(std::move(noise)) {}
  void on_train_start(RunContext& run) override { save(run, run.state.epoch); }
  void on_train_epoch_end(RunContext& run) override { save(run, run.state.epoch + 1); }

 private:
  void save(RunContext& run, std::int64_t epoch) {
    if (run.config.fast_dev_run > 0) return;
    const Tensor drawn = draw(gan_, noise_), pictures = (drawn.narrow(0, 0, 64) + 1.0) / 2.0;
    const Score score = judge_.score(drawn);
    std::filesystem::create_directories(dir_);
    data::save_image(pictures, dir_ / fmt::format("epoch_{:02}.png", epoch));
    for (const auto& logger : run.loggers) {
      logger->log_image("drawn", pictures, run.state.global_step);
      logger->log_metrics({run.state.epoch, run.state.global_step,
                           {{"confident", score.confident}, {"entropy", score.entropy}}});
    }
  }

  LitGan& gan_;
  Judge& judge_;
  std::filesystem::path dir_;
  Tensor noise_;
};

/// The first pictures of the test set in [-1, 1].
Tensor real_pictures(const data::FashionMnist& data) {
  data::DataLoader loader(data, {.batch_size = kJudged});
  return to_tanh_range((*loader.begin())[0]);
}

int run(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) return 0;
  if (o.threads > 0) set_num_threads(static_cast<int>(o.threads));
  if (o.data.empty()) o.data = data::kFashionMnistDir;
  manual_seed(static_cast<std::uint64_t>(o.trainer.seed.value_or(1)));

  Judge judge(o.classifier);
  const data::FashionMnist pictures("train", o.data), unseen("test", o.data);
  const double accuracy = judge.accuracy(unseen);
  fmt::print("judge: {} is right for {:.2f} % of the test pictures{}\n", o.classifier.string(), 100 * accuracy,
             accuracy < 0.9 ? "; one with 90 % or more would say more of a GAN" : "");

  LitGan gan(o.gan);
  const auto& root = o.trainer.default_root_dir;
  const Tensor noise = randn({kJudged, kNoise, 1, 1});
  const Score real = judge.score(real_pictures(unseen)), untrained = judge.score(draw(gan, noise));
  o.trainer.callbacks.push_back(Grid(gan, judge, root / "grids", noise));
  // The average over the last thousand steps draws better than any one step; short runs average over fewer.
  o.trainer.callbacks.push_back(WeightAveraging({.avg_fn = [](const Tensor& average, const Tensor& now,
                                                              std::int64_t count) {
    const double n = static_cast<double>(count);
    return lerp(now, average, std::min(0.999, (1 + n) / (10 + n)));
  }}));

  const auto start = std::chrono::steady_clock::now();
  data::DataLoader loader(pictures, {.batch_size = o.batch_size, .shuffle = true, .drop_last = true,
                                     .seed = static_cast<std::uint64_t>(o.trainer.seed.value_or(1))});
  Trainer(o.trainer).fit(gan, loader);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const Score drawn = judge.score(draw(gan, noise));
  fmt::print("pictures of every epoch: {}\n", (root / "grids").string());
  if (o.trainer.logger.has("html")) fmt::print("report: {}\n", (root / "report.html").string());
  fmt::print("result: confident={:.4f} entropy={:.4f} real_confident={:.4f} untrained_confident={:.4f} "
             "real_entropy={:.4f} train_seconds={:.1f}\n",
             drawn.confident, drawn.entropy, real.confident, untrained.confident, real.entropy, seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
