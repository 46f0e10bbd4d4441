#pragma once
// Base class of all metrics. Names, defaults and meanings are torchmetrics' (Lightning-AI).

#include <levin/core/state_dict.h>

#include <memory>

namespace levin::metrics {

/// How the states of several ranks or shards are combined.
enum class StateReduce { sum, min, max, cat };

/// A value accumulated over many batches. Between update and compute it consists of its named states: int64 counts,
/// float64 sums, or the samples themselves. They live on the device of the data; update does not read them back,
/// compute does.
///
/// Counts, and everything derived from counts and from kept samples, do not depend on how the samples are cut into
/// batches and shards, to the bit; sums agree within the rounding of float64.
class Metric {
 public:
  virtual ~Metric();

  /// Adds one batch, of the sizes and types that the class describes; ShapeError, DTypeError, IndexError or ValueError
  /// for others. The states move to the device of `preds`.
  void update(const Tensor& preds, const Tensor& target);
  /// Returns the value of all batches so far, float64 on the CPU (a confusion matrix: int64). May be called at any
  /// time, and more batches may follow. Before the first update it warns and returns the definition's value for no
  /// samples.
  Tensor compute() const;
  /// Returns compute() of a scalar metric. Throws ShapeError for others.
  double value() const { return compute().item<double>(); }
  /// Adds one batch and returns the value of that batch alone.
  Tensor operator()(const Tensor& preds, const Tensor& target);
  /// Value of the last batch given to operator(); undefined if there was none since reset.
  const Tensor& last() const { return last_; }
  /// Returns to the state before the first update.
  void reset();

  /// Adds the states of another metric of the same class and options. Throws StateError if they differ.
  void merge(const Metric& other);
  /// Adds the states of a state_dict, e.g. of another rank. Throws StateError if they do not fit.
  void merge_state_dict(const StateDict& state);

  /// Returns all states by name, for checkpoints and other ranks; load_state_dict throws StateError if they do not fit.
  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);

  /// Number of batches so far, with those of merged metrics.
  std::int64_t update_count() const { return updates_; }
  /// Prefix of error messages, such as "AUROC".
  const char* name() const { return name_; }

 protected:
  /// `name` is the prefix of error messages.
  explicit Metric(const char* name);
  Metric(const Metric&);
  Metric& operator=(const Metric&);

  /// Adds one batch to the states, by gather(); called without recording and without autocast.
  virtual void add(const Tensor& preds, const Tensor& target) = 0;
  /// Computes the value from the states.
  virtual Tensor result() const = 0;

  /// Declares a state; call it in the constructor. For a cat state `initial` gives only the type.
  void add_state(const char* name, const Tensor& initial, StateReduce reduce = StateReduce::sum);
  /// Combines `part` with the state by its reduction: adds, compares or appends.
  void gather(const char* name, const Tensor& part);
  /// Returns the state's value; for a cat state all parts concatenated, undefined if there is none.
  Tensor state(const char* name) const;
  /// Logs a warning, once per metric.
  void warn(const std::string& text) const;
  /// Throws ShapeError unless both have the same sizes.
  void require_same_sizes(const Tensor& preds, const Tensor& target) const;

 private:
  struct State {
    std::string name;
    StateReduce reduce = StateReduce::sum;
    Tensor initial;
    std::vector<Tensor> parts;  // one part, unless it is a cat state
  };
  State& find(std::string_view name);
  static Tensor joined(const State& state);
  void follow(Device device);

  const char* name_;
  std::vector<State> states_;
  std::int64_t updates_ = 0;
  Tensor last_;
  mutable bool warned_ = false;
};

}  // namespace levin::metrics
