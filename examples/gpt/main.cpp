// Trains a language model on the King James Bible by characters or byte pairs, and lets it write: ./run gpt --help
#include <levin/levin.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "first_steps.h"

using namespace levin;

namespace {

struct Options {
  std::string text = "build/data/bible.txt";
  std::int64_t vocab_size = 0, width = 128, layers = 3, heads = 4, context = 64, batch_size = 16, sample = 400;
  double lr = 3e-3, temperature = 0.8;
  std::string record{};
  TrainerConfig trainer{.max_epochs = -1,
                        .max_steps = 2800,
                        .val_check_interval = 700,
                        .check_val_every_n_epoch = std::nullopt,
                        .num_sanity_val_steps = 0,
                        .gradient_clip_val = 1.0,
                        .default_root_dir = "runs/gpt",
                        .logger = "csv,html",
                        .seed = 1};
};

bool parse(int argc, char** argv, Options& o) {
  CommandLine line("Trains a Transformer to predict the next token of a text, and writes a sample.");
  line.add_path("text", o.text, "Text to learn; its last tenth is held out");
  line.add("vocab-size", o.vocab_size, "Tokens of a byte-pair encoding, 257 or more; 0: each character is a token");
  line.add("width", o.width, "Features of a token", 1);
  line.add("layers", o.layers, "Transformer layers", 1);
  line.add("heads", o.heads, "Attention heads", 1);
  line.add("context", o.context, "Tokens that a prediction may depend on", 1);
  line.add("batch-size", o.batch_size, "Sequences per batch", 1);
  line.add("lr", o.lr, "Highest learning rate");
  line.add("sample", o.sample, "Tokens to write at the end");
  line.add("temperature", o.temperature, "Divides the logits of the sample");
  FirstSteps::add_option(line, o.record);
  line.add_trainer(o.trainer);
  return line.parse(argc, argv);
}

/// A text as numbers of tokens, and back.
struct Tokenizer {
  std::string alphabet{};  // without byte pairs
  std::optional<data::BytePairTokenizer> pairs{};

  Tokenizer(const std::string& text, std::int64_t vocab_size) {
    if (vocab_size > 0) {
      pairs = data::BytePairTokenizer::train(std::vector{text}, {.vocab_size = vocab_size});
    } else {
      const std::set<char> used(text.begin(), text.end());
      alphabet.assign(used.begin(), used.end());
    }
  }
  std::int64_t size() const { return pairs ? pairs->vocab_size() : std::ssize(alphabet); }
  Tensor encode(const std::string& text) const {
    if (pairs) return tensor(pairs->encode(text));
    std::vector<std::int64_t> numbers;
    for (const char c : text) numbers.push_back(static_cast<std::int64_t>(alphabet.find(c)));
    return tensor(numbers);
  }
  std::string decode(const std::vector<std::int64_t>& numbers) const {
    if (pairs) return pairs->decode(numbers);
    std::string text;
    for (const auto n : numbers) text += alphabet[static_cast<std::size_t>(n)];
    return text;
  }
};

struct Gpt : LevinModule {
  const Options o;
  const std::int64_t tokens;
  const double tokens_per_character;
  nn::Embedding& embedding = add<nn::Embedding>("embedding", tokens, o.width);
  nn::Embedding& positions = add<nn::Embedding>("positions", o.context, o.width);
  nn::ModuleList<nn::TransformerEncoderLayer>& layers = add<nn::ModuleList<nn::TransformerEncoderLayer>>("layers");
  nn::LayerNorm& norm = add<nn::LayerNorm>("norm", o.width);
  nn::Linear& head = add<nn::Linear>("head", o.width, tokens, {.bias = false});

