#include <levin/trainer/callbacks/model_pruning.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/trainer/precision.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/logging.h"

namespace levin {
namespace {

bool is_structured(PruningFn fn) { return fn == PruningFn::ln_structured || fn == PruningFn::random_structured; }
bool is_random(PruningFn fn) { return fn == PruningFn::random_unstructured || fn == PruningFn::random_structured; }

/// Importance of each weight: its magnitude, or a random number.
std::vector<double> importance_of(const Tensor& weight, PruningFn fn) {
  if (is_random(fn)) return rand({weight.numel()}, {.dtype = kFloat64}).to_vector<double>();
  return abs(weight.to(kCpu, kFloat64)).contiguous().to_vector<double>();
}

/// Masks the `count` least important entries among those whose mask is 1; ties are broken by index.
void remove_least(const std::vector<double>& importance, std::vector<float>& mask, std::int64_t count) {
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < mask.size(); ++i)
    if (mask[i] != 0) kept.push_back(i);
  const auto end = kept.begin() + std::min<std::ptrdiff_t>(count, std::ssize(kept));
  std::partial_sort(kept.begin(), end, kept.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(importance[a], a) < std::pair(importance[b], b);
  });
  for (auto it = kept.begin(); it != end; ++it) mask[*it] = 0;
}

std::int64_t ones_in(const std::vector<float>& mask) { return std::ranges::count(mask, 1.0f); }

}  // namespace

ModelPruning::ModelPruning(ModelPruningOptions options) : options_(std::move(options)) {
  if (const auto* part = std::get_if<double>(&options_.amount); part && !(*part >= 0 && *part <= 1))
    throw UsageError(
        fmt::format("[ModelPruning] amount is {}. Give a fraction from 0 to 1, or a whole number.", *part));
  if (const auto* number = std::get_if<std::int64_t>(&options_.amount); number && *number < 0)
    throw UsageError(fmt::format("[ModelPruning] amount is {}. Give 0 or more.", *number));
  if (is_structured(options_.pruning_fn)) options_.use_global_unstructured = false;
}

double ModelPruning::sparsity(const std::string& parameter) const {
  double zeros = 0, all = 0;
  for (const auto& [name, mask] : masks_) {
    if (!parameter.empty() && name != parameter) continue;
    all += static_cast<double>(mask.numel());
    zeros += static_cast<double>(mask.numel()) - mask.sum().item<double>();
  }
  return all > 0 ? zeros / all : 0.0;
}

StateDict ModelPruning::tensors() const {
  StateDict out;
  out.merge("mask.", masks_);
  out.merge("first.", first_);
  return out;
}

void ModelPruning::load_tensors(const StateDict& tensors) {
  masks_ = tensors.sub("mask.");
  first_ = tensors.sub("first.");
}

ModelPruning::Targets ModelPruning::targets(RunContext& run) const {
  Targets out;
  const StateDict weights = run.precision->weights(run.module);
  for (const auto& [name, t] : run.module.named_parameters()) {
    const bool asked =
        options_.parameters_to_prune.empty()
            ? std::ranges::find(options_.parameter_names, name.substr(name.rfind('.') + 1)) !=
                  options_.parameter_names.end()
            : std::ranges::find(options_.parameters_to_prune, name) != options_.parameters_to_prune.end();
    if (asked) out.emplace_back(name, weights.at(name));
  }
  for (const auto& name : options_.parameters_to_prune)
    if (std::ranges::find(out, name, &Targets::value_type::first) == out.end())
      throw UsageError(fmt::format("[ModelPruning] the network has no parameter \"{}\". Correct the name.", name));
  if (out.empty()) throw UsageError("[ModelPruning] the network has no parameter to prune. Name some.");
  return out;
}

void ModelPruning::on_fit_start(RunContext& run) {
  const Targets all = targets(run);
  if (run.resumed) return;
  masks_ = first_ = {};
  if (!options_.use_lottery_ticket_hypothesis) return;
  for (const auto& [name, t] : all) first_.set(name, t.detach().clone());
}

/// Returns how many of `left` to prune.
std::int64_t ModelPruning::count_of(std::int64_t left, std::int64_t epoch) const {
  if (const auto* number = std::get_if<std::int64_t>(&options_.amount)) return std::min(*number, left);
  const auto* by_epoch = std::get_if<std::function<double(std::int64_t)>>(&options_.amount);
  const double amount = by_epoch ? (*by_epoch)(epoch) : std::get<double>(options_.amount);
  if (!(amount >= 0))
    throw UsageError(fmt::format("[ModelPruning] the amount of epoch {} is {}. Give 0 or more.", epoch, amount));
  return std::min(left,
                  static_cast<std::int64_t>(std::llround(amount <= 1 ? amount * static_cast<double>(left) : amount)));
}

