#pragma once
// The parts of the Trainer under a loop of one's own: device, precision and gradients are taken care of, the order of
// things is the program's.

#include <levin/core/owned_ptr.h>
#include <levin/data/dataloader.h>
#include <levin/trainer/callback.h>
#include <levin/trainer/config.h>
#include <levin/trainer/logger.h>
#include <levin/trainer/manual_optimization.h>

#include <array>
#include <functional>
#include <utility>

namespace levin {

/// Where and how to compute; names and defaults are TrainerConfig's.
struct FabricConfig {
  std::string accelerator = "auto";
  DeviceList devices = "auto";
  std::string strategy = "auto";
  std::string precision = "32-true";
  std::int64_t num_nodes = 1;
  std::int64_t node_rank = -1;
  std::int64_t timeout = 300;
  std::string nccl_algo = "ring";
  std::string ddp_comm_hook = "none";
  std::int64_t model_averaging_period = 0;
  std::int64_t start_local_sgd_iter = 0;
  bool post_local_gradient_allreduce = true;
  bool scale_lr = true;
  std::string gradient_compression = "none";
  std::optional<double> fusion_threshold_mb{};
  std::optional<double> cycle_time_ms{};
  std::string bagua_algorithm = "gradient_allreduce";
  std::string bagua_peers = "all";
  std::string bagua_scale_lr = "none";
  std::int64_t bagua_warmup_steps = 0;
  std::int64_t bagua_sync_interval_ms = 500;
  std::int64_t fsdp_unit_size = 100'000;
  std::string fsdp_state_dict_type = "full";
  std::int64_t pipeline_micro_batches = 4;
  std::string pipeline_balance{};
  std::vector<std::shared_ptr<Logger>> loggers{};
  std::vector<CallbackPtr> callbacks{};  ///< for call()
};

/// This rank's share of a loader, whose batches lie on the device, in the precision's types. With one rank it is the
/// loader itself, which outlives it.
class FabricLoader {
 public:
  FabricLoader(std::shared_ptr<data::DataLoader> loader, const Strategy& strategy, const Precision& precision)
      : loader_(std::move(loader)), strategy_(&strategy), precision_(&precision) {}

  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    Iterator(data::DataLoader::Iterator it, const FabricLoader& owner) : it_(std::move(it)), owner_(&owner) {}
    Batch operator*() { return owner_->precision_->convert(owner_->strategy_->to_device(*it_)); }
    Iterator& operator++() {
      ++it_;
      return *this;
    }
    void operator++(int) { ++it_; }
    friend bool operator==(const Iterator& i, std::default_sentinel_t end) { return i.it_ == end; }

   private:
    data::DataLoader::Iterator it_;
    const FabricLoader* owner_;
  };
  Iterator begin() const { return {loader_->begin(), *this}; }
  static std::default_sentinel_t end() { return {}; }
  data::DataLoader& loader() const { return *loader_; }

 private:
  std::shared_ptr<data::DataLoader> loader_;
  const Strategy* strategy_;
  const Precision* precision_;
};

/// Lightning's Fabric:
///
///     Fabric fabric({.precision = "16-mixed"});
///     fabric.launch();
///     auto [opt] = fabric.setup(net, [&] { return optim::AdamW(net.parameters()); });
///     for (const Batch& batch : fabric.setup_dataloaders(loader)) {
///       const Tensor loss = fabric.autocast([&] { return cross_entropy(net(batch[0]), batch[1]); });
///       opt.zero_grad();
///       fabric.backward(loss);
///       opt.step();
///     }
///
/// The Trainer is built on one.
class Fabric {
 public:
  /// Throws UsageError for names that are not built.
  explicit Fabric(FabricConfig config = {});
  /// On a strategy that is there already.
  Fabric(std::unique_ptr<Strategy> strategy, const std::string& precision);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  /// Begins: all processes of the run are there when it returns. `body` runs in each of them.
  void launch(const std::function<void()>& body = {});