  Gpt(const Options& options, std::int64_t vocabulary, double per_character)
      : o(options), tokens(vocabulary), tokens_per_character(per_character) {
    for (std::int64_t i = 0; i < o.layers; ++i)
      layers.append(nn::TransformerEncoderLayer(o.width, o.heads,
                                                {.dim_feedforward = 4 * o.width,
                                                 .dropout = 0,
                                                 .activation = nn::TransformerActivation::gelu,
                                                 .batch_first = true,
                                                 .norm_first = true}));
    head.weight = embedding.weight;
    nn::init::normal_(embedding.weight, 0, 0.02);
    nn::init::normal_(positions.weight, 0, 0.02);
  }

  Tensor forward(const Tensor& x) override {  // (B, T) tokens to (B, T, tokens) logits
    Tensor h = embedding(x) + positions(arange(x.size(1), {.device = x.device()}));
    for (auto& layer : layers) h = layer(h, {.is_causal = true});
    return head(norm(h));
  }
  Tensor loss(const Batch& batch) {
    auto [x, y] = batch;
    return cross_entropy(forward(x).flatten(0, 1), y.flatten());
  }
  StepOutput training_step(const Batch& batch, int) override {
    auto l = loss(batch);
    log("train_loss", l * tokens_per_character, {.prog_bar = true});
    return l;
  }
  void validation_step(const Batch& batch, int) override {
    log("val_loss", loss(batch) * tokens_per_character, {.prog_bar = true});
  }
  Optimizers configure_optimizers() override {
    return Optimizers(optim::AdamW(parameters(), {.lr = o.lr, .betas = {0.9, 0.95}, .weight_decay = 0.1}))
        .schedule(
            [this](auto& adam) {
              return optim::OneCycleLR(adam,
                                       {.max_lr = o.lr, .total_steps = estimated_stepping_batches(), .pct_start = 0.1});
            },
            {.interval = Interval::step});
  }

  /// Draws the next token again and again.
  std::vector<std::int64_t> write(std::vector<std::int64_t> text, std::int64_t count, double temperature) {
    const inference_mode guard;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto seen = std::min<std::int64_t>(o.context, std::ssize(text));
      const Tensor x = tensor(std::vector<std::int64_t>(text.end() - seen, text.end())).unsqueeze(0).to(device());
      const Tensor p = softmax(forward(x)(0, -1) / temperature, 0);
      text.push_back(multinomial(p, 1).item<std::int64_t>());
    }
    return text;
  }
};

int run(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) return 0;
  manual_seed(static_cast<std::uint64_t>(o.trainer.seed.value_or(1)));
  const std::string text = io::read_text(o.text);
  const Tokenizer tokenizer(text, o.vocab_size);
  const Tensor tokens = tokenizer.encode(text);
  const std::int64_t held_out = tokens.size(0) / 10, known = tokens.size(0) - held_out;
  const data::TokenBlockDataset train(tokens.narrow(0, 0, known), o.context, 1),
      val(tokens.narrow(0, known, held_out), o.context);

  Gpt gpt(o, tokenizer.size(), double(tokens.size(0)) / double(text.size()));
  data::DataLoader train_loader(train, {.batch_size = o.batch_size, .shuffle = true, .drop_last = true});
  data::DataLoader val_loader(val, {.batch_size = 4 * o.batch_size});
  o.trainer.callbacks = {LearningRateMonitor(), FirstSteps(o.record)};
  Trainer trainer(o.trainer);
  trainer.fit(gpt, train_loader, val_loader);
  const double val_loss = trainer.validate(gpt, val_loader)[0].at("val_loss");
  if (!trainer.is_global_zero()) return 0;

  gpt.eval();
  const std::string sample = tokenizer.decode(gpt.write({tokens[0].item<std::int64_t>()}, o.sample, o.temperature));
  io::write_file(std::filesystem::path(o.trainer.default_root_dir) / "sample.txt", sample);
  fmt::print("{}\n", sample);
  fmt::print("result: val_loss={:.4f} steps={} tokens={} parameters={}\n", val_loss, trainer.global_step(),
             tokenizer.size(), gpt.parameter_count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
