#include "src/loops/loss_check.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/core/side_by_side.h>
#include <levin/core/warning.h>
#include <levin/distributed/process_group.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "src/loops/replica_run.h"

namespace levin {
namespace {

bool is_finite(const Tensor& t) { return !t.defined() || !t.is_floating() || all(isfinite(t)).item<bool>(); }

/// Ends the second forward.
struct Found {
  std::string what;
};

/// "net.fc1 (Linear)", and which of its weights are not finite.
std::string description(const std::string& name, const nn::Module& module) {
  std::string text = name.empty() ? module.type_name() : fmt::format("{} ({})", name, module.type_name());
  for (const auto& [parameter, value] : module.named_parameters(/*recurse=*/false))
    if (!is_finite(value)) return fmt::format("{}, whose {} is not finite either", text, parameter);
  return text;
}

/// Throws Found in the first module with an output that is not finite.
class OutputHooks {
 public:
  explicit OutputHooks(nn::Module& root) {
    for (const auto& [path, module] : root.named_modules())
      handles_.push_back(module->register_forward_hook([name = path](nn::Module& m, const auto&, const auto& outputs) {
        if (!std::ranges::all_of(outputs, is_finite)) throw Found{description(name, m)};
      }));
  }
  ~OutputHooks() {
    for (HookHandle& handle : handles_) handle.remove();
  }
  OutputHooks(const OutputHooks&) = delete;
  OutputHooks& operator=(const OutputHooks&) = delete;

 private:
  std::vector<HookHandle> handles_;
};

/// Restores the buffers, which a forward may update.
class BufferKeeper {
 public:
  explicit BufferKeeper(const nn::Module& module) {
    for (const auto& [name, buffer] : module.named_buffers()) buffers_.emplace_back(buffer, buffer.clone());
  }
  ~BufferKeeper() {
    for (const auto& [buffer, value] : buffers_) buffer.copy_(value);
  }
  BufferKeeper(const BufferKeeper&) = delete;
  BufferKeeper& operator=(const BufferKeeper&) = delete;

 private:
  std::vector<std::pair<Tensor, Tensor>> buffers_;
};

/// Returns the only child with parameters; null if there are several.
nn::Module* only_network(LevinModule& module) {
  nn::Module* only = nullptr;
  for (const auto& [name, child] : module.named_children()) {
    if (child->parameters().empty()) continue;
    if (std::exchange(only, child)) return nullptr;
  }
  return only;
}

}  // namespace

std::int64_t LossCheck::optimizer_steps() const {
  const auto& steps = run_.state.optimizer_steps;
  return std::accumulate(steps.begin(), steps.end(), std::int64_t{0});
}

void LossCheck::begin_batch(const Batch& batch) {
  if (warned_) return;
  batch_ = &batch;
  random_ = default_generator().state();
  optimizer_steps_ = optimizer_steps();
  if (run_.state.micro > 0) return;
  suspect_.reset();
  skipped_.reset();
}

void LossCheck::take_loss(const Tensor& loss) {
  // The first bad loss of a window is the one to explain.
  if (warned_ || !batch_ || loss.numel() != 1 ||
      (suspect_ && suspect_->loss.ready() && !std::isfinite(suspect_->loss.value())))
    return;
  const std::int64_t step = run_.state.global_step + 1;
  if (loss.device() != kCpu && step % run_.config.log_every_n_steps != 0) return;
  const HostRead value(loss.detach());
  if (value.ready() && std::isfinite(value.value())) return;
  suspect_ = {.batch = *batch_, .random = random_, .step = step, .loss = value};
}

void LossCheck::before_step(const HostRead& skipped) {
  if (warned_ || !suspect_) return;
  skipped_ = skipped;
  if (suspect_->loss.ready() && skipped.ready()) judge();
}

void LossCheck::end_batch(bool logged) {
  batch_ = nullptr;
  if (!suspect_ || (run_.state.micro > 0 && !run_.manual)) return;
  if (run_.manual) skipped_ = HostRead(optimizer_steps() == optimizer_steps_ ? 1.0 : 0.0);
  const bool known = suspect_->loss.ready() && (!skipped_ || skipped_->ready());
  if (known || logged) judge();
  suspect_.reset();
}

void LossCheck::judge() {
  const Suspect suspect = std::move(*suspect_);
  suspect_.reset();
  const double loss = suspect.loss.value();
  if (std::isfinite(loss) || (skipped_ && skipped_->value() != 0)) return;
  warned_ = true;
  Strategy& strategy = *run_.strategy;
  if (strategy.stages() && !strategy.is_global_zero()) return;  // the loss was sent by rank zero
  const std::string rank = strategy.world_size() > 1 ? fmt::format(" on rank {}", strategy.rank()) : "";
  warn(fmt::format("[fit] loss is {} at step {}{}{}. Lower the learning rate, clip gradients or use detect_anomaly.",
                   std::isnan(loss) ? std::abs(loss) : loss, suspect.step, rank, cause(suspect)));
}

/// Returns an empty text if it is not known.
std::string LossCheck::cause(const Suspect& suspect) const {
  for (const Tensor& t : suspect.batch.tensors)
    if (!is_finite(t)) return ": the batch holds values that are not finite";
  Strategy& strategy = *run_.strategy;
  if (run_.manual || strategy.stages() || strategy.sharded_weights()) return {};
  for (nn::Module* network : {static_cast<nn::Module*>(&run_.module), only_network(run_.module)}) {
    try {
      if (!network) continue;
      forward_again(suspect, *network);
      return ": forward is finite for this batch, so look at what computes the loss from it";
    } catch (const Found& found) {
      return ": the first module whose output is not finite is " + found.what;
    } catch (const std::exception&) {
      continue;  // there is no forward, it takes other arguments, or it communicates
    }
  }
  return {};
}

void LossCheck::forward_again(const Suspect& suspect, nn::Module& network) const {
  const no_grad guard;
  const BufferKeeper keeper(run_.module);
  Generator random;
  random.set_state(suspect.random);
  const DefaultGeneratorGuard draws(random);
  const distributed::NoCollectives alone;
  const OutputHooks hooks(run_.module);
  const auto scope = run_.precision->step_scope();
  // Its logged values are dropped with it.
  ReplicaRun(run_.module)
      .step(0, run_.module, run_.precision->convert(suspect.batch),
            [&](std::size_t, LevinModule&, const Batch& batch) { return network.call({batch[0]}); });
}

}  // namespace levin
