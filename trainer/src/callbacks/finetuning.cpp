#include <levin/trainer/callbacks/finetuning.h>

#include <levin/nn/layers.h>
#include <levin/trainer/optimizers.h>

#include <fmt/format.h>

#include <algorithm>

#include "src/logging.h"

namespace levin {
namespace {

bool holds(const std::vector<Parameter>& list, const Tensor& t) {
  return std::ranges::any_of(list, [&](const Parameter& p) { return p.is_same(t); });
}

void freeze_norms(nn::Module& module) {
  for (const auto& [name, m] : module.named_modules())
    if (m->as_batch_norm()) m->requires_grad_(false).train(false);
}

std::string group_key(std::size_t optimizer, std::size_t group) { return fmt::format("group/{}/{}", optimizer, group); }

}  // namespace

void BaseFinetuning::freeze(nn::Module& module, bool train_bn) {
  for (const auto& [name, m] : module.named_modules()) {
    const bool on = train_bn && m->as_batch_norm();
    for (const auto& [parameter, t] : m->named_parameters(/*recurse=*/false)) t.requires_grad_(on);
    if (m->as_batch_norm()) m->train(on);
  }
}

void BaseFinetuning::make_trainable(nn::Module& module) {
  module.requires_grad_(true);
  for (const auto& [name, m] : module.named_modules())
    if (m->as_batch_norm()) m->train(true);
}

std::vector<Parameter> BaseFinetuning::trainable_parameters(const nn::Module& root, nn::Module& part, bool train_bn) {
  std::vector<Parameter> own;
  for (const auto& [name, m] : part.named_modules()) {
    if (!train_bn && m->as_batch_norm()) continue;
    for (const auto& [parameter, t] : m->named_parameters(/*recurse=*/false))
      if (t.requires_grad() && !holds(own, t)) own.emplace_back(parameter, t);
  }
  std::vector<Parameter> named;  // under their unique names from the root
  for (const Parameter& p : root.parameters())
    if (holds(own, p)) named.push_back(p);
  return named;
}

void BaseFinetuning::unfreeze_and_add_param_group(nn::Module& root, nn::Module& part, optim::Optimizer& optimizer,
                                                  std::optional<double> lr, double initial_denom_lr, bool train_bn) {
  make_trainable(part);
  if (!train_bn) freeze_norms(part);
  std::vector<Parameter> fresh = trainable_parameters(root, part, train_bn);
  const auto known = optimizer.parameters();
  const std::size_t all = fresh.size();
  std::erase_if(fresh, [&](const Parameter& p) { return holds(known, p); });
  if (fresh.size() != all)
    logging::warn(
        "[finetuning] {} of {} parameters are in the optimizer already and keep their rate: give it only "
        "those that are trained from the start",
        all - fresh.size(), all);
  if (fresh.empty()) return;
  const double rate = lr ? *lr : optimizer.param_groups()[0]["lr"] / initial_denom_lr;
  optimizer.add_param_group({.params = std::move(fresh), .settings = {{"lr", rate}}});
}

StateMap BaseFinetuning::state() const {
  StateMap s;
  std::vector<std::int64_t> counts;
  for (std::size_t i = 0; i < parts_.groups.size(); ++i) {
    counts.push_back(std::ssize(parts_.groups[i]));
    for (std::size_t g = 0; g < parts_.groups[i].size(); ++g) s.set(group_key(i, g), parts_.groups[i][g]);
  }
  s.set("groups", counts);
  s.set("trainable", parts_.trainable);
  s.set("learning_norms", parts_.learning_norms);
  return s;
}

void BaseFinetuning::load_state(const StateMap& s) {
  parts_ = {};
  const auto counts = s.get<std::vector<std::int64_t>>("groups");
  for (std::size_t i = 0; i < counts.size(); ++i) {
    auto& groups = parts_.groups.emplace_back();
    for (std::int64_t g = 0; g < counts[i]; ++g)
      groups.push_back(s.get<std::vector<std::string>>(group_key(i, static_cast<std::size_t>(g))));
  }
  parts_.trainable = s.get<std::vector<std::string>>("trainable");
  parts_.learning_norms = s.get<std::vector<std::string>>("learning_norms");
}

void BaseFinetuning::remember(RunContext& run) {
  parts_ = {};
  for (std::size_t i = 0; i < run.optimizers->size(); ++i) {
    auto& groups = parts_.groups.emplace_back();
    for (const auto& group : run.optimizers->optimizer(i).param_groups()) {
      auto& names = groups.emplace_back();
      for (const Parameter& p : group.params) names.push_back(p.name);
    }
  }
  for (const auto& [name, t] : run.module.named_parameters())
    if (t.requires_grad()) parts_.trainable.push_back(name);
  for (const auto& [name, m] : run.module.named_modules())
    if (m->as_batch_norm() && m->is_training()) parts_.learning_norms.push_back(name);
}

void BaseFinetuning::setup(RunContext& run) {
  if (run.stage == Stage::fit) freeze_before_training(run.module);
}

/// Adds the groups that an earlier run added, before the optimizer's state is loaded.
void BaseFinetuning::on_fit_start(RunContext& run) {
  if (!run.resumed || parts_.groups.empty()) return;
  const auto listed = [](const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (const auto& [name, t] : run.module.named_parameters()) t.requires_grad_(listed(parts_.trainable, name));
  for (const auto& [name, m] : run.module.named_modules())
    if (m->as_batch_norm()) m->train(listed(parts_.learning_norms, name));
  const auto parameters = run.module.parameters();
  for (std::size_t i = 0; i < std::min(run.optimizers->size(), parts_.groups.size()); ++i) {
    optim::Optimizer& optimizer = run.optimizers->optimizer(i);
    for (std::size_t g = optimizer.param_groups().size(); g < parts_.groups[i].size(); ++g) {
      optim::ParamGroup group;
      for (const auto& name : parts_.groups[i][g]) {
        const auto found = std::ranges::find(parameters, name, &Parameter::name);
        if (found == parameters.end())
          throw StateError(
              fmt::format("[finetuning] the checkpoint trains \"{}\", which this network lacks. Resume "
                          "with the network of the checkpoint.",
                          name));
        group.params.push_back(*found);
      }
      optimizer.add_param_group(std::move(group));
    }
  }
}

void BaseFinetuning::on_train_epoch_start(RunContext& run) {
  for (std::size_t i = 0; i < run.optimizers->size(); ++i)
    finetune(run.module, run.state.epoch, run.optimizers->optimizer(i));
  remember(run);
}

BackboneFinetuning::BackboneFinetuning(BackboneFinetuningOptions options) : options_(std::move(options)) {
  const auto positive = [](double value, const char* option) {
    if (!(value > 0))
      throw UsageError(fmt::format("[BackboneFinetuning] {} is {}. Give a number above 0.", option, value));
  };
  positive(options_.backbone_initial_ratio_lr, "backbone_initial_ratio_lr");
  positive(options_.backbone_initial_lr.value_or(1), "backbone_initial_lr");
  positive(options_.initial_denom_lr, "initial_denom_lr");
  if (options_.unfreeze_backbone_at_epoch < 0)
    throw UsageError(fmt::format("[BackboneFinetuning] unfreeze_backbone_at_epoch is {}. Give 0 or more.",
                                 options_.unfreeze_backbone_at_epoch));
  if (!options_.lambda_func) options_.lambda_func = [](std::int64_t) { return 2.0; };
}

StateMap BackboneFinetuning::state() const {
  StateMap s = BaseFinetuning::state();
  s.set("previous_backbone_lr", previous_lr_);
  return s;
}

void BackboneFinetuning::load_state(const StateMap& s) {
  BaseFinetuning::load_state(s);
  previous_lr_ = s.get<double>("previous_backbone_lr");
}

void BackboneFinetuning::freeze_before_training(LevinModule& module) {
  freeze(module.get_submodule(options_.backbone), options_.train_bn);
}

void BackboneFinetuning::finetune(LevinModule& module, std::int64_t epoch, optim::Optimizer& optimizer) {
  if (epoch < options_.unfreeze_backbone_at_epoch) return;
  auto& groups = optimizer.param_groups();
  const double head_lr = groups[0]["lr"];
  if (epoch == options_.unfreeze_backbone_at_epoch) {
    previous_lr_ = options_.backbone_initial_lr.value_or(head_lr * options_.backbone_initial_ratio_lr);
    unfreeze_and_add_param_group(module, module.get_submodule(options_.backbone), optimizer, previous_lr_,
                                 options_.initial_denom_lr, options_.train_bn);
  } else if (groups.size() > 1) {
    const double next = options_.lambda_func(epoch + 1) * previous_lr_;
    previous_lr_ = options_.should_align ? std::min(next, head_lr) : next;
    groups.back()["lr"] = previous_lr_;
  }
  if (options_.verbose)
    logging::info("epoch {}: the backbone's learning rate is {:.{}g}, the head's {:.{}g}", epoch, previous_lr_,
                  options_.rounding, head_lr, options_.rounding);
}

}  // namespace levin
