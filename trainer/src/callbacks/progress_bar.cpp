#include <levin/trainer/callbacks/progress_bar.h>
#include <levin/trainer/data_module.h>
#include <levin/trainer/module.h>

#include <fmt/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace levin {
namespace {

constexpr const char *kBold = "1", *kDim = "2", *kGreen = "32", *kBlue = "36";

double seconds_since(double start) { return monotonic_seconds() - start; }

std::string clock_text(double seconds) {
  const auto s = static_cast<std::int64_t>(std::min(seconds, 1e12) + 0.5);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string number_text(double v) {
  const double a = std::abs(v);
  return a != 0 && (a < 1e-3 || a >= 1e6) ? fmt::format("{:.2e}", v) : fmt::format("{:.4f}", v);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool names_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = environment(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

/// Selects the values to show: all of them in training.
std::optional<Split> split_of(Stage stage) {
  if (stage == Stage::fit) return std::nullopt;
  return stage == Stage::test ? Split::test : stage == Stage::validate ? Split::validation : Split::predict;
}

int columns_of(std::FILE* out) {
  winsize size{};
  if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const int asked = std::atoi(environment("COLUMNS").c_str());
  return asked > 0 ? asked : 100;
}

}  // namespace

ProgressBar::ProgressBar(ProgressBarOptions options)
    : options_(options),
      terminal_(options.terminal.value_or(isatty(fileno(options.out)) == 1 && environment("TERM") != "dumb")),
      color_(terminal_ && options.color.value_or(environment("NO_COLOR").empty())),
      unicode_(options.unicode.value_or(names_utf8())) {}

void ProgressBar::start(Timing& timing, std::int64_t first) { timing = {monotonic_seconds(), first, 0}; }

bool ProgressBar::due(std::int64_t done, std::int64_t total) {
  const double interval = terminal_ ? 1.0 / options_.max_rate : options_.plain_interval;
  if (done < total && seconds_since(shown_) < interval) return false;
  return terminal_ || done < total;
}

std::string ProgressBar::epoch_title(const RunContext& run) const {
  if (run.max_epochs < 0) return fmt::format("epoch {}", run.state.epoch + 1);
  return fmt::format("epoch {}/{}", run.state.epoch + 1, run.max_epochs);
}

ProgressBar::Bar ProgressBar::bar(const RunContext& run, std::string title, const Timing& timing, std::int64_t done,
                                  std::int64_t total) const {
  Bar b{.title = std::move(title), .done = done, .total = total, .seconds = seconds_since(timing.start)};
  const double own = b.seconds - timing.paused;
  b.rate = own > 0 ? static_cast<double>(done - timing.first) / own : 0;
  b.values = run.metrics.progress_bar_values(split_of(run.stage));
  b.stats = stats(run);
  return b;
}

std::vector<std::string> ProgressBar::stats(const RunContext& run) const {
  std::vector<std::string> out;
  if (options_.data_wait && run.stage == Stage::fit && run.data && run.data->train)
    out.push_back(fmt::format("wait {:.0f} %", 100 * run.data->train->times().share()));
  if (options_.memory) {
    const Device device = run.module.device();
    const auto bytes = device_backend(device).memory_stats(device.index).allocated;
    out.push_back(fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6));
  }
  return out;
}

std::string ProgressBar::painted(const char* code, const std::string& text) const {
  return color_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

// Parts in order of importance. On a terminal the line is cut before the first part that would wrap.
std::string ProgressBar::line_of(const Bar& b) const {
  const std::string counts = fmt::format(" {}/{}", b.done, b.total);
  std::vector<std::pair<std::string, std::string>> parts;  // as shown, as painted
  const auto add = [&](const std::string& text) { parts.emplace_back("  " + text, "  " + painted(kDim, text)); };
  add(fmt::format("{:.{}f} batches/s", b.rate, b.rate < 10 ? 2 : 1));
  if (b.last)
    add("took " + clock_text(b.seconds));
  else if (b.rate > 0)
    add("left " + clock_text(static_cast<double>(b.total - b.done) / b.rate));
  if (!b.nested)
    for (const auto& text : b.stats) add(text);
  if (!b.nested)
    for (const auto& [name, value] : b.values) {
      const std::string text = number_text(value);
      parts.emplace_back("  " + name + " " + text, "  " + painted(kDim, name) + " " + text);
    }
  const std::string indent = b.nested ? "  " : "";
  std::string line = indent + (b.nested ? b.title : painted(kBold, b.title));
  if (!terminal_) {
    line += counts;
    for (const auto& [text, _] : parts) line += text;
    return line;
  }
  const auto columns = static_cast<std::int64_t>(options_.columns > 0 ? options_.columns : columns_of(options_.out));
  std::int64_t used = std::ssize(indent + b.title + counts);
  const std::int64_t width = std::clamp<std::int64_t>(columns - used - 60, 0, 20);
  if (width >= 4) {
    const std::int64_t full = b.total > 0 ? std::min(b.done, b.total) * width / b.total : width;
    std::string gauge, rest;
    for (std::int64_t i = 0; i < width; ++i) {
      if (i < full)
        gauge += unicode_ ? "━" : "=";
      else if (i == full)
        gauge += unicode_ ? "╸" : ">";
      else
        rest += unicode_ && color_ ? "━" : " ";
    }
    const std::string filled = painted(full == width ? kGreen : kBlue, gauge);
    line += unicode_ ? " " + filled + painted(kDim, rest) : " [" + filled + rest + "]";
    used += width + (unicode_ ? 1 : 3);
  }
  line += counts;
  for (const auto& [text, paint] : parts) {
    used += std::ssize(text);
    if (used >= columns) break;
    line += paint;
  }
  return line;
}

void ProgressBar::draw(const std::vector<Bar>& bars) {
  std::string out;
  if (terminal_) {
    if (lines_ > 1) out += fmt::format("\x1b[{}A", lines_ - 1);
    out += "\r";
    for (std::size_t i = 0; i < bars.size(); ++i)
      out += line_of(bars[i]) + "\x1b[K" + (i + 1 < bars.size() ? "\n" : "");
    if (bars.size() < lines_) out += "\x1b[J";
    lines_ = bars.size();
    if (bars.back().last) {
      out += "\n";
      lines_ = 0;
    }
  } else {
    for (const auto& b : bars) out += line_of(b) + "\n";
  }
  fmt::print(options_.out, "{}", out);
  std::fflush(options_.out);
  shown_ = monotonic_seconds();
}

namespace {

/// Batches of this epoch that will run, of which `done` have: max_steps may end the fit earlier than the loader.
std::int64_t expected_batches(const RunContext& run, std::int64_t done) {
  const TrainerConfig& c = run.config;
  if (c.max_steps < 0) return run.train_batches;
  const std::int64_t steps = std::max<std::int64_t>(0, c.max_steps - run.state.global_step);
  const std::int64_t total = done + std::max<std::int64_t>(0, steps * c.accumulate_grad_batches - run.state.micro);
  return run.train_batches < 0 ? total : std::min(run.train_batches, total);
}

}  // namespace

// A resumed epoch has no on_train_epoch_start.
void ProgressBar::on_train_start(RunContext& run) { on_train_epoch_start(run); }

void ProgressBar::on_train_epoch_start(RunContext& run) {
  start(train_, run.state.batch);
  shown_ = train_.start;
}

void ProgressBar::on_train_batch_end(RunContext& run, const StepOutput&, const Batch&, int index) {
  const std::int64_t done = index + 1, total = expected_batches(run, done);
  if (due(done, total)) draw({bar(run, epoch_title(run), train_, done, total)});
}

void ProgressBar::on_train_epoch_end(RunContext& run) {
  Bar b = bar(run, epoch_title(run), train_, run.state.batch, expected_batches(run, run.state.batch));
  b.last = true;
  draw({b});
}

void ProgressBar::on_validation_start(RunContext& run) {
  start(eval_, 0);
  if (run.stage == Stage::fit && !run.sanity_checking)
    epoch_ = bar(run, epoch_title(run), train_, run.state.batch, expected_batches(run, run.state.batch));
}
void ProgressBar::on_test_start(RunContext&) { start(eval_, 0); }
void ProgressBar::on_predict_start(RunContext&) { start(eval_, 0); }

void ProgressBar::show_eval(RunContext& run, const char* title, std::int64_t done, bool last) {
  Bar b = bar(run, title, eval_, done, run.eval_batches);
  b.last = last;
  draw({b});
}

void ProgressBar::on_validation_batch_end(RunContext& run, const Batch&, int) {
  if (!due(run.eval_batches_done, run.eval_batches)) return;
  if (run.stage == Stage::validate) {
    show_eval(run, "validation", run.eval_batches_done, false);
  } else if (terminal_) {
    if (run.sanity_checking) return show_eval(run, "sanity check", run.eval_batches_done, false);
    Bar b = bar(run, "validation", eval_, run.eval_batches_done, run.eval_batches);
    b.nested = true;
    draw({epoch_, b});
  }
}
void ProgressBar::on_test_batch_end(RunContext& run, const Batch&, int) {
  if (due(run.eval_batches_done, run.eval_batches)) show_eval(run, "test", run.eval_batches_done, false);
}
void ProgressBar::on_predict_batch_end(RunContext& run, const Batch&, int) {
  if (due(run.eval_batches_done, run.eval_batches)) show_eval(run, "predict", run.eval_batches_done, false);
}

void ProgressBar::on_validation_end(RunContext& run) {
  if (run.stage == Stage::validate) return show_eval(run, "validation", run.eval_batches, true);
  if (!run.sanity_checking) train_.paused += seconds_since(eval_.start);
}
void ProgressBar::on_test_end(RunContext& run) { show_eval(run, "test", run.eval_batches, true); }
void ProgressBar::on_predict_end(RunContext& run) { show_eval(run, "predict", run.eval_batches, true); }

void ProgressBar::on_exception(RunContext&, const std::exception&) {
  if (terminal_ && lines_ > 0) fmt::print(options_.out, "\n");
  lines_ = 0;
}

}  // namespace levin
