#include "programs/programs.h"

#include <set>

using namespace levin;
using levin::test::Losses;

namespace {

struct Characters : data::Dataset {
  Tensor codes;
  int64_t length, symbols;

  Characters(const std::string& text, int64_t length_) : length(length_) {
    const std::set<char> alphabet(text.begin(), text.end());
    std::vector<int64_t> positions;
    for (char c : text) positions.push_back(std::distance(alphabet.begin(), alphabet.find(c)));
    codes = tensor(positions);
    symbols = std::ssize(alphabet);
  }
  int64_t size() const override { return (codes.size(0) - 1) / length; }
  data::Sample get(int64_t i, Generator&) const override {
    auto part = codes(Slice(i * length, (i + 1) * length + 1));
    return {part(Slice(nil, -1)), part(Slice(1, nil))};
  }
};

struct Block : nn::Module {
  const int64_t heads;
  nn::LayerNorm& norm1;
  nn::Linear& qkv;
  nn::Linear& out;
  nn::LayerNorm& norm2;
  nn::Sequential& mlp;

  Block(int64_t width, int64_t heads_)
      : heads(heads_),
        norm1(add<nn::LayerNorm>("norm1", Shape{width})),
        qkv(add<nn::Linear>("qkv", width, 3 * width)),
        out(add<nn::Linear>("out", width, width)),
        norm2(add<nn::LayerNorm>("norm2", Shape{width})),
        mlp(add<nn::Sequential>("mlp", nn::Linear(width, 4 * width), nn::GELU(), nn::Linear(4 * width, width))) {}

  Tensor forward(const Tensor& input) override {
    const int64_t b = input.size(0), t = input.size(1), w = input.size(2);
    auto parts = qkv(norm1(input)).view({b, t, 3, heads, w / heads}).permute({2, 0, 3, 1, 4});
    auto y = scaled_dot_product_attention(parts[0], parts[1], parts[2], {.is_causal = true});
    auto x = input + out(y.transpose(1, 2).reshape({b, t, w}));
    return x + mlp(norm2(x));
  }
};

struct LanguageModel : LevinModule {
  nn::Embedding& tokens;
  nn::Embedding& positions;
  nn::Sequential& blocks;
  nn::LayerNorm& norm;
  nn::Linear& head;

  LanguageModel(int64_t symbols, int64_t length, int64_t width = 32)
      : tokens(add<nn::Embedding>("tokens", symbols, width)),
        positions(add<nn::Embedding>("positions", length, width)),
        blocks(add<nn::Sequential>("blocks", Block(width, 4), Block(width, 4))),
        norm(add<nn::LayerNorm>("norm", Shape{width})),
        head(add<nn::Linear>("head", width, symbols, {.bias = false})) {
    head.weight = tokens.weight;
  }

  Tensor forward(const Tensor& x) override { return head(norm(blocks(tokens(x) + positions(arange(x.size(1)))))); }
  StepOutput training_step(const Batch& batch, int) override {
    auto [x, y] = batch;
    auto loss = cross_entropy(forward(x).flatten(0, 1), y.flatten());
    log("train_loss", loss, {.prog_bar = true});
    return loss;
  }
  Optimizers configure_optimizers() override {
    return Optimizers(optim::AdamW(parameters(), {.lr = 3e-3, .betas = {0.9, 0.95}, .weight_decay = 0.1}))
        .schedule(
            [](auto& o) { return optim::LambdaLR(o, [](int64_t i) { return std::min(1.0, 0.125 * double(i + 1)); }); },
            {.interval = Interval::step});
  }
};

void run(TrainerConfig config) {
  std::string text;
  for (int i = 0; i < 4; ++i)
    text +=
        "the quick brown fox jumps over the lazy dog; pack my box with "
        "five dozen liquor jugs. ";
  Characters data(text, 16);
  data::DataLoader loader(data, {.batch_size = 4});
  LanguageModel model(data.symbols, 16);
  config.max_steps = 20;
  config.gradient_clip_val = 1.0;
  config.callbacks = {Losses("language_model")};
  Trainer(config).fit(model, loader);
}

}  // namespace

TEST_CASE("a language model with tied weights trains as in PyTorch") { levin::test::in_both_precisions(run); }
