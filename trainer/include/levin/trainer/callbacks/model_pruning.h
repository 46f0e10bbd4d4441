#pragma once
// Setting the least important weights to zero while training goes on (Han et al. 2015; the lottery ticket hypothesis:
// Frankle & Carbin 2019).

#include <levin/trainer/callback.h>
#include <levin/trainer/module.h>

#include <functional>
#include <variant>

namespace levin {

/// What decides which weights go: the smallest ones, chance, or whole slices along a dimension by their norm or chance.
enum class PruningFn { l1_unstructured, random_unstructured, ln_structured, random_structured };

struct ModelPruningOptions {
  PruningFn pruning_fn = PruningFn::l1_unstructured;
  std::vector<std::string> parameters_to_prune{};         ///< by name, as "fc1.weight"
  std::vector<std::string> parameter_names = {"weight"};  ///< of every layer, where none are listed
  bool use_global_unstructured = true;  ///< one ranking over all parameters; for unstructured functions
  /// Of what is left: a fraction, a number of weights (or slices), or either by epoch.
  std::variant<double, std::int64_t, std::function<double(std::int64_t)>> amount{std::in_place_index<0>, 0.5};
  std::function<bool(std::int64_t)> apply_pruning{};  ///< whether to prune in an epoch; always when empty
  bool make_pruning_permanent = true;                 ///< forget the masks when training ends; the zeros stay
  bool use_lottery_ticket_hypothesis = false;         ///< what is left goes back to its first values after each pruning
  int pruning_dim = 0;                                ///< of structured functions
  double pruning_norm = 2.0;                          ///< of ln_structured
  int verbose = 0;                       ///< 1: say the share of zeros after each pruning, 2: for each parameter
  bool prune_on_train_epoch_end = true;  ///< else after validation
};

/// Masked weights are zero in every forward: masks are applied after each optimizer step, before anything is saved.
class ModelPruning : public Callback {
 public:
  explicit ModelPruning(ModelPruningOptions options = {});

  /// Share of zeros by the masks, of one parameter or of all that are pruned.
  double sparsity(const std::string& parameter = {}) const;
  /// By parameter, 1 where a weight is kept; empty before the first pruning.
  const StateDict& masks() const { return masks_; }

  std::string state_key() const override { return "ModelPruning"; }
  StateDict tensors() const override;
  void load_tensors(const StateDict& tensors) override;
  void on_fit_start(RunContext& run) override;
  void on_train_batch_end(RunContext& run, const StepOutput& out, const Batch& batch, int index) override;
  void on_train_epoch_end(RunContext& run) override;
  void on_validation_end(RunContext& run) override;
  void on_train_end(RunContext& run) override;

 private:
  using Targets = std::vector<std::pair<std::string, Tensor>>;
  Targets targets(RunContext& run) const;
  std::int64_t count_of(std::int64_t left, std::int64_t epoch) const;
  std::vector<float> mask_of(const std::string& name, const Tensor& weight) const;
  void set_mask(const std::string& name, const Tensor& weight, const std::vector<float>& mask);
  void prune(RunContext& run);
  void prune_together(const Targets& targets, std::int64_t epoch);
  void prune_one(const std::string& name, const Tensor& weight, std::int64_t epoch);
  void prune_slices(const std::string& name, const Tensor& weight, std::int64_t epoch);
  void apply(RunContext& run, const StateDict& from) const;

  ModelPruningOptions options_;
  StateDict masks_;
  StateDict first_;  // the values before training, for the lottery
};

}  // namespace levin
