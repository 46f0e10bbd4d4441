#include <levin/trainer/trainer.h>

#include <csignal>

#include "src/trainer_impl.h"

namespace levin {
namespace {

std::map<std::string, double> by_name(const MetricStore::Values& values) { return {values.begin(), values.end()}; }

}  // namespace

Trainer::Trainer(TrainerConfig config) : impl_(std::make_unique<Impl>(std::move(config))) {}
Trainer::~Trainer() = default;

void Trainer::fit(LevinModule& module, const DataModule& data, const std::string& ckpt_path) {
  impl_->fit(module, {.given = data}, ckpt_path);
}

void Trainer::fit(LevinModule& module, LevinDataModule& data, const std::string& ckpt_path) {
  impl_->fit(module, {.datamodule = &data}, ckpt_path);
}

void Trainer::fit(LevinModule& module, data::DataLoader& train, const Loaders& val, const std::string& ckpt_path) {
  fit(module, DataModule{.train = borrowed(train), .val = val}, ckpt_path);
}

Trainer::Results Trainer::validate(LevinModule& module, const DataModule& data, const std::string& ckpt_path) {
  return impl_->measure(module, {.given = data}, Stage::validate, ckpt_path);
}

Trainer::Results Trainer::validate(LevinModule& module, LevinDataModule& data, const std::string& ckpt_path) {
  return impl_->measure(module, {.datamodule = &data}, Stage::validate, ckpt_path);
}

Trainer::Results Trainer::test(LevinModule& module, const DataModule& data, const std::string& ckpt_path) {
  return impl_->measure(module, {.given = data}, Stage::test, ckpt_path);
}

Trainer::Results Trainer::test(LevinModule& module, LevinDataModule& data, const std::string& ckpt_path) {
  return impl_->measure(module, {.datamodule = &data}, Stage::test, ckpt_path);
}

Predictions Trainer::predict(LevinModule& module, const DataModule& data, const std::string& ckpt_path) {
  return impl_->predict(module, {.given = data}, ckpt_path);
}

Predictions Trainer::predict(LevinModule& module, LevinDataModule& data, const std::string& ckpt_path) {
  return impl_->predict(module, {.datamodule = &data}, ckpt_path);
}

void Trainer::save_checkpoint(const std::string& path, bool weights_only) { impl_->save(path, weights_only); }

const TrainerConfig& Trainer::config() const { return impl_->config; }
const TrainState& Trainer::state() const { return impl_->state; }
const MetricStore& Trainer::metrics() const { return impl_->metrics; }

std::map<std::string, double> Trainer::callback_metrics() const {
  std::map<std::string, double> out;
  for (const auto& name : metrics().names()) out[name] = *metrics().find(name);
  return out;
}

std::map<std::string, double> Trainer::logged_metrics() const {
  auto out = by_name(metrics().step_values());
  for (const Split split : {Split::train, Split::validation, Split::test})
    out.merge(by_name(metrics().epoch_values(split)));
  return out;
}

std::map<std::string, double> Trainer::progress_bar_metrics() const { return by_name(metrics().progress_bar_values()); }

bool Trainer::is_last_batch() const { return impl_->running && impl_->running->is_last_batch; }
std::int64_t Trainer::num_training_batches() const { return impl_->counts.train.value_or(0); }
const std::vector<std::int64_t>& Trainer::num_val_batches() const { return impl_->counts.val; }
const std::vector<std::int64_t>& Trainer::num_sanity_val_batches() const { return impl_->counts.sanity_val; }
const std::vector<std::int64_t>& Trainer::num_test_batches() const { return impl_->counts.test; }
const std::vector<std::int64_t>& Trainer::num_predict_batches() const { return impl_->counts.predict; }
std::int64_t Trainer::estimated_stepping_batches() const { return impl_->total_steps(); }

bool Trainer::should_stop() const { return impl_->stop.requested(); }
RunStatus Trainer::status() const { return impl_->status; }
bool Trainer::interrupted() const { return !impl_->running && impl_->status == RunStatus::interrupted; }
bool Trainer::received_sigterm() const {
  return (impl_->running ? SignalGuard::received() : impl_->ended_by) == SIGTERM;
}

Fabric& Trainer::fabric() { return impl_->fabric; }
int Trainer::world_size() const { return impl_->fabric.world_size(); }
int Trainer::global_rank() const { return impl_->fabric.global_rank(); }
int Trainer::local_rank() const { return impl_->fabric.local_rank(); }
int Trainer::node_rank() const { return impl_->fabric.node_rank(); }
bool Trainer::is_global_zero() const { return impl_->fabric.is_global_zero(); }
StopToken& Trainer::stop_token() { return impl_->stop; }

const std::string& Trainer::ckpt_path() const { return impl_->ckpt_path; }
std::string Trainer::checkpoint_path(const std::string& which) const {
  return find_checkpoint(impl_->callbacks, which);
}

}  // namespace levin
