#pragma once
// Where logged values go.

#include <levin/trainer/metric_store.h>

#include <filesystem>

namespace levin {

/// The values of one moment.
struct LogRecord {
  std::int64_t epoch = 0;
  std::int64_t step = 0;  ///< global_step
  MetricStore::Values values{};
};

/// A sink for records; knows nothing of training. Failing to write throws IoError, which the Trainer reports once.
class Logger {
 public:
  virtual ~Logger() = default;
  virtual void log(const LogRecord& record) = 0;
  /// A run continues behind `step`: records beyond it are forgotten.
  virtual void resume(std::int64_t step) = 0;
  /// Makes what was logged safe on disk; called after each epoch and at the end.
  virtual void flush() = 0;
};

/// One table, metrics.csv: epoch, step, then a column for every name in the order of its first record.
class CSVLogger : public Logger {
 public:
  explicit CSVLogger(std::filesystem::path file) : file_(std::move(file)) {}
  const std::filesystem::path& path() const { return file_; }
  void log(const LogRecord& record) override;
  void resume(std::int64_t step) override;
  void flush() override;

 private:
  std::size_t column(const std::string& name);
  void read_rows(std::int64_t last_step);

  std::filesystem::path file_;
  std::vector<std::string> columns_;
  struct Row {
    std::string epoch, step;
    std::vector<std::string> cells;  // by column; short rows end in empty cells
  };
  std::vector<Row> rows_;
  bool changed_ = false;
};

}  // namespace levin
