#pragma once
// Event files for TensorBoard (tensorboard --logdir DIR).

#include <levin/core/owned_ptr.h>
#include <levin/data/image.h>
#include <levin/trainer/loggers/logger.h>

namespace levin {

/// Options of TensorBoardLogger.
struct TensorBoardOptions {
  LogFolder folder{};             ///< where the event files are placed
  std::string prefix{};           ///< prepended to each name, as "prefix-name"
  bool default_hp_metric = true;  ///< log "hp_metric" -1 if the run logs none, to list it in HParams
  data::GridOptions grid{};       ///< layout for log_image
};

/// Writes scalars, images, histograms (TensorFlow's exponential buckets), texts, the graph, and hyper-parameters for
/// the HParams tab; a confusion matrix becomes an image. Files are created with the first record. A resumed run tells
/// readers to discard everything after its checkpoint.
class TensorBoardLogger : public Logger {
 public:
  /// The version of the folder is fixed with the first record, or by log_dir().
  explicit TensorBoardLogger(TensorBoardOptions options);
  ~TensorBoardLogger() override;

  void log_metrics(const LogRecord& record) override;
  void log_hyperparams(const Hyperparameters& parameters) override;
  void log_graph(const ModelGraph& graph) override;
  void log_image(const std::string& name, const Tensor& images, std::int64_t step) override;
  void log_histogram(const std::string& name, const Tensor& values, std::int64_t step) override;
  void log_text(const std::string& name, const std::string& text, std::int64_t step) override;
  void log_confusion_matrix(const std::string& name, const Tensor& counts, const std::vector<std::string>& labels,
                            std::int64_t step) override;
  void resume(std::int64_t step) override;
  void save() override;
  void finalize(RunStatus status) override;
  std::string name() const override { return options_.folder.name; }
  std::string version() const override;
  std::string log_dir() const override;

 private:
  struct Events;
  Events& events();
  std::string full_name(const std::string& name) const;

  mutable TensorBoardOptions options_;
  OwnedPtr<Events> events_;
  bool has_hyperparams_ = false;
};

}  // namespace levin
