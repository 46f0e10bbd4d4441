#pragma once
// Destinations for logged values.

#include <levin/trainer/config/config.h>
#include <levin/trainer/metric_store.h>
#include <levin/trainer/model_graph.h>

#include <string>
#include <variant>

namespace levin {

/// Values logged at one step.
struct LogRecord {
  std::int64_t epoch = 0;        ///< from 0
  std::int64_t step = 0;         ///< global_step
  MetricStore::Values values{};  ///< by name
};

/// One value of a hyper-parameter, and all of them by name.
using Hyperparameter = std::variant<bool, std::int64_t, double, std::string>;
using Hyperparameters = std::vector<std::pair<std::string, Hyperparameter>>;
/// Returns "true", "128", "0.001", or the text itself.
std::string to_string(const Hyperparameter& value);

/// A curve with its own x axis instead of steps, e.g. the loss by learning rate of a search.
struct LogCurve {
  /// Title of the plot and labels of its axes, and the coordinates of the points in the order of the line.
  std::string name, x_label, y_label;
  std::vector<double> x{}, y{};
  bool log_x = false;            ///< draws the x axis logarithmically
  std::optional<double> mark{};  ///< an x value to highlight
};

/// Outcome of a run.
enum class RunStatus { success, interrupted, failed };

/// A sink for records that knows nothing of training. A logger handles the kinds of data it supports and ignores the
/// rest. A write failure throws IoError, which the Trainer reports once.
class Logger {
 public:
  virtual ~Logger() = default;

  virtual void log_metrics(const LogRecord& record) = 0;   ///< the values of a step or an epoch
  virtual void log_hyperparams(const Hyperparameters&) {}  ///< those of the module, when a fit begins
  virtual void log_model(const nn::Module&) {}             ///< a table of its modules
  virtual void log_graph(const ModelGraph&) {}             ///< its operations: see trace_graph
  /// Images in make_grid's format: (N, C, H, W), (C, H, W) or (H, W), floating-point in [0, 1] or u8.
  virtual void log_image(const std::string& /*name*/, const Tensor& /*images*/, std::int64_t /*step*/) {}
  /// Numbers whose distribution matters (of any sizes), and a text.
  virtual void log_histogram(const std::string& /*name*/, const Tensor& /*values*/, std::int64_t /*step*/) {}
  virtual void log_text(const std::string& /*name*/, const std::string& /*text*/, std::int64_t /*step*/) {}
  /// counts (C, C), rows are true classes, columns predicted ones; labels are the class names, or empty.
  virtual void log_confusion_matrix(const std::string& /*name*/, const Tensor& /*counts*/,
                                    const std::vector<std::string>& /*labels*/, std::int64_t /*step*/) {}
  /// A curve, such as that of lr_find.
  virtual void log_curve(const LogCurve&) {}

  /// Continues a run after `step`: discards later records.
  virtual void resume(std::int64_t step) = 0;
  /// Flushes the log to disk; called after each epoch and at the end.
  virtual void save() = 0;
  /// Called when the run is over; saves.
  virtual void finalize(RunStatus) { save(); }

  /// Names of the experiment and of the run, as Lightning's loggers have them; empty if a logger has none.
  virtual std::string name() const { return {}; }
  virtual std::string version() const { return {}; }
  /// Folder of the log files.
  virtual std::string log_dir() const = 0;
};

/// Lightning's layout `save_dir`/`name`/version_k: k is the given `version`, or the number after the largest in use.
struct LogFolder {
  std::string save_dir{};
  std::string name = "levin_logs";
  std::optional<std::int64_t> version{};

  /// Fixes the version and returns the folder.
  std::string settle();
};

/// Writes one table, metrics.csv: epoch, step, then a column per name in the order of first appearance.
class CSVLogger : public Logger {
 public:
  /// Takes the path of the file, which each save rewrites.
  explicit CSVLogger(std::string file);
  /// The file.
  const std::string& path() const { return file_; }
  void log_metrics(const LogRecord& record) override;
  void resume(std::int64_t step) override;
  void save() override;
  std::string log_dir() const override;

 private:
  std::size_t column(const std::string& name);
  void read_rows(std::int64_t last_step);

  std::string file_;
  std::vector<std::string> columns_;
  struct Row {
    std::string epoch, step;
    std::vector<std::string> cells;  // by column; short rows are padded with empty cells
  };
  std::vector<Row> rows_;
  bool changed_ = false;
};

/// Creates the loggers of these names; their files are placed in `root`.
std::vector<std::shared_ptr<Logger>> make_loggers(const LoggerChoice& choice, const std::string& root);

}  // namespace levin
