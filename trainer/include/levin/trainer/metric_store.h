#pragma once
// Every value that a run logs, by name, split and step.

#include <levin/kernels/host_read.h>
#include <levin/trainer/metrics/metric.h>
#include <levin/trainer/state_map.h>

#include <deque>
#include <optional>
#include <string_view>
#include <utility>

namespace levin {

class Strategy;

/// How the values of an epoch become one: mean is weighted by batch size.
enum class Reduce { mean, sum, min, max };

/// Arguments of LevinModule::log. What is not said follows the hook: in training_step values count by the step, in
/// evaluation and in epoch hooks by the epoch. With both, a value is known as NAME_step and NAME_epoch.
struct LogOptions {
  bool prog_bar = false;  ///< shown beside the progress bar
  bool logger = true;     ///< sent to the loggers
  std::optional<bool> on_step{};
  std::optional<bool> on_epoch{};
  Reduce reduce = Reduce::mean;
  std::optional<std::int64_t> batch_size{};  ///< weight of this value; the current batch's size unless given
  bool add_dataloader_idx = true;            ///< of several evaluation loaders: NAME/dataloader_idx_k
  /// One value of all ranks, reduced as `reduce` says: a step's at once, an epoch's when it ends (a mean then counts
  /// every rank's samples). All ranks log it, in the same order.
  bool sync_dist = false;
  bool rank_zero_only = false;  ///< rank zero's value alone: no monitor can be one, since other ranks would not know it
};

enum class Split { train, validation, test, predict };

/// What the step of one replica has logged while other replicas had the other parts of the batch.
class LogPart {
 public:
  explicit LogPart(std::int64_t samples);
  ~LogPart();
  LogPart(const LogPart&);
  LogPart(LogPart&&) noexcept;
  LogPart& operator=(const LogPart&);
  LogPart& operator=(LogPart&&) noexcept;
  void add(std::string_view name, const Tensor& value, const LogOptions& options);
  void add(std::string_view name, double value, const LogOptions& options);
  /// The value that the replica's own metric gave belongs to the run's.
  void add(std::string_view name, const metrics::Metric& own, metrics::Metric& of_run, const LogOptions& options);

 private:
  friend class MetricStore;
  struct Entry {
    std::string name;
    Tensor value;  ///< undefined for a metric that was only updated
    metrics::Metric* object = nullptr;
    LogOptions options{};
    int nth = 0;  ///< of this name in this part
  };
  void add(Entry entry);
  std::int64_t samples_;
  std::vector<Entry> entries_;
};

class MetricStore {
 public:
  /// What is going on while values arrive; the loops set it.
  enum class Scope { closed, step, eval_step, epoch };
  void set_scope(Scope scope, Split split, std::int64_t batch_size = 1, int dataloader = -1);

  /// The ranks among which values are shared; it outlives this store. Without one there is this process alone.
  void set_ranks(Strategy& ranks) { ranks_ = &ranks; }

  /// Takes one value. Throws ValueError where logging makes no sense (outside of steps and epoch hooks), for on_step in
  /// an epoch hook, for neither of both, for sync_dist with rank_zero_only, and for options that differ from those this
  /// name had before.
  void log(std::string_view name, double value, const LogOptions& options = {}) { arrive(name, value, options); }
  /// The same for a tensor of one element, which may be on its way from a device: who asks for values waits for it.
  void log(std::string_view name, const Tensor& value, const LogOptions& options = {}) { arrive(name, value, options); }

  using Objects = std::vector<std::pair<std::string, metrics::Metric*>>;
  /// Metrics that may be logged themselves, by the names under which a checkpoint keeps their states. They outlive
  /// this store, or are replaced by the next attach.
  void attach(Objects objects);
  /// Takes an attached metric. A step has the value that it gave when it was called, metric(preds, target); an epoch
  /// has what it computes when the epoch is finished, of the samples of all ranks, whatever `reduce` and the batch
  /// sizes are. It is reset when the
  /// next epoch of its split begins. Throws ValueError also for a metric that was not attached, that is logged under
  /// another name or split, or that should count by the step but was only updated.
  void log(std::string_view name, metrics::Metric& metric, const LogOptions& options = {}) {
    log(name, metric, metric.last(), options);
  }
  /// Takes what the replicas of one step have logged, by name as one value of the whole batch: reduced as the values of
  /// an epoch are, a mean by samples. A metric's value of the step becomes the mean of its values.
  void log(const std::vector<LogPart>& parts);
  /// The same in two steps: what the parts come to, and to log it, also in other processes.
  StateMap joined(const std::vector<LogPart>& parts) const;
  void log(const StateMap& joined);

