#include "programs/programs.h"

#include <set>

using namespace levin;
using levin::test::Losses, levin::test::with_options;

namespace {

struct Characters : data::Dataset {
  std::set<char> alphabet;
  Tensor codes;
  int64_t length;

  Characters(const std::string& text, int64_t n) : alphabet(text.begin(), text.end()), length(n) {
    std::vector<int64_t> positions;
    for (char c : text) positions.push_back(std::distance(alphabet.begin(), alphabet.find(c)));
    codes = tensor(positions);
  }
  int64_t size() const override { return (codes.size(0) - 1) / length; }
  data::Sample get(int64_t i, Generator&) const override {
    auto part = codes(Slice(i * length, (i + 1) * length + 1));
    return {part(Slice(nil, -1)), part(Slice(1, nil))};
  }
};

struct Block : nn::Module {
  int64_t w, heads;
  Block(int64_t width, int64_t h) : w(width), heads(h) {}
  nn::LayerNorm& norm1 = add<nn::LayerNorm>("norm1", w);
  nn::Linear& qkv = add<nn::Linear>("qkv", w, 3 * w);
  nn::Linear& out = add<nn::Linear>("out", w, w);
  nn::LayerNorm& norm2 = add<nn::LayerNorm>("norm2", w);
  nn::Sequential& mlp = add<nn::Sequential>("mlp", nn::Linear(w, 4 * w), nn::GELU(), nn::Linear(4 * w, w));

  Tensor forward(const Tensor& input) override {
    const int64_t b = input.size(0), t = input.size(1);
    auto parts = qkv(norm1(input)).view({b, t, 3, heads, w / heads}).permute({2, 0, 3, 1, 4});
    auto y = scaled_dot_product_attention(parts[0], parts[1], parts[2], {.is_causal = true});
    auto x = input + out(y.transpose(1, 2).reshape({b, t, w}));
    return x + mlp(norm2(x));
  }
};

struct LanguageModel : LevinModule {
  int64_t symbols, length, width = 32;
  LanguageModel(int64_t s, int64_t n) : symbols(s), length(n) { head.weight = tokens.weight; }
  nn::Embedding& tokens = add<nn::Embedding>("tokens", symbols, width);
  nn::Embedding& positions = add<nn::Embedding>("positions", length, width);
  nn::Sequential& blocks = add<nn::Sequential>("blocks", Block(width, 4), Block(width, 4));
  nn::LayerNorm& norm = add<nn::LayerNorm>("norm", width);
  nn::Linear& head = add<nn::Linear>("head", width, symbols, {.bias = false});

  Tensor forward(const Tensor& x) override { return head(norm(blocks(tokens(x) + positions(arange(x.size(1)))))); }
  StepOutput training_step(const Batch& batch, int) override {
    auto [x, y] = batch;
    auto loss = cross_entropy(forward(x).flatten(0, 1), y.flatten());
    log("train_loss", loss, {.prog_bar = true});
    return loss;
  }
  Optimizers configure_optimizers() override {
    auto warmup = [](int64_t step) { return std::min(1.0, 0.125 * double(step + 1)); };
    return Optimizers(optim::AdamW(parameters(), {.lr = 3e-3, .betas = {0.9, 0.95}, .weight_decay = 0.1}))
        .schedule([=](auto& o) { return optim::LambdaLR(o, warmup); }, {.interval = Interval::step});
  }
};

void run() {
  std::string text = "the quick brown fox jumps over the lazy dog; pack my box with five dozen liquor jugs. ";
  Characters data(text + text + text + text, 16);
  data::DataLoader loader(data, {.batch_size = 4});
  LanguageModel model(std::ssize(data.alphabet), 16);
  Trainer trainer(with_options({.max_steps = 20, .gradient_clip_val = 1.0, .callbacks = {Losses("language_model")}}));
  trainer.fit(model, loader);
}

}  // namespace

TEST_CASE("a language model with tied weights trains as in PyTorch") { levin::test::in_both_precisions(run); }
