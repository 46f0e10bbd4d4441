#include "raw_loop.h"

#include <fmt/format.h>

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
    return o.fast_dev_run ? 1 : l.of(loader.size(), option);
  };
  const std::int64_t batches = limit(o.limit_train, *data.train, "--limit-train-batches");
  const std::int64_t val_batches = limit(o.limit_val, *data.val, "--limit-val-batches");
  const std::int64_t test_batches = limit(o.limit_test, *data.test, "--limit-test-batches");
  const std::int64_t epochs = o.fast_dev_run ? 1 : o.max_epochs;
  CSVLogger log(o.checkpoint / "metrics.csv");

  nn::Sequential net = make_net(o.model);
  optim::AdamW opt(net.parameters(), {.lr = o.lr / 25});
  optim::OneCycleLR scheduler(opt, {.max_lr = o.lr, .total_steps = epochs * batches});
  RawResult result{.val_acc = -1};
  StateDict best = copy_of(net.state_dict());
  for (std::int64_t epoch = 0, step = 0; epoch < epochs; ++epoch) {
    double loss_now = 0;
    for (auto it = data.train->begin(); it != data.train->end(); ++it) {
      const auto& [x, y] = *it;
      const auto loss = cross_entropy(net(x), y);
      opt.zero_grad();
      loss.backward();
      opt.step();
      scheduler.step();
      loss_now = loss.item<double>();
      first_step.done();
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
  if (o.fast_dev_run) return result;
  log.save();
  result.checkpoint = o.checkpoint / "raw.safetensors";
  interop::save_safetensors(result.checkpoint, best, {{"format", "pt"}});
  return result;
}
