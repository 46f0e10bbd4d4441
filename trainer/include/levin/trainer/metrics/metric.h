#pragma once
// What all metrics share. Names, defaults and meanings are torchmetrics' (Lightning-AI).

#include <levin/core/state_dict.h>

#include <memory>

namespace levin::metrics {

/// How the parts of a state that several ranks or shards hold become one.
enum class StateReduce { sum, min, max, cat };

/// A value gathered over many batches. Between update and compute it is only its named states: int64 counts, float64
/// sums, or the samples themselves. They live on the device of the data and no update reads them; compute does.
///
/// However the samples are cut into batches, and the batches into shards that are merged, counts (and all that follows
/// from counts and from kept samples) are the same to the bit; sums agree within the rounding of float64.
class Metric {
 public:
  virtual ~Metric();

  /// Takes in one batch. Throws ShapeError, DTypeError, ValueError.
  void update(const Tensor& preds, const Tensor& target);
  /// The value of all batches so far, float64 on the CPU (a confusion matrix: int64). May be called at any time, and
  /// more may be added after. Before the first update it warns and gives what the definition does with nothing.
  Tensor compute() const;
  /// compute() of a metric that is one number. Throws ShapeError for others.
  double value() const { return compute().item<double>(); }
  /// Takes in one batch and gives that batch's own value.
  Tensor operator()(const Tensor& preds, const Tensor& target);
  /// The value of the last batch given to operator(); undefined when there was none since the reset.
  const Tensor& last() const { return last_; }
  void reset();

  /// Adds what another metric of the same class and options has gathered. Throws StateError for another kind.
  void merge(const Metric& other);
  /// The same from a state_dict, e.g. of another rank.
  void merge_state_dict(const StateDict& state);

  /// All states by name, for checkpoints and for other ranks; load_state_dict throws StateError where it does not fit.
  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);

  std::int64_t update_count() const { return updates_; }
  const char* name() const { return name_; }

 protected:
  /// `name` heads the error messages.
  explicit Metric(const char* name);
  Metric(const Metric&);
  Metric& operator=(const Metric&);

  virtual void add(const Tensor& preds, const Tensor& target) = 0;
  virtual Tensor result() const = 0;

  /// Declares a state in the constructor; `initial` of a cat state says its type only.
  void add_state(const char* name, const Tensor& initial, StateReduce reduce = StateReduce::sum);
  /// Adds to (or compares with, or appends to) the state as its reduction says.
  void gather(const char* name, const Tensor& part);
  /// The state's value: of a cat state, all parts in one; undefined when there is none.
  Tensor state(const char* name) const;
  /// Says it in the log, the first time only.
  void warn(const std::string& text) const;
  /// Throws ShapeError unless both have the same sizes.
  void require_same_sizes(const Tensor& preds, const Tensor& target) const;

 private:
  struct State {
    std::string name;
    StateReduce reduce = StateReduce::sum;
    Tensor initial;
    std::vector<Tensor> parts;  // one, unless it is a cat state
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