  void start_epoch(Split split);   ///< forgets what the epoch before has gathered
  /// Makes the epoch's values known. Of several ranks all call; one that had no batch in an evaluation takes part.
  void finish_epoch(Split split);
  void clear();

  /// The latest value known under `name` ("loss", "loss_step", "loss_epoch"); neither step values of evaluation count
  /// nor those that rank zero alone has.
  std::optional<double> find(std::string_view name) const;
  /// All names that find() knows.
  std::vector<std::string> names() const;
  /// Whether `name` was logged with rank_zero_only.
  bool only_on_rank_zero(std::string_view name) const;

  using Values = std::vector<std::pair<std::string, double>>;  // in the order of their first log
  Values progress_bar_values(std::optional<Split> only = {}) const;
  Values step_values() const;              ///< for loggers: this step's training values
  Values epoch_values(Split split) const;  ///< for loggers: a finished epoch
  /// All values of a finished epoch by their plain names.
  std::map<std::string, double> results(Split split) const;

  /// Changes with every value that arrives.
  std::uint64_t stamp() const { return stamp_; }

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
    double step = 0, sum = 0, weight = 0, epoch = 0;  // sum is the extreme for min and max
    metrics::Metric* object = nullptr;                // gives the epoch's value, if any
    std::int64_t computed = -1;                       // its updates when it gave that value
    std::string suffix;                               // "/dataloader_idx_1" of one of several loaders
    bool sync_dist = false, rank_zero_only = false;
    std::string step_name() const;
    std::string epoch_name() const;
  };
  struct Arrival {
    std::size_t metric;
    HostRead value;
    double weight;
    std::uint64_t stamp;
    std::optional<HostRead> of_all_ranks{};  // the step's, where it is another than `value`
  };
  /// One value of several parts.
  struct Joined {
    std::string name;
    Tensor value;  ///< float64; undefined for a metric that was only updated
    metrics::Metric* object;
    LogOptions options;  ///< with the parts' samples as batch size where that counts
  };
  static std::vector<Joined> join(const std::vector<LogPart>& parts);
  void log(const Joined& value);
  void log(std::string_view name, metrics::Metric& metric, const Tensor& last, const LogOptions& options);
  template <class V>
  void arrive(std::string_view name, const V& value, const LogOptions& options);
  std::string suffix_for(const LogOptions& options) const;
  std::size_t index_of(std::string_view name, const LogOptions& options);
  /// Checks the moment and the options, and finds the metric for them.
  std::size_t open(std::string_view name, LogOptions options);
  void take_in(const Arrival& arrival) const;
  /// Takes in what has arrived, or waits for everything.
  void settle(bool wait = true) const;
  void finish_sum(Metric& metric);
  void finish_object(Metric& metric);
  double value_of_all(metrics::Metric& object) const;
  std::string key_of(const Metric& metric) const;
  StateMap known_in(Split split) const;  ///< what this rank's metrics are, without their values
  std::vector<Metric> without_values(const StateMap& known, Split split) const;
  void learn_of_ranks(Split split);
  std::string object_name(const metrics::Metric* object) const;  ///< empty for none
  StateMap object_states() const;
  void load_objects(const StateMap& state);

  // Readers take in what they waited for.
  mutable std::vector<Metric> metrics_;
  mutable std::deque<Arrival> arrivals_;
  Objects objects_;
  Strategy* ranks_ = nullptr;
  Scope scope_ = Scope::closed;
  Split split_ = Split::train;
  std::int64_t batch_size_ = 1;
  int dataloader_ = -1;  // which of several
  std::uint64_t stamp_ = 0;
};

}  // namespace levin
