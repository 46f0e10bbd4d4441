#include <levin/trainer/progress_bar.h>

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>

namespace levin {
namespace {

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

std::string clock_text(double seconds) {
  const auto s = static_cast<std::int64_t>(seconds + 0.5);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

/// Which values are shown: all in training.
std::optional<Split> split_of(Stage stage) {
  if (stage == Stage::fit) return std::nullopt;
  return stage == Stage::test ? Split::test : stage == Stage::validate ? Split::validation : Split::predict;
}

std::string gauge(std::int64_t done, std::int64_t total) {
  constexpr std::int64_t kWidth = 20;
  const std::int64_t full = total > 0 ? done * kWidth / total : kWidth;
  std::string out(static_cast<std::size_t>(full), '=');
  if (full < kWidth) out += '>';
  out.resize(static_cast<std::size_t>(kWidth), ' ');
  return "[" + out + "]";
}

}  // namespace

ProgressBar::ProgressBar(ProgressBarOptions options)
    : options_(options), terminal_(options.terminal.value_or(isatty(fileno(options.out)) == 1)) {}

void ProgressBar::start(Timing& timing, std::int64_t first) {
  timing.start = Clock::now();
  timing.first = first;
}

bool ProgressBar::due(std::int64_t done, std::int64_t total) {
  const double interval = terminal_ ? 1.0 / options_.max_rate : options_.plain_interval;
  if (done < total && seconds_since(shown_) < interval) return false;
  return terminal_ || done < total;
}

std::string ProgressBar::epoch_title(const RunContext& run) const {
  if (run.max_epochs < 0) return fmt::format("epoch {}", run.state.epoch + 1);
  return fmt::format("epoch {}/{}", run.state.epoch + 1, run.max_epochs);
}

void ProgressBar::show(RunContext& run, const std::string& title, const Timing& timing, std::int64_t done,
                       std::int64_t total, bool last) {
  const double seconds = seconds_since(timing.start);
  const double rate = seconds > 0 ? static_cast<double>(done - timing.first) / seconds : 0;
  std::string line = title;
  if (terminal_) line += " " + gauge(done, total);
  line += fmt::format(" {}/{}  {:.1f} batches/s", done, total, rate);
  if (last) line += "  took " + clock_text(seconds);
  else if (rate > 0) line += "  left " + clock_text(static_cast<double>(total - done) / rate);
  for (const auto& [name, value] : run.metrics.progress_bar_values(split_of(run.stage)))
    line += fmt::format("  {} {:.4f}", name, value);
  write(line, last);
  shown_ = Clock::now();
}

void ProgressBar::write(const std::string& line, bool last) {
  if (terminal_) {
    const std::size_t pad = width_ > line.size() ? width_ - line.size() : 0;
    fmt::print(options_.out, "\r{}{}{}", line, std::string(pad, ' '), last ? "\n" : "");
    width_ = last ? 0 : line.size();
  } else {
    fmt::print(options_.out, "{}\n", line);
  }
  std::fflush(options_.out);
}

void ProgressBar::on_train_epoch_start(RunContext& run) {
  start(train_, run.state.batch);
  shown_ = train_.start;
}

void ProgressBar::on_train_batch_end(RunContext& run, const StepOutput&, const Batch&, int index) {
  if (due(index + 1, run.train_batches)) show(run, epoch_title(run), train_, index + 1, run.train_batches, false);
}

void ProgressBar::on_train_epoch_end(RunContext& run) {
  show(run, epoch_title(run), train_, run.state.batch, run.train_batches, true);
}

void ProgressBar::on_validation_start(RunContext&) { start(eval_, 0); }
void ProgressBar::on_test_start(RunContext&) { start(eval_, 0); }
void ProgressBar::on_predict_start(RunContext&) { start(eval_, 0); }

void ProgressBar::on_validation_batch_end(RunContext& run, const Batch&, int index) {
  if (terminal_ && due(index + 1, run.eval_batches))
    show(run, run.sanity_checking ? "sanity check" : "validation", eval_, index + 1, run.eval_batches, false);
}
void ProgressBar::on_test_batch_end(RunContext& run, const Batch&, int index) {
  if (due(index + 1, run.eval_batches)) show(run, "test", eval_, index + 1, run.eval_batches, false);
}
void ProgressBar::on_predict_batch_end(RunContext& run, const Batch&, int index) {
  if (due(index + 1, run.eval_batches)) show(run, "predict", eval_, index + 1, run.eval_batches, false);
}

void ProgressBar::on_validation_end(RunContext& run) {
  if (run.stage == Stage::validate) show(run, "validation", eval_, run.eval_batches, run.eval_batches, true);
}
void ProgressBar::on_test_end(RunContext& run) { show(run, "test", eval_, run.eval_batches, run.eval_batches, true); }
void ProgressBar::on_predict_end(RunContext& run) {
  show(run, "predict", eval_, run.eval_batches, run.eval_batches, true);
}

void ProgressBar::on_exception(RunContext&, const std::exception&) {
  if (terminal_ && width_ > 0) fmt::print(options_.out, "\n");
  width_ = 0;
}

}  // namespace levin
