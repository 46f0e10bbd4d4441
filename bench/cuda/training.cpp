#include "bench/cuda/training.h"

#include <levin/autograd/autocast.h>
#include <levin/autograd/ops.h>
#include <levin/kernels/cuda.h>
#include <levin/nn/nn.h>
#include <levin/optim/optim.h>

#include <cmath>

namespace levin::bench {

namespace {

struct Block : nn::Module {
  Block(int64_t width, int64_t heads_) : channels(width), heads(heads_) {}
  int64_t channels, heads;
  nn::LayerNorm& before_attention = add<nn::LayerNorm>("before_attention", channels);
  nn::LayerNorm& before_mlp = add<nn::LayerNorm>("before_mlp", channels);
  nn::Linear& qkv = add<nn::Linear>("qkv", channels, 3 * channels);
  nn::Linear& out = add<nn::Linear>("out", channels, channels);
  nn::Sequential& mlp =
      add<nn::Sequential>("mlp", nn::Linear(channels, 4 * channels), nn::GELU(), nn::Linear(4 * channels, channels));

  Tensor forward(const Tensor& x) override {  // (B, T, C)
    const int64_t batch = x.size(0), length = x.size(1);
    const auto parts = qkv(before_attention(x))
                           .view({batch, length, 3, heads, channels / heads})
                           .permute({2, 0, 3, 1, 4})
                           .unbind(0);  // three of (B, H, T, C / H)
    const Tensor y = scaled_dot_product_attention(parts[0], parts[1], parts[2], {.is_causal = true});
    const Tensor h = x + out(y.transpose(1, 2).reshape({batch, length, channels}));
    return h + mlp(before_mlp(h));
  }
};

/// A net with its inputs and labels on the device.
struct TrainingTask {
  std::string net, shape;
  std::shared_ptr<nn::Module> module;
  Tensor x, labels;
};

TrainingTask cnn(Scale scale) {
  const int64_t batch = scale == Scale::full ? 2048 : 4;
  auto net = std::make_shared<nn::Sequential>(nn::Conv2d(1, 32, 3), nn::ReLU(), nn::Conv2d(32, 64, 3), nn::ReLU(),
                                              nn::MaxPool2d(2), nn::Flatten(), nn::Linear(9216, 128), nn::ReLU(),
                                              nn::Linear(128, 10));
  net->to(cuda(0));
  return {"cnn", "batch=" + std::to_string(batch), net, randn({batch, 1, 28, 28}).to(cuda(0)),
          randint(0, 10, {batch}).to(cuda(0))};
}

TrainingTask gpt_blocks(Scale scale) {
  const bool full = scale == Scale::full;
  const int64_t blocks = full ? 8 : 1, batch = full ? 8 : 2, length = full ? 1024 : 16, width = full ? 1024 : 32;
  const int64_t heads = full ? 16 : 2;
  auto net = std::make_shared<nn::Sequential>();
  for (int64_t i = 0; i < blocks; ++i) net->push_back(Block(width, heads));
  net->push_back(nn::LayerNorm(width));
  net->push_back(nn::Flatten(0, 1));
  net->push_back(nn::Linear(width, 256));
  net->to(cuda(0));
  return {"gpt_blocks",
          "blocks=" + std::to_string(blocks) + " batch=" + std::to_string(batch) + " length=" + std::to_string(length) +
              " width=" + std::to_string(width),
          net, randn({batch, length, width}).to(cuda(0)), randint(0, 256, {batch * length}).to(cuda(0))};
}

/// One task in one precision, with its own weights.
class Trainee {
 public:
  Trainee(const std::function<TrainingTask(Scale)>& make, Scale scale, std::string precision)
      : precision_(std::move(precision)),
        dtype_(precision_ == "16-mixed" ? kHalf : kBFloat16),
        task_((manual_seed(3), make(scale))),
        optimizer_(task_.module->parameters(), {.lr = 1e-4}),
        scaler_({.enabled = precision_ == "16-mixed"}) {}

  Tensor step() {
    const std::size_t before = cuda::memory_allocated();
    Tensor loss;
    {
      const autocast mixed(dtype_, precision_ != "32-true");
      loss = cross_entropy((*task_.module)(task_.x), task_.labels);
    }
    activation_bytes_ = cuda::memory_allocated() - before;
    scaler_.scale(loss).backward();
    scaler_.step(optimizer_);
    scaler_.update();
    optimizer_.zero_grad();
    return loss.detach();
  }
  /// Returns the seconds of a step until the device is done; last_loss() returns its loss.
  double timed_step() {
    cuda::Event start(true), end(true);
    start.record();
    last_loss_ = step();
    end.record();
    end.synchronize();
    return start.elapsed_time(end) * 1e-3;
  }

  double last_loss() const { return last_loss_.item<double>(); }
  Json head() const {
    return {{"name", task_.net + "/" + precision_},
            {"net", task_.net},
            {"precision", precision_},
            {"shape", task_.shape},
            {"activation_bytes", activation_bytes_}};
  }

 private:
  std::string precision_;
  DType dtype_;
  TrainingTask task_;
  optim::AdamW optimizer_;
  GradScaler scaler_;
  std::size_t activation_bytes_ = 0;
  Tensor last_loss_;
};

void add_task(Json& rows, const std::function<TrainingTask(Scale)>& make, Scale scale, bool figures) {
  std::vector<std::unique_ptr<Trainee>> trainees;
  for (const char* precision : {"32-true", "16-mixed", "bf16-mixed"})
    trainees.push_back(std::make_unique<Trainee>(make, scale, precision));
  const int warm_up = figures ? 5 : 1, steps = figures ? 20 : 1;
  std::vector<std::vector<double>> seconds(trainees.size());
  for (int i = 0; i < warm_up + steps; ++i) {
    for (std::size_t t = 0; t < trainees.size(); ++t) {
      const double one = trainees[t]->timed_step();
      if (i >= warm_up) seconds[t].push_back(one);
    }
  }
  const double exact = trainees[0]->last_loss();
  for (std::size_t t = 0; t < trainees.size(); ++t) {
    Json row = trainees[t]->head();
    row["loss"] = trainees[t]->last_loss();
    row["ok"] = std::abs(trainees[t]->last_loss() - exact) <= 0.02 * std::abs(exact);
    if (figures) row["seconds"] = summary_of(seconds[t]).median;
    rows.push_back(row);
  }
}

}  // namespace

Json training_rows(Scale scale, bool figures) {
  Json rows = training_rows("cnn", scale, figures);
  for (Json& row : training_rows("gpt_blocks", scale, figures)) rows.push_back(std::move(row));
  return rows;
}

Json training_rows(const std::string& net, Scale scale, bool figures) {
  Json rows = Json::array();
  add_task(rows, net == "cnn" ? cnn : gpt_blocks, scale, figures);
  return rows;
}

}  // namespace levin::bench
