// Translates dates in words into ISO 8601 by a Transformer, "Tuesday, 3 March 1987" to "1987-03-03": ./run translate
// --help
// Vaswani et al., "Attention is all you need", 2017.
#include <levin/levin.h>

#include <fmt/format.h>

#include <ctime>

#include "first_steps.h"

using namespace levin;

namespace {

constexpr std::int64_t kPad = 0, kBegin = 1, kEnd = 2;  // then bytes from ' ' on
constexpr std::int64_t kSymbols = 3 + 96;

struct Options {
  std::int64_t dates = 20000, held_out = 1000, width = 64, heads = 4, layers = 2, batch_size = 64;
  double lr = 2e-3;
  std::string record{};
  TrainerConfig trainer{.max_epochs = 6,
                        .num_sanity_val_steps = 0,
                        .gradient_clip_val = 1.0,
                        .default_root_dir = "runs/translate",
                        .logger = "csv,html",
                        .seed = 1};
};

bool parse(int argc, char** argv, Options& o) {
  CommandLine line("Trains a Transformer to translate dates in words into ISO 8601.");
  line.add("dates", o.dates, "Dates to train on", 1);
  line.add("held-out", o.held_out, "Other dates to test on", 1);
  line.add("width", o.width, "Features of a character", 1);
  line.add("heads", o.heads, "Attention heads", 1);
  line.add("layers", o.layers, "Layers of the encoder and of the decoder", 1);
  line.add("batch-size", o.batch_size, "Dates per batch", 1);
  line.add("lr", o.lr, "Highest learning rate");
  FirstSteps::add_option(line, o.record);
  line.add_trainer(o.trainer);
  return line.parse(argc, argv);
}

Tensor encode(const std::string& text) {
  std::vector<std::int64_t> codes{kBegin};
  for (const char c : text) codes.push_back(3 + c - ' ');
  codes.push_back(kEnd);
  return tensor(codes);
}

std::string decode(const Tensor& codes) {  // (T)
  std::string text;
  for (const auto code : codes.to_vector<std::int64_t>()) {
    if (code == kEnd) break;
    if (code > kEnd) text += static_cast<char>(code - 3 + ' ');
  }
  return text;
}

/// Random dates from 1900 to 2099 in six notations. Every tenth day belongs to the dates that are held out.
struct Dates : data::Dataset {
  std::vector<data::Sample> samples;

  Dates(std::int64_t count, bool held_out) {
    Generator rng(held_out ? 2 : 1);
    while (size() < count) {
      const auto day = static_cast<std::int64_t>(rng.next_u64() % 73049), notation = day / 10 % 6;
      if ((day % 10 == 0) == held_out) samples.push_back(sample(day - 25567, notation));
    }
  }
  std::int64_t size() const override { return std::ssize(samples); }
  data::Sample get(std::int64_t i, Generator&) const override { return samples[static_cast<std::size_t>(i)]; }

  static std::string text_of(const std::tm& date, const char* format) {
    char text[64];
    return {text, std::strftime(text, sizeof text, format, &date)};
  }
  /// Characters of the words and of the ISO form of a day, counted from 1970.
  static data::Sample sample(std::int64_t day, std::int64_t notation) {
    static const std::array formats = {"%A, %-d %B %Y", "%B %-d, %Y",  "%-d %b %Y",
                                       "%d/%m/%Y",      "%a %b %d %Y", "%-d.%-m.%Y"};
    const std::time_t time = day * 86400;
    std::tm date{};
    gmtime_r(&time, &date);
    return {encode(text_of(date, formats[static_cast<std::size_t>(notation)])), encode(text_of(date, "%Y-%m-%d"))};
  }
};

struct Translator : LevinModule {
  const Options o;
  explicit Translator(const Options& options) : o(options) {}
  nn::Embedding& symbols = add<nn::Embedding>("symbols", kSymbols, o.width, {.padding_idx = kPad});
  nn::Embedding& positions = add<nn::Embedding>("positions", 64, o.width);
  nn::Transformer& transformer = add<nn::Transformer>(
      "transformer", {.d_model = o.width,
                      .nhead = o.heads,
                      .num_encoder_layers = o.layers,
                      .num_decoder_layers = o.layers,
                      .layer = {.dim_feedforward = 4 * o.width, .dropout = 0, .batch_first = true}});
  nn::Linear& head = add<nn::Linear>("head", o.width, kSymbols);

  Tensor embed(const Tensor& x) { return symbols(x) + positions(arange(x.size(1), {.device = x.device()})); }
  /// Words (B, S) and the beginning of the answers (B, T) to the logits of what follows (B, T, symbols).
  Tensor logits(const Tensor& words, const Tensor& begin) {
    const Tensor hidden = words == kPad;
    return head(transformer(embed(words), embed(begin), {.src_key_padding_mask = hidden},
                            {.memory_key_padding_mask = hidden, .tgt_is_causal = true}));
  }
  StepOutput training_step(const Batch& batch, int) override {
    auto [words, answer] = batch;
    const Tensor y = logits(words, answer(Slice(), Slice(nil, -1)));
    const auto loss = cross_entropy(y.flatten(0, 1), answer(Slice(), Slice(1, nil)).flatten(), {.ignore_index = kPad});
    log("train_loss", loss, {.prog_bar = true});
    return loss;
  }
  /// Takes the most probable character again and again.
  Tensor translate(const Tensor& words) {
    Tensor text = full({words.size(0), 1}, kBegin, {.dtype = kInt64, .device = words.device()});
    for (int i = 0; i < 11; ++i) text = cat({text, logits(words, text)(Slice(), -1).argmax(1, true)}, 1);
    return text;
  }
  void validation_step(const Batch& batch, int) override {
    auto [words, answer] = batch;
    log("val_exact", (translate(words) == answer).all(1).to(kFloat32).mean(), {.prog_bar = true});
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
  const auto collate = data::pad_collate({.value = kPad, .places = {0, 1}, .lengths = false});
  data::DataLoader train_loader(Dates(o.dates, false),
                                {.batch_size = o.batch_size, .shuffle = true, .collate = collate});
  data::DataLoader val_loader(Dates(o.held_out, true), {.batch_size = 250, .collate = collate});

  Translator model(o);
  o.trainer.callbacks = {LearningRateMonitor(), FirstSteps(o.record)};
  Trainer trainer(o.trainer);
  trainer.fit(model, train_loader, val_loader);
  const double exact = trainer.validate(model, val_loader)[0]["val_exact"];
  if (!trainer.is_global_zero()) return 0;

  model.eval();
  const inference_mode guard;
  for (std::int64_t i = 0; i < 6; ++i) {
    const Tensor words = Dates::sample(-6000 + 4321 * i, i)[0];
    fmt::print("{:<28} {}\n", decode(words), decode(model.translate(words.unsqueeze(0).to(model.device()))[0]));
  }
  fmt::print("result: exact={:.4f} held_out={} steps={}\n", exact, o.held_out, trainer.global_step());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
