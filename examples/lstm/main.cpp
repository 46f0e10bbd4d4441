// Trains an LSTM on a chaotic time series, or as a language model: ./run lstm --help
// Hochreiter & Schmidhuber, "Long short-term memory", 1997; the series is that of Mackey & Glass, 1977.
#include <levin/levin.h>

#include <fmt/format.h>

#include "first_steps.h"

using namespace levin;

namespace {

enum class Task { series, language };

struct Options {
  Task task = Task::series;
  std::string text = "build/data/bible.txt", record{};
  std::int64_t points = 12000, ahead = 17, hidden = 64, layers = 2, length = 64, batch_size = 32;
  double lr = 3e-3;
  TrainerConfig trainer{.max_epochs = 40,
                        .num_sanity_val_steps = 0,
                        .gradient_clip_val = 1.0,
                        .default_root_dir = "runs/lstm",
                        .logger = "csv,html",
                        .seed = 1};
};

bool parse(int argc, char** argv, Options& o) {
  CommandLine line("Trains an LSTM to predict the Mackey-Glass series, or the next character of a text.");
  line.add("task", o.task, {{"series", Task::series}, {"language", Task::language}}, "What to learn");
  line.add_path("text", o.text, "Text of the language task");
  line.add("points", o.points, "Points of the series, or characters of the text");
  line.add("ahead", o.ahead, "How many points ahead to predict", 1);
  line.add("hidden", o.hidden, "Features of a state", 1);
  line.add("layers", o.layers, "LSTM layers", 1);
  line.add("length", o.length, "Steps of a sequence", 1);
  line.add("batch-size", o.batch_size, "Sequences per batch", 1);
  line.add("lr", o.lr, "Learning rate");
  FirstSteps::add_option(line, o.record);
  line.add_trainer(o.trainer);
  return line.parse(argc, argv);
}

/// Points at whole times of dx/dt = 0.2 x(t - 17) / (1 + x(t - 17)^10) - 0.1 x(t), by Euler's rule with ten steps each.
Tensor mackey_glass(std::int64_t count) {
  std::vector<double> x(171, 1.2);
  while (std::ssize(x) < 10 * (count + 300)) {
    const double late = x[x.size() - 171];
    x.push_back(x.back() + 0.1 * (0.2 * late / (1 + std::pow(late, 10)) - 0.1 * x.back()));
  }
  return tensor(x, {.dtype = kFloat32})(Slice(nil, nil, 10))(Slice(300, 300 + count)) - 1.0;
}

/// Sequences of values and of those that come `ahead` steps later.
struct Windows : data::Dataset {
  Tensor values;
  std::int64_t length, ahead;
  Windows(Tensor v, std::int64_t l, std::int64_t a) : values(std::move(v)), length(l), ahead(a) {}
  std::int64_t size() const override { return (values.size(0) - length - ahead) / (length / 4) + 1; }
  data::Sample get(std::int64_t i, Generator&) const override {
    const Tensor part = values.narrow(0, i * (length / 4), length + ahead);
    return {part(Slice(nil, length)), part(Slice(ahead, nil))};
  }
};

struct Predictor : LevinModule {
  const Options o;
  const std::int64_t symbols;  // 0: the values are numbers
  const std::int64_t inputs = symbols > 0 ? o.hidden : 1, outputs = symbols > 0 ? symbols : 1;
  Predictor(const Options& options, std::int64_t s) : o(options), symbols(s) {}
  nn::Embedding* embedding = symbols > 0 ? &add<nn::Embedding>("embedding", symbols, o.hidden) : nullptr;
  nn::LSTM& lstm = add<nn::LSTM>("lstm", inputs, o.hidden, {.num_layers = o.layers, .batch_first = true});
  nn::Linear& head = add<nn::Linear>("head", o.hidden, outputs);

  Tensor forward(const Tensor& x) override {  // (B, T) to (B, T, outputs)
    return head(lstm(embedding ? (*embedding)(x) : x.unsqueeze(-1)).first);
  }
  Tensor loss(const Batch& batch) {
    auto [x, y] = batch;
    if (symbols > 0) return cross_entropy(forward(x).flatten(0, 1), y.flatten());
    const Slice known(x.size(1) / 2, nil);  // the state has seen half of the sequence
    return mse_loss(forward(x)(Slice(), known, 0), y(Slice(), known));
  }
  StepOutput training_step(const Batch& batch, int) override {
    auto l = loss(batch);
    log("train_loss", l, {.prog_bar = true});
    return l;
  }
  void validation_step(const Batch& batch, int) override { log("val_loss", loss(batch), {.prog_bar = true}); }
  Optimizers configure_optimizers() override {
    return Optimizers(optim::Adam(parameters(), {.lr = o.lr}))
        .schedule([this](auto& adam) { return optim::CosineAnnealingLR(adam, estimated_stepping_batches()); },
                  {.interval = Interval::step});
  }
};

int run(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) return 0;
  manual_seed(static_cast<std::uint64_t>(o.trainer.seed.value_or(1)));
  Tensor values = mackey_glass(o.points);
  if (o.task == Task::language) {
    const std::string text = io::read_text(o.text).substr(0, static_cast<std::size_t>(o.points));
    values = from_data(std::vector<std::uint8_t>(text.begin(), text.end()), {std::ssize(text)}).to(kInt64);
    o.ahead = 1;
  }
  const std::int64_t known = values.size(0) * 9 / 10;
  const Windows train(values.narrow(0, 0, known), o.length, o.ahead);
  const Windows val(values.narrow(0, known, values.size(0) - known), o.length, o.ahead);
  data::DataLoader train_loader(train, {.batch_size = o.batch_size, .shuffle = true, .drop_last = true});
  data::DataLoader val_loader(val, {.batch_size = 256});

  Predictor model(o, o.task == Task::language ? 256 : 0);
  o.trainer.callbacks = {LearningRateMonitor(), FirstSteps(o.record)};
  Trainer trainer(o.trainer);
  trainer.fit(model, train_loader, val_loader);
  const double loss = trainer.validate(model, val_loader)[0]["val_loss"];
  if (!trainer.is_global_zero()) return 0;
  if (o.task == Task::language)
    fmt::print("result: val_loss={:.4f} steps={}\n", loss, trainer.global_step());
  else
    fmt::print("result: nrmse={:.4f} steps={}\n", std::sqrt(loss / var(values, 0).item<double>()),
               trainer.global_step());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
