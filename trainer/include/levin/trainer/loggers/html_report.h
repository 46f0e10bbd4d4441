#pragma once
// A run as a single HTML page: curves, images, confusion matrices, model, configuration, environment.

#include <levin/core/owned_ptr.h>
#include <levin/data/image.h>
#include <levin/trainer/loggers/logger.h>

namespace levin {

/// Options of HtmlReport.
struct HtmlReportOptions {
  std::string file = "report.html";            ///< the page
  std::string title = "Training run";          ///< its heading
  double interval = 10;                        ///< seconds between two writes while values arrive
  std::size_t max_points = 4000;               ///< per curve; beyond it, neighbours are merged into their extremes
  std::size_t max_images = 24;                 ///< per name; beyond it, every second image is dropped
  std::size_t max_matrices = 12;               ///< per name; beyond it, every second matrix is dropped
  bool throughput = true;                      ///< plot steps per second, from the times of the records
  data::GridOptions grid{};                    ///< layout for log_image
};

/// Writes one self-contained HTML file, completely rewritten at each save and every `interval` seconds, so it can be
/// viewed in a browser at any time. A resumed run continues the same file.
class HtmlReport : public Logger {
 public:
  /// The file is first written when a value arrives or at the first save.
  explicit HtmlReport(HtmlReportOptions options = {});
  ~HtmlReport() override;

  void log_metrics(const LogRecord& record) override;
  void log_hyperparams(const Hyperparameters& parameters) override;
  void log_model(const nn::Module& module) override;
  void log_image(const std::string& name, const Tensor& images, std::int64_t step) override;
  void log_text(const std::string& name, const std::string& text, std::int64_t step) override;
  void log_confusion_matrix(const std::string& name, const Tensor& counts, const std::vector<std::string>& labels,
                            std::int64_t step) override;
  void log_curve(const LogCurve& curve) override;
  void resume(std::int64_t step) override;
  void save() override;
  void finalize(RunStatus status) override;
  std::string log_dir() const override;

 private:
  struct Data;
  void changed();
  void add_point(const std::string& name, std::int64_t step, std::int64_t epoch, double value);

  HtmlReportOptions options_;
  OwnedPtr<Data> data_;
};

/// Environment of a run besides its configuration: versions, processor, SIMD target, threads, system.
std::vector<std::pair<std::string, std::string>> environment_rows();

}  // namespace levin
