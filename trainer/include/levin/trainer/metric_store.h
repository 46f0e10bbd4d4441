#pragma once
// Stores every value that a run logs, by name, split and step.

#include <levin/core/state_map.h>
#include <levin/kernels/host_read.h>
#include <levin/trainer/metrics/metric.h>

#include <deque>
#include <optional>
#include <string_view>
#include <utility>

namespace levin {

class Strategy;

/// Reduction of an epoch's values; the mean is weighted by batch size.
enum class Reduce { mean, sum, min, max };

/// Arguments of LevinModule::log. Unset options depend on the hook: in training_step a value is logged per step, in
/// evaluation and in epoch hooks per epoch. With both, a value is available as NAME_step and NAME_epoch.
struct LogOptions {
  bool prog_bar = false;                     ///< show beside the progress bar
  bool logger = true;                        ///< send to the loggers
  std::optional<bool> on_step{};             ///< make the value of each step available
  std::optional<bool> on_epoch{};            ///< make the value of an epoch available
  Reduce reduce = Reduce::mean;              ///< how an epoch's values become one
  std::optional<std::int64_t> batch_size{};  ///< weight of this value; by default the current batch's size
  bool add_dataloader_idx = true;            ///< with several evaluation loaders: log as NAME/dataloader_idx_k
  /// Reduces the value over all ranks by `reduce`: a step's immediately, an epoch's at its end (a mean is then weighted
  /// by every rank's samples). All ranks must log it, in the same order.
  bool sync_dist = false;
  bool rank_zero_only = false;  ///< log on rank zero only; cannot be monitored, since other ranks lack the value
};

/// The part of a program's data from which a value comes.
enum class Split { train, validation, test, predict };

/// Values logged by the step of one replica, while other replicas process the other parts of the batch.
class LogPart {
 public:
  /// `samples` weigh the values of this part in means.
  explicit LogPart(std::int64_t samples);
  ~LogPart();
  LogPart(const LogPart&);
  LogPart(LogPart&&) noexcept;
  LogPart& operator=(const LogPart&);
  LogPart& operator=(LogPart&&) noexcept;
  /// Records a value (a tensor of one element, or a number), for MetricStore::log.
  void add(std::string_view name, const Tensor& value, const LogOptions& options);
  void add(std::string_view name, double value, const LogOptions& options);
  /// Records the value of the replica's own metric under the metric of the original module.
  void add(std::string_view name, const metrics::Metric& own, metrics::Metric& of_run, const LogOptions& options);

 private:
  friend class MetricStore;
  struct Entry {
    std::string name;
    Tensor value;  ///< undefined for a metric that was only updated
    metrics::Metric* object = nullptr;
    LogOptions options{};
    int nth = 0;  ///< index among the values of this name in this part
  };
  void add(Entry entry);
  std::int64_t samples_;
  std::vector<Entry> entries_;
};

/// Every value that a run logs. Callbacks, loggers and schedulers read it; values of tensors are read back from the
/// device when they are needed. Not thread-safe.
class MetricStore {
 public:
  /// Where values come from; the loops set it.
  enum class Scope { closed, step, eval_step, epoch };
  /// Sets the place and split of the following values, the weight of a step's values, and the index of the evaluation
  /// loader; -1 if there is one only.
  void set_scope(Scope scope, Split split, std::int64_t batch_size = 1, int dataloader = -1);

  /// Sets the ranks with which values are shared; must outlive this store. Without it, values are local to this
  /// process.
  void set_ranks(Strategy& ranks) { ranks_ = &ranks; }

  /// Records one value. Throws ValueError if logging is not allowed here (outside of steps and epoch hooks), for
  /// on_step in an epoch hook, if neither on_step nor on_epoch is set, for sync_dist with rank_zero_only, and if the
  /// options differ from earlier ones of this name.
  void log(std::string_view name, double value, const LogOptions& options = {}) { arrive(name, value, options); }
  /// Records a tensor of one element, whose transfer to the host may be pending: reading values waits for it.
  void log(std::string_view name, const Tensor& value, const LogOptions& options = {}) { arrive(name, value, options); }

  /// Metrics by the names of their states.
  using Objects = std::vector<std::pair<std::string, metrics::Metric*>>;
  /// Registers metrics that can be logged, under the names of their states in checkpoints. They must outlive this store
  /// or be replaced by the next attach.
  void attach(Objects objects);
  /// Records an attached metric. Its value of a step is the result of calling it, metric(preds, target); its value of
  /// an epoch is computed at the end of the epoch from the samples of all ranks, regardless of `reduce` and the batch
  /// sizes. The metric is reset when the next epoch of its split begins. Also throws ValueError for a metric that was
  /// not attached, that is logged under another name or split, or that is logged per step but was only updated.
  void log(std::string_view name, metrics::Metric& metric, const LogOptions& options = {}) {
    log(name, metric, metric.last(), options);
  }
  /// Records the values logged by the replicas of one step, combining each name into one value of the batch: reduced as
  /// the values of an epoch are, a mean weighted by samples. The step value of a metric is the mean of the replicas'
  /// values.
  void log(const std::vector<LogPart>& parts);
  /// The same in two steps: computes the combined values, and records them, possibly in other processes.
  StateMap joined(const std::vector<LogPart>& parts) const;
  void log(const StateMap& joined);

