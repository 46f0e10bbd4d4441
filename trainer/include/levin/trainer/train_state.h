#pragma once
// Position of a run. All of it is stored in checkpoints.

#include <levin/core/owned_ptr.h>
#include <levin/core/state_map.h>

namespace levin {

/// The kind of a run.
enum class Stage { fit, validate, test, predict };

/// Points at which a checkpoint may be written: all hooks of that point have run, so a resumed run repeats and skips
/// nothing.
enum class SavePoint { train_batch_end, validation_end, train_epoch_end, validation_batch_end };

/// Position of a run and its counts.
struct TrainState {
  std::int64_t epoch = 0;            ///< current epoch, from 0
  std::int64_t batch = 0;            ///< finished batches of this epoch
  std::int64_t total_batches = 0;    ///< finished batches of all epochs
  std::int64_t global_step = 0;      ///< completed accumulation windows; calls of training_step in manual mode
  /// Actual steps of each optimizer, as far as known (see StepRunner): windows that overflowed or had no loss make
  /// none.
  std::vector<std::int64_t> optimizer_steps{};
  std::int64_t samples = 0;                      ///< images, sentences, ... trained on so far
  std::int64_t micro = 0;                        ///< finished batches of the open accumulation window
  double window_nominal = 0;                     ///< weight of a full window; 0 before its first loss
  double window_weight = 0;                      ///< weight of the losses in the open window
  std::int64_t eval_loader = 0;                  ///< index of the current loader of a running validation
  std::int64_t eval_batch = 0;                   ///< its finished batches
  SavePoint point = SavePoint::train_batch_end;  ///< the latest save point that was reached
  bool epoch_complete = false;                   ///< no batch of this epoch is left

  /// Converts to the form that checkpoints store, and back. from_map() throws StateError for missing values.
  StateMap to_map() const;
  static TrainState from_map(const StateMap& map);
};

/// Lets callbacks, signals and user code end a run early. Thread-safe.
class StopToken {
 public:
  StopToken();
  ~StopToken();
  StopToken(const StopToken&) = delete;
  StopToken& operator=(const StopToken&) = delete;
  /// Asks the run to end; of several requests the first reason counts.
  void request(const std::string& reason);
  /// True once a request was made.
  bool requested() const;
  /// Reason of the request; empty without one.
  std::string reason() const;
  /// Withdraws the request, as the Trainer does when a run begins.
  void clear();

 private:
  struct Request;
  OwnedPtr<Request> request_;
};

}  // namespace levin
