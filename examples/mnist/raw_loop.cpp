#include "raw_loop.h"

#include <fmt/format.h>

#include <filesystem>

#include "nets.h"

using namespace levin;

namespace {

struct Scores {
  double loss = 0, acc = 0;
};

Scores evaluate(nn::Module& net, data::DataLoader& loader, std::int64_t batches) {
  const no_grad guard;
  net.eval();
  Scores sum;
  double samples = 0;
  for (auto it = loader.begin(); it != loader.end() && it.index() < batches; ++it) {
    const auto& [x, y] = *it;
    const auto n = static_cast<double>(it->size());
    const auto logits = net(x);
    sum.loss += cross_entropy(logits, y).item<double>() * n;
    sum.acc += accuracy(logits, y).item<double>() * n;
    samples += n;
  }
  net.train();
  return {sum.loss / samples, sum.acc / samples};
}

StateDict copy_of(const StateDict& state) {
  StateDict copy;
  for (const auto& [name, t] : state) copy.set(name, t.clone());
  return copy;
}

}  // namespace

RawResult train_raw(const Options& o, const DataModule& data, FirstStep& first_step) {
  const auto limit = [&](const BatchLimit& l, const data::DataLoader& loader, const char* option) {
    const std::int64_t n = l.of(loader.size(), option);
    return o.trainer.fast_dev_run > 0 ? std::min(n, o.trainer.fast_dev_run) : n;
  };
  const std::int64_t batches = limit(o.trainer.limit_train_batches, *data.train, "--limit-train-batches");
  const std::int64_t val_batches = limit(o.trainer.limit_val_batches, *data.val, "--limit-val-batches");
  const std::int64_t test_batches = limit(o.trainer.limit_test_batches, *data.test, "--limit-test-batches");
  const std::int64_t epochs = o.trainer.fast_dev_run > 0 ? 1 : o.epochs();
  CSVLogger log(std::filesystem::path(o.trainer.default_root_dir) / "metrics.csv");

  nn::Sequential net = make_net(o.model);
  optim::AdamW opt(net.parameters(), {.lr = o.lr / 25});
  optim::OneCycleLR scheduler(opt, {.max_lr = o.lr, .total_steps = epochs * batches});
  RawResult result{.val_acc = -1};
  StateDict best = copy_of(net.state_dict());
  for (std::int64_t epoch = 0, step = 0; epoch < epochs; ++epoch) {
    double loss_now = 0;
    for (auto it = data.train->begin(); it != data.train->end(); ++it) {
      const auto& [x, y] = *it;
      first_step.begin();
      const auto loss = cross_entropy(net(x), y);
      opt.zero_grad();
      loss.backward();
      opt.step();
      scheduler.step();
      loss_now = loss.item<double>();
      if (++step % 50 == 0) log.log_metrics({.epoch = epoch, .step = step, .values = {{"train_loss", loss_now}}});
      if (it.index() + 1 == batches) break;
    }
    const Scores val = evaluate(net, *data.val, val_batches);
    fmt::print("epoch {}/{}  train_loss {:.4f}  val_loss {:.4f}  val_acc {:.4f}\n", epoch + 1, epochs, loss_now,
               val.loss, val.acc);
    std::fflush(stdout);
    log.log_metrics({.epoch = epoch, .step = step, .values = {{"val_loss", val.loss}, {"val_acc", val.acc}}});
    if (val.acc <= result.val_acc) continue;
    result.val_acc = val.acc;
    best = copy_of(net.state_dict());
  }
  net.load_state_dict(best);
  const Scores test = evaluate(net, *data.test, test_batches);
  result.test_acc = test.acc;
  result.test_loss = test.loss;
  if (o.trainer.fast_dev_run > 0) return result;
  log.save();
  result.checkpoint = std::filesystem::path(o.trainer.default_root_dir) / "raw.safetensors";
  interop::save_safetensors(result.checkpoint, best, {{"format", "pt"}});
  return result;
}