  void start_epoch(Split split);  ///< discards the values of the previous epoch
  /// Computes the epoch's values. All ranks must call it, including one that had no batch in an evaluation.
  void finish_epoch(Split split);
  /// Forgets all values and resets the attached metrics.
  void clear();

  /// Returns the latest value of `name` ("loss", "loss_step", "loss_epoch"), excluding step values of evaluation and
  /// values logged on rank zero only.
  std::optional<double> find(std::string_view name) const;
  /// Returns all names for which find() returns a value.
  std::vector<std::string> names() const;
  /// True if `name` was logged with rank_zero_only.
  bool only_on_rank_zero(std::string_view name) const;

  /// Values by name, in the order in which the names were first logged.
  using Values = std::vector<std::pair<std::string, double>>;
  /// Returns the latest values with prog_bar, of all splits or of one.
  Values progress_bar_values(std::optional<Split> only = {}) const;
  Values step_values() const;              ///< for loggers: this step's training values
  Values epoch_values(Split split) const;  ///< for loggers: a finished epoch
  /// Returns all values of a finished epoch under their plain names.
  std::map<std::string, double> results(Split split) const;
  /// Returns the same for each of several loaders: those logged as NAME/dataloader_idx_k, and in every map those
  /// without such an ending.
  std::vector<std::map<std::string, double>> results_by_loader(Split split, std::size_t loaders) const;

  /// Changes with every recorded value.
  std::uint64_t stamp() const { return stamp_; }

  /// All values and the states of attached metrics, for checkpoints. load_state() throws StateError for a damaged one.
  StateMap state() const;
  void load_state(const StateMap& state);

 private:
  struct Metric {
    std::string name;
    Split split = Split::train;
    bool prog_bar = false, logger = true, on_step = false, on_epoch = false;
    Reduce reduce = Reduce::mean;
    std::uint64_t stamp = 0;
    bool has_step = false, has_sum = false, has_epoch = false;
    double step = 0, sum = 0, weight = 0, epoch = 0;  // sum is the minimum or maximum for min and max
    metrics::Metric* object = nullptr;                // computes the epoch's value, if set
    std::int64_t computed = -1;                       // number of its updates at the last computation
    std::string suffix;                               // "/dataloader_idx_1" with several loaders
    bool sync_dist = false, rank_zero_only = false;
    std::string step_name() const;
    std::string epoch_name() const;
  };
  struct Arrival {
    std::size_t metric;
    HostRead value;
    double weight;
    std::uint64_t stamp;
    std::optional<HostRead> of_all_ranks{};  // the step's value over all ranks, if it differs from `value`
  };
  /// One value combined from several parts.
  struct Joined {
    std::string name;
    Tensor value;  ///< float64; undefined for a metric that was only updated
    metrics::Metric* object;
    LogOptions options;  ///< batch size is the sum over the parts where it matters
  };
  static std::vector<Joined> join(const std::vector<LogPart>& parts);
  void log(const Joined& value);
  void log(std::string_view name, metrics::Metric& metric, const Tensor& last, const LogOptions& options);
  template <class V>
  void arrive(std::string_view name, const V& value, const LogOptions& options);
  std::string suffix_for(const LogOptions& options) const;
  std::size_t index_of(std::string_view name, const LogOptions& options);
  /// Validates the scope and the options, and returns the index of the metric.
  std::size_t open(std::string_view name, LogOptions options);
  void take_in(const Arrival& arrival) const;
  /// Processes the values that have arrived; with `wait`, all.
  void settle(bool wait = true) const;
  void finish_sum(Metric& metric);
  void finish_object(Metric& metric);
  double value_of_all(metrics::Metric& object) const;
  std::string key_of(const Metric& metric) const;
  StateMap known_in(Split split) const;  ///< the metadata of this rank's metrics, without values
  std::vector<Metric> without_values(const StateMap& known, Split split) const;
  void learn_of_ranks(Split split);
  std::string object_name(const metrics::Metric* object) const;  ///< empty for none
  StateMap object_states() const;
  void load_objects(const StateMap& state);

  // Readers process pending arrivals, hence mutable.
  mutable std::vector<Metric> metrics_;
  mutable std::deque<Arrival> arrivals_;
  Objects objects_;
  Strategy* ranks_ = nullptr;
  Scope scope_ = Scope::closed;
  Split split_ = Split::train;
  std::int64_t batch_size_ = 1;
  int dataloader_ = -1;  // index if there are several
  std::uint64_t stamp_ = 0;
};

}  // namespace levin
