#pragma once
// Sets the least important weights to zero during training (Han et al. 2015; the lottery ticket hypothesis: Frankle &
// Carbin 2019).

#include <levin/trainer/callback.h>
#include <levin/trainer/module.h>

#include <functional>
#include <variant>

namespace levin {

/// How weights are chosen for pruning: the smallest ones, random ones, or whole slices along a dimension, by norm or at
/// random.
enum class PruningFn { l1_unstructured, random_unstructured, ln_structured, random_structured };

/// Options of ModelPruning, with Lightning's names and defaults.
struct ModelPruningOptions {
  PruningFn pruning_fn = PruningFn::l1_unstructured;      ///< how weights are chosen
  std::vector<std::string> parameters_to_prune{};         ///< parameter names such as "fc1.weight"
  std::vector<std::string> parameter_names = {"weight"};  ///< these parameters of every layer, if no names are listed
  bool use_global_unstructured = true;                    ///< rank all parameters together; for unstructured functions
  /// How much of the remaining weights to prune: a fraction, a number of weights (or slices), or a function of the
  /// epoch.
  std::variant<double, std::int64_t, std::function<double(std::int64_t)>> amount{std::in_place_index<0>, 0.5};
  std::function<bool(std::int64_t)> apply_pruning{};  ///< whether to prune in an epoch; always if empty
  bool make_pruning_permanent = true;                 ///< remove the masks when training ends; the zeros remain
  bool use_lottery_ticket_hypothesis = false;         ///< reset remaining weights to their initial values after pruning
  int pruning_dim = 0;                                ///< for structured functions
  double pruning_norm = 2.0;                          ///< for ln_structured
  int verbose = 0;                                    ///< 1: log the sparsity after each pruning; 2: for each parameter
  bool prune_on_train_epoch_end = true;               ///< if false, prune after validation
};

/// Keeps masked weights at zero in every forward: applies the masks after each optimizer step, before anything is
/// saved.
class ModelPruning : public Callback {
 public:
  /// Throws UsageError for an amount out of range.
  explicit ModelPruning(ModelPruningOptions options = {});

  /// Fraction of masked weights of one parameter, or of all pruned parameters.
  double sparsity(const std::string& parameter = {}) const;
  /// Masks by parameter name, 1 for weights that are kept; empty before the first pruning.
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
  StateDict first_;  // values before training, for the lottery ticket hypothesis
};

}  // namespace levin