std::vector<float> ModelPruning::mask_of(const std::string& name, const Tensor& weight) const {
  if (const Tensor* known = masks_.find(name)) return known->to_vector<float>();
  return std::vector<float>(static_cast<std::size_t>(weight.numel()), 1.0f);
}

void ModelPruning::set_mask(const std::string& name, const Tensor& weight, const std::vector<float>& mask) {
  masks_.set(name, from_data(mask, weight.sizes()));
}

void ModelPruning::prune_together(const Targets& targets, std::int64_t epoch) {
  std::vector<double> importance;
  std::vector<float> mask;
  for (const auto& [name, weight] : targets) {
    const auto more = importance_of(weight, options_.pruning_fn);
    importance.insert(importance.end(), more.begin(), more.end());
    const auto own = mask_of(name, weight);
    mask.insert(mask.end(), own.begin(), own.end());
  }
  remove_least(importance, mask, count_of(ones_in(mask), epoch));
  auto at = mask.begin();
  for (const auto& [name, weight] : targets) {
    set_mask(name, weight, std::vector<float>(at, at + weight.numel()));
    at += weight.numel();
  }
}

void ModelPruning::prune_one(const std::string& name, const Tensor& weight, std::int64_t epoch) {
  auto mask = mask_of(name, weight);
  remove_least(importance_of(weight, options_.pruning_fn), mask, count_of(ones_in(mask), epoch));
  set_mask(name, weight, mask);
}

/// Prunes slices along pruning_dim, e.g. output channels; each counts as one.
void ModelPruning::prune_slices(const std::string& name, const Tensor& weight, std::int64_t epoch) {
  const std::int64_t dim = options_.pruning_dim < 0 ? options_.pruning_dim + weight.dim() : options_.pruning_dim;
  if (dim < 0 || dim >= weight.dim())
    throw UsageError(
        fmt::format("[ModelPruning] pruning_dim is {} and \"{}\" has shape {}. Name one of its dimensions.",
                    options_.pruning_dim, name, to_string(weight.sizes())));
  const Tensor first = weight.detach().to(kCpu, kFloat64).transpose(0, dim);  // slices along dimension 0
  const std::int64_t slices = first.sizes()[0];
  const Tensor importance = is_random(options_.pruning_fn)
                                ? rand({slices}, {.dtype = kFloat64})
                                : norm(first.reshape({slices, -1}), options_.pruning_norm, {1});
  const Tensor before = from_data(mask_of(name, weight), weight.sizes()).transpose(0, dim);
  auto kept = amax(before.reshape({slices, -1}), {1}).to_vector<float>();  // (slices), 1 where a weight is left
  remove_least(importance.to_vector<double>(), kept, count_of(ones_in(kept), epoch));
  const Tensor rows = from_data(kept, {slices, 1}).expand({slices, first.numel() / slices});
  set_mask(name, weight, rows.reshape(first.sizes()).transpose(0, dim).contiguous().to_vector<float>());
}

void ModelPruning::prune(RunContext& run) {
  const std::int64_t epoch = run.state.epoch;
  if (run.stage != Stage::fit || run.sanity_checking) return;
  if (options_.apply_pruning && !options_.apply_pruning(epoch)) return;
  const no_grad guard;
  const Targets all = targets(run);
  if (options_.use_global_unstructured) {
    prune_together(all, epoch);
  } else {
    for (const auto& [name, weight] : all)
      is_structured(options_.pruning_fn) ? prune_slices(name, weight, epoch) : prune_one(name, weight, epoch);
  }
  apply(run, first_);
  if (options_.verbose == 0) return;
  logging::info("pruned after epoch {}: {:.2f} % of the weights are zero", epoch, 100 * sparsity());
  if (options_.verbose < 2) return;
  for (const auto& [name, mask] : masks_) logging::info("  {}: {:.2f} %", name, 100 * sparsity(name));
}

/// Masks the weights, or sets them to the values in `from` if present.
void ModelPruning::apply(RunContext& run, const StateDict& from) const {
  if (masks_.empty()) return;
  const no_grad guard;
  const StateDict weights = run.precision->weights(run.module);
  StateDict masked;
  for (const auto& [name, t] : weights) {
    const Tensor* const mask = masks_.find(name);
    const Tensor* const value = from.find(name);
    masked.set(name, mask ? (value ? *value : t).to(t.device()) * mask->to(t.device(), t.dtype()) : t);
  }
  run.precision->load_weights(run.module, masked);
}

void ModelPruning::on_train_batch_end(RunContext& run, const StepOutput&, const Batch&, int) {
  if (run.state.micro == 0) apply(run, {});
}

void ModelPruning::on_train_epoch_end(RunContext& run) {
  if (options_.prune_on_train_epoch_end) prune(run);
}

void ModelPruning::on_validation_end(RunContext& run) {
  if (!options_.prune_on_train_epoch_end) prune(run);
}

void ModelPruning::on_train_end(RunContext&) {
  if (options_.make_pruning_permanent) masks_ = first_ = {};
}

}  // namespace levin
