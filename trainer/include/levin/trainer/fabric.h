#pragma once
// The parts of the Trainer for a custom loop: Fabric handles device, precision and gradients, and the program decides
// the order of the steps.

#include <levin/core/owned_ptr.h>
#include <levin/data/dataloader.h>
#include <levin/trainer/callback.h>
#include <levin/trainer/config/config.h>
#include <levin/trainer/loggers/logger.h>
#include <levin/trainer/manual_optimization.h>

#include <array>
#include <functional>
#include <utility>

namespace levin {

/// Devices, strategy and precision of a Fabric; names and defaults are TrainerConfig's.
struct FabricConfig {
  /// As in TrainerConfig.
  std::string accelerator = "auto";
  DeviceList devices = "auto";
  std::string strategy = "auto";
  std::string precision = "32-true";
  std::int64_t num_nodes = 1;
  std::int64_t node_rank = -1;
  std::int64_t timeout = 300;
  std::string nccl_algo = "ring";
  DdpConfig ddp{};
  HorovodConfig horovod{};
  BaguaConfig bagua{};
  FsdpConfig fsdp{};
  PipelineConfig pipeline{};
  std::vector<std::shared_ptr<Logger>> loggers{};  ///< receive the values of log() and log_dict()
  std::vector<CallbackPtr> callbacks{};            ///< used by call()
};

/// This rank's share of a loader, with batches on the device in the precision's types. With one rank it refers to the
/// loader itself, which must outlive it.
class FabricLoader {
 public:
  /// Made by Fabric::setup_dataloaders(). The strategy and the precision must outlive it.
  FabricLoader(std::shared_ptr<data::DataLoader> loader, const Strategy& strategy, const PrecisionPlugin& precision)
      : loader_(std::move(loader)), strategy_(&strategy), precision_(&precision) {}

  /// An input iterator over the batches of one epoch.
  class Iterator {
   public:
    /// The types that an input iterator must name.
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    /// Wraps an iterator of the loader of `owner`, which must outlive it.
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
  /// The loader of this rank's share, for set_epoch() and the like.
  data::DataLoader& loader() const { return *loader_; }

 private:
  std::shared_ptr<data::DataLoader> loader_;
  const Strategy* strategy_;
  const PrecisionPlugin* precision_;
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
/// The Trainer is built on a Fabric.
class Fabric {
 public:
  /// Throws UsageError for unknown names and for parts that are not built.
  explicit Fabric(FabricConfig config = {});
  /// Uses an existing strategy; config().strategy is then its name.
  Fabric(std::unique_ptr<Strategy> strategy, FabricConfig config);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  /// Starts the run: when it returns, all processes have joined. `body` runs in each of them.
  void launch(const std::function<void()>& body = {});

  /// Moves a module to the device and converts it to the precision's types. Create optimizers afterwards.
  void setup_module(nn::Module& module);
  /// Takes ownership of the optimizers and their schedulers. Throws UsageError unless there are N.
  template <std::size_t N = 1>
  std::array<OptimizerHandle, N> setup_optimizers(Optimizers optimizers) {
    ManualOptimization& steps = take(std::move(optimizers), N);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<OptimizerHandle, N>{OptimizerHandle(steps, I)...};
    }
    (std::make_index_sequence<N>());
  }
  /// Calls setup_module and setup_optimizers; `make` is called once the module's parameters are final.
  template <std::size_t N = 1, class F>
  std::array<OptimizerHandle, N> setup(nn::Module& module, const F& make) {
    setup_module(module);
    return setup_optimizers<N>(make());
  }
  /// With `use_distributed_sampler` every rank receives its share of each epoch.
  FabricLoader setup_dataloaders(data::DataLoader& loader, bool use_distributed_sampler = true) const;

  /// Scales the loss, a tensor of one element, as the precision requires and runs backward; ShapeError for other sizes.
  /// Under ddp with one optimizer, gradients are averaged over the ranks during backward; otherwise the optimizer's
  /// step (or clipping) averages them.
  void backward(const Tensor& loss);
  /// Clips the unscaled gradients by "norm" or "value"; call it before the step. Throws UsageError for other
  /// algorithms.
  void clip_gradients(const OptimizerHandle& optimizer, double value, const std::string& algorithm = "norm") const {
    optimizer.clip_gradients(value, algorithm);
  }
  /// Returns a scope within which operations compute in the precision's types. May be null.
  std::unique_ptr<PrecisionPlugin::Scope> autocast() const;
  /// Calls f within such a scope and returns its result.
  template <class F>
  auto autocast(const F& f) const {
    const OwnedPtr<PrecisionPlugin::Scope> scope = step_scope();
    return f();
  }
  /// While it is alive, backward does not reduce gradients; use it for all but the last batch of an accumulation
  /// window. Without it the results are the same, but every batch communicates. `enabled` = false has no effect, as in
  /// Lightning.
  class NoSync {
   public:
    /// Made by no_backward_sync(). If `enabled`, clears `averages` until it is destroyed.
    NoSync(bool& averages, bool enabled) : averages_(averages), old_(std::exchange(averages, averages && !enabled)) {}
    ~NoSync() { averages_ = old_; }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    bool& averages_;
    bool old_;
  };
  /// Returns an object that keeps backward from reducing gradients while it lives: see NoSync.
  [[nodiscard]] NoSync no_backward_sync(bool enabled = true) { return {averages_in_backward_, enabled}; }

