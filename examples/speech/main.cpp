// Writes down numbers that are spoken digit by digit: ./run speech --help
// Graves et al., "Connectionist temporal classification", 2006.
#include <levin/levin.h>

#include <fmt/format.h>

#include "first_steps.h"
#include "voices.h"

using namespace levin;

namespace {

struct Options {
  std::int64_t speakers = 300, held_out = 50, takes = 10, bands = 40, width = 64, batch_size = 32;
  double lr = 3e-3;
  std::string record{};
  TrainerConfig trainer{
      .max_epochs = 8, .num_sanity_val_steps = 0, .default_root_dir = "runs/speech", .logger = "csv,html", .seed = 1};
};

bool parse(int argc, char** argv, Options& o) {
  CommandLine line("Trains a convolutional network to write down numbers that synthetic speakers say.");
  line.add("speakers", o.speakers, "Speakers to train on", 1);
  line.add("held-out", o.held_out, "Other speakers to test on", 1);
  line.add("takes", o.takes, "Numbers that each speaker says", 1);
  line.add("bands", o.bands, "Bands of the mel spectrogram", 1);
  line.add("width", o.width, "Channels of the first convolution", 1);
  line.add("batch-size", o.batch_size, "Recordings per batch", 1);
  line.add("lr", o.lr, "Highest learning rate");
  FirstSteps::add_option(line, o.record);
  line.add_trainer(o.trainer);
  return line.parse(argc, argv);
}

/// Numbers of one to four digits that speakers say: a sample is the recording (24576) and the digits (4) as classes
/// from 1 on, where 0 fills up. Each seed has speakers of its own.
struct Recordings : data::Dataset {
  const std::int64_t speakers, takes;
  const Generator seed;
  Recordings(std::int64_t s, std::int64_t t, std::uint64_t number) : speakers(s), takes(t), seed(number) {}
  std::int64_t size() const override { return speakers * takes; }

  data::Sample get(std::int64_t index, Generator&) const override {
    Generator voice = seed.fork(0, static_cast<std::uint64_t>(index / takes)),
              rng = seed.fork(1, static_cast<std::uint64_t>(index));
    std::vector<std::int64_t> digits(1 + rng.below(4));
    std::string letters = "_";
    for (auto& digit : digits) {
      digit = 1 + static_cast<std::int64_t>(rng.below(10));
      letters += kDigits[static_cast<std::size_t>(digit - 1)] + std::string(rng.below(3), '_');
    }
    digits.resize(4);
    return {Speaker(voice).say(letters, rng), tensor(digits)};
  }
};

std::string text_of(const Tensor& classes) {
  std::string text;
  for (const auto i : classes.to_vector<std::int64_t>())
    if (i > 0) text += static_cast<char>('0' + i - 1);
  return text;
}

struct Recognizer : LevinModule {
  const Options o;
  explicit Recognizer(const Options& options) : o(options) {}
  static nn::Sequential stage(std::int64_t inputs, std::int64_t outputs) {
    return nn::Sequential(nn::Conv1d(inputs, outputs, 5, {.padding = 2, .bias = false}), nn::BatchNorm1d(outputs),
                          nn::ReLU());
  }
  nn::BatchNorm1d& scale = add<nn::BatchNorm1d>("scale", o.bands, nn::BatchNorm1dOptions{.affine = false});
  nn::Sequential& body =
      add<nn::Sequential>("body", stage(o.bands, o.width), nn::MaxPool1d(2), stage(o.width, 2 * o.width),
                          nn::MaxPool1d(2), stage(2 * o.width, 2 * o.width));
  nn::Conv1d& head = add<nn::Conv1d>("head", 2 * o.width, 11, 5, {.padding = 2});
  metrics::CharErrorRate& errors = add_metric<metrics::CharErrorRate>("errors");

  /// Recordings (B, 24576) to the logits of blank and digits (B, 11, 48), from the energies in bands (B, bands, 193).
  Tensor forward(const Tensor& x) override {
    const Tensor energy = mel_spectrogram(x, {.sample_rate = kRate, .n_fft = 256, .n_mels = o.bands});
    return head(body(scale(log(energy + 1e-3))));
  }
  StepOutput training_step(const Batch& batch, int) override {
    auto [x, digits] = batch;
    const Tensor y = log_softmax(forward(x), 1).permute({2, 0, 1});
    const std::vector<std::int64_t> steps(static_cast<std::size_t>(x.size(0)), y.size(0));
    const auto loss = ctc_loss(y, digits, steps, (digits > 0).sum(1).to_vector<std::int64_t>());
    log("train_loss", loss, {.prog_bar = true});
    return loss;
  }
  /// Reads the most probable class of each moment; what repeats without a blank between counts once.
  std::string read(const Tensor& logits) { return text_of(unique_consecutive(logits.argmax(0)).values); }
  void validation_step(const Batch& batch, int) override {
    auto [x, digits] = batch;
    const Tensor y = forward(x);
    double exact = 0;
    for (std::int64_t i = 0; i < x.size(0); ++i) {
      const std::string text = read(y[i]), expected = text_of(digits[i]);
      errors.update({text}, {expected});
      exact += text == expected ? 1 : 0;
    }
    log("val_exact", exact / static_cast<double>(x.size(0)), {.prog_bar = true});
    log("val_errors", errors);
  }
  Optimizers configure_optimizers() override {
    return Optimizers(optim::AdamW(parameters(), {.lr = o.lr}))
        .schedule(
            [this](auto& adam) {
              return optim::OneCycleLR(adam, {.max_lr = o.lr, .total_steps = estimated_stepping_batches()});
            },
            {.interval = Interval::step});
  }
};

int run(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) return 0;
  manual_seed(static_cast<std::uint64_t>(o.trainer.seed.value_or(1)));
  data::DataLoader train_loader(data::InMemoryDataset(Recordings(o.speakers, o.takes, 1), 2),
                                {.batch_size = o.batch_size, .shuffle = true, .drop_last = true});
  data::DataLoader val_loader(data::InMemoryDataset(Recordings(o.held_out, o.takes, 2), 2), {.batch_size = 250});

  Recognizer model(o);
  o.trainer.callbacks = {LearningRateMonitor(), FirstSteps(o.record)};
  Trainer trainer(o.trainer);
  trainer.fit(model, train_loader, val_loader);
  auto metrics = trainer.validate(model, val_loader)[0];
  if (trainer.is_global_zero())
    fmt::print("result: accuracy={:.4f} digit_errors={:.4f} speakers={} held_out={} steps={}\n", metrics["val_exact"],
               metrics["val_errors"], o.speakers, o.held_out, trainer.global_step());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