  /// Brings a module to the device and into the precision's types. Optimizers are made afterwards.
  void setup_module(nn::Module& module);
  /// Takes the optimizers in, with their schedulers. Throws UsageError for another number than N.
  template <std::size_t N = 1>
  std::array<OptimizerHandle, N> setup_optimizers(Optimizers optimizers) {
    ManualOptimization& steps = take(std::move(optimizers), N);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<OptimizerHandle, N>{OptimizerHandle(steps, I)...};
    }
    (std::make_index_sequence<N>());
  }
  /// Both: `make` is called when the module's parameters are what they will be.
  template <std::size_t N = 1, class F>
  std::array<OptimizerHandle, N> setup(nn::Module& module, const F& make) {
    setup_module(module);
    return setup_optimizers<N>(make());
  }
  /// With `use_distributed_sampler` every rank gets its share of each epoch.
  FabricLoader setup_dataloaders(data::DataLoader& loader, bool use_distributed_sampler = true) const;

  /// Scales the loss as the precision asks, and runs backward. Under ddp, with one optimizer, gradients are averaged
  /// over the ranks while it runs; else they are by the optimizer's step (or by clipping).
  void backward(const Tensor& loss);
  /// At the gradients' true scale, by "norm" or "value", before the step.
  void clip_gradients(const OptimizerHandle& optimizer, double value, const std::string& algorithm = "norm") const {
    optimizer.clip_gradients(value, algorithm);
  }
  /// While the scope is alive, operations compute in the precision's types. May be null.
  std::unique_ptr<Precision::Scope> autocast() const;
  template <class F>
  auto autocast(const F& f) const {
    const OwnedPtr<Precision::Scope> scope = step_scope();
    return f();
  }
  /// While it is alive, backward exchanges no gradients: for all but the last batch of an accumulation window. Without
  /// it the results are the same, but every batch is an exchange. `enabled` is Lightning's: false leaves things alone.
  class NoSync {
   public:
    NoSync(bool& averages, bool enabled) : averages_(averages), old_(std::exchange(averages, averages && !enabled)) {}
    ~NoSync() { averages_ = old_; }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    bool& averages_;
    bool old_;
  };
  [[nodiscard]] NoSync no_backward_sync(bool enabled = true) { return {averages_in_backward_, enabled}; }

  Batch to_device(Batch batch) const { return strategy_->to_device(std::move(batch)); }
  Tensor to_device(const Tensor& t) const { return t.to(device()); }
  /// Over all ranks; the host does not wait.
  Tensor all_reduce(const Tensor& value, ReduceOp op = ReduceOp::avg) { return strategy_->reduce(value, op); }
  void barrier() { strategy_->barrier(); }
  /// What rank `src` has, on every rank. Throws ValueError for a rank that is not there.
  Tensor broadcast(const Tensor& value, int src = 0);
  StateMap broadcast(const StateMap& values, int src = 0);
  /// The tensors of all ranks, (world_size, ...); with one rank just its tensor. Without `sync_grads` no gradient goes
  /// through it.
  Tensor all_gather(const Tensor& value, bool sync_grads = false) { return strategy_->all_gather(value, sync_grads); }
  /// Runs f on rank zero while the others wait, then on them; `local`: by machine. Gives what f gives.
  template <class F>
  std::invoke_result_t<F> rank_zero_first(F&& f, bool local = false) {
    return strategy_->rank_zero_first(f, local);
  }
  /// Calls a member function of the callbacks that have it, in their order; the others are passed over. A class of the
  /// program's own, derived from Callback, may have any: `fabric.call(&MyCallback::on_best_epoch, epoch, loss)`.
  template <class C, class R, class... P, class... A>
  void call(R (C::*hook)(P...), A&&... args) {
    for (const auto& callback : config_.callbacks)
      if (auto* const known = dynamic_cast<C*>(callback.get())) (known->*hook)(args...);
  }
  /// A line on standard output, by rank zero.
  void print(const std::string& text) const;
  /// One value to all loggers, by rank zero. Throws IoError where that fails.
  void log(const std::string& name, double value, std::int64_t step);
  void log_dict(const MetricStore::Values& values, std::int64_t step);
  /// Seeds the default generator: weights, shuffling and dropout follow from it.
  static void seed_everything(std::uint64_t seed);

  /// Writes a checkpoint's folder: weights, optimizers and schedulers as far as they were set up, the generator, and
  /// `values`. Of replicas that differ the weights are the average. Throws IoError.
  void save(const std::filesystem::path& folder, const nn::Module& module, const StateMap& values = {});
  /// Brings all of that back, and gives the values. Throws IoError or StateError.
  StateMap load(const std::filesystem::path& folder, nn::Module& module);

  /// Loads the weights of a safetensors file, of this library or another, into a module. Not strict, names that only
  /// one of the two has are left out and reported. Throws IoError for a file that cannot be read, StateError for
  /// weights that do not fit.
  nn::LoadReport load_raw(const std::filesystem::path& file, nn::Module& module, bool strict = true);

  Device device() const { return strategy_->device(); }
  int global_rank() const { return strategy_->rank(); }
  int local_rank() const { return strategy_->local_rank(); }
  int node_rank() const { return strategy_->node_rank(); }
  int world_size() const { return strategy_->world_size(); }
  bool is_global_zero() const { return strategy_->is_global_zero(); }
  Strategy& strategy() const { return *strategy_; }
  Precision& precision() const { return *precision_; }
  const FabricConfig& config() const { return config_; }

 private:
  OwnedPtr<Precision::Scope> step_scope() const;
  ManualOptimization& take(Optimizers optimizers, std::size_t count);
  void check_rank(int src) const;

  FabricConfig config_;
  OwnedPtr<Strategy> strategy_;
  OwnedPtr<Precision> precision_;
  StepHooks hooks_;
  bool averages_in_backward_ = true;
  // Handles point into what has been set up; a second setup leaves the first one's alone.
  struct Taken;
  std::vector<OwnedPtr<Taken>> taken_;
};

}  // namespace levin