  /// Returns the batch or tensor on this process's device.
  Batch to_device(Batch batch) const { return strategy_->to_device(std::move(batch)); }
  Tensor to_device(const Tensor& t) const { return t.to(device()); }
  /// Returns the reduction of all ranks' tensors, of equal sizes and types, asynchronously to the host. Is not
  /// differentiable.
  Tensor all_reduce(const Tensor& value, ReduceOp op = ReduceOp::avg) { return strategy_->reduce(value, op); }
  /// Returns when all ranks have called it.
  void barrier() { strategy_->barrier(); }
  /// Returns the value of rank `src` on every rank. Throws ValueError if there is no such rank.
  Tensor broadcast(const Tensor& value, int src = 0);
  StateMap broadcast(const StateMap& values, int src = 0);
  /// Returns the tensors of all ranks, (world_size, ...); with one rank its tensor unchanged. Gradients flow through it
  /// only with `sync_grads`.
  Tensor all_gather(const Tensor& value, bool sync_grads = false) { return strategy_->all_gather(value, sync_grads); }
  /// Runs f on rank zero while the others wait, then on the others; with `local`, per machine. Returns f's result.
  template <class F>
  std::invoke_result_t<F> rank_zero_first(F&& f, bool local = false) {
    return strategy_->rank_zero_first(f, local);
  }
  /// Calls a member function on those callbacks that have it, in order, and skips the others. A custom class derived
  /// from Callback may define any: `fabric.call(&MyCallback::on_best_epoch, epoch, loss)`.
  template <class C, class R, class... P, class... A>
  void call(R (C::*hook)(P...), A&&... args) {
    for (const auto& callback : config_.callbacks)
      if (auto* const known = dynamic_cast<C*>(callback.get())) (known->*hook)(args...);
  }
  /// Prints a line to standard output on rank zero.
  void print(const std::string& text) const;
  /// Sends one value to all loggers, on rank zero. Throws IoError if that fails.
  void log(const std::string& name, double value, std::int64_t step);
  void log_dict(const MetricStore::Values& values, std::int64_t step);
  /// Seeds the default generator, which determines initial weights, shuffling and dropout.
  static void seed_everything(std::uint64_t seed);

  /// Writes a checkpoint folder: weights, the optimizers and schedulers that were set up, the generator, and `values`.
  /// If replicas differ, saves the average of their weights. Throws IoError.
  void save(const std::string& folder, const nn::Module& module, const StateMap& values = {});
  /// Restores a checkpoint and returns `values`. Weights of another floating dtype are converted to the module's, with
  /// a warning. Throws IoError or StateError.
  StateMap load(const std::string& folder, nn::Module& module);

  /// Loads the weights of any safetensors file into a module. With `strict` = false, names that only one of the two has
  /// are skipped and reported. The report also names weights of another floating dtype, which are converted to the
  /// module's. Throws IoError if the file cannot be read and StateError if the weights do not fit.
  nn::LoadReport load_raw(const std::string& file, nn::Module& module, bool strict = true);

  /// Device of this process.
  Device device() const { return strategy_->device(); }
  /// Rank of this process among all, and among those of its machine; index of the machine; number of processes.
  int global_rank() const { return strategy_->rank(); }
  int local_rank() const { return strategy_->local_rank(); }
  int node_rank() const { return strategy_->node_rank(); }
  int world_size() const { return strategy_->world_size(); }
  /// True on rank zero, which alone should write.
  bool is_global_zero() const { return strategy_->is_global_zero(); }
  /// The parts of this Fabric, which live as long as it does.
  Strategy& strategy() const { return *strategy_; }
  PrecisionPlugin& precision() const { return *precision_; }
  const FabricConfig& config() const { return config_; }

 private:
  OwnedPtr<PrecisionPlugin::Scope> step_scope() const;
  ManualOptimization& take(Optimizers optimizers, std::size_t count);
  void check_rank(int src) const;

  FabricConfig config_;
  OwnedPtr<Strategy> strategy_;
  OwnedPtr<PrecisionPlugin> precision_;
  StepHooks hooks_;
  bool averages_in_backward_ = true;
  // Handles point into these; a second setup leaves the first unchanged.
  struct Taken;
  std::vector<OwnedPtr<Taken>> taken_;
};

}  // namespace levin
