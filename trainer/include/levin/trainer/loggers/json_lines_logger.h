#pragma once
// Writes one JSON object per line, for programs that follow the log.

#include <levin/trainer/loggers/logger.h>

namespace levin {

/// Lines {"epoch":0,"step":50,"values":{"train_loss":0.31}}, {"hyperparameters":{...}}, {"name":...,"text":...} and
/// {"name":...,"confusion_matrix":[[...]],"labels":[...]}; values that are not finite are "NaN", "Infinity" or
/// "-Infinity". Lines are appended at each save, so a reader may follow; resume drops a line that a crash truncated.
class JsonLinesLogger : public Logger {
 public:
  /// Takes the path of the file, whose contents of an earlier run are replaced unless the run resumes.
  explicit JsonLinesLogger(std::string file) : file_(std::move(file)) {}
  /// The file.
  const std::string& path() const { return file_; }

  void log_metrics(const LogRecord& record) override;
  void log_hyperparams(const Hyperparameters& parameters) override;
  void log_text(const std::string& name, const std::string& text, std::int64_t step) override;
  void log_confusion_matrix(const std::string& name, const Tensor& counts, const std::vector<std::string>& labels,
                            std::int64_t step) override;
  void resume(std::int64_t step) override;
  void save() override;
  std::string log_dir() const override;

 private:
  std::string file_;
  std::string pending_;
  bool started_ = false;  ///< true once the first save of this run has replaced the file of an earlier run
};

}  // namespace levin
