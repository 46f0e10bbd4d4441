#include <levin/trainer/command_line.h>

#include <levin/trainer/signals.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <charconv>
#include <iostream>

namespace levin {
namespace {

/// Letters to change, add or drop to make one word of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] != b[j - 1] ? 1 : 0);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row.back();
}

template <class T>
T number(const std::string& option, const std::string& text, const char* kind) {
  T value{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end)
    throw UsageError(fmt::format("{} {}: give {}.", option, text, kind));
  return value;
}

std::int64_t whole_number(const std::string& option, const std::string& text, std::int64_t min) {
  const auto value = number<std::int64_t>(option, text, "a whole number");
  if (value < min) throw UsageError(fmt::format("{} {}: give a whole number of {} or more.", option, text, min));
  return value;
}

bool truth(const std::string& option, const std::string& text) {
  if (text.empty() || text == "{}") return true;  // the bare flag
  if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "0" || text == "no" || text == "off") return false;
  throw UsageError(fmt::format("{} {}: give true or false.", option, text));
}

template <class T>
std::string shown(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : std::string("none");
}

std::string shown(const BatchLimit& limit) {
  return limit.is_count() ? fmt::format("{}", limit.count()) : fmt::format("{:.1f}", limit.fraction());
}

std::string shown(const CheckInterval& interval) {
  return interval.time() ? interval.time()->text() : shown(interval.batches());
}

}  // namespace

struct CommandLine::Impl {
  CLI::App app;
  std::vector<std::string> names;

  void add(const std::string& name, const std::string& type, const std::string& now, const std::string& help,
           std::function<void(const std::string&)> take) {
    names.push_back("--" + name);
    app.add_option_function<std::string>("--" + name, take, help)->type_name(type)->default_str(now)->take_last();
  }

  [[noreturn]] void refuse_unknown(const std::string& argument) const {
    const std::string option = argument.substr(0, argument.find('='));
    const auto nearest = std::min_element(names.begin(), names.end(), [&](const auto& a, const auto& b) {
      return distance(option, a) < distance(option, b);
    });
    const bool close = nearest != names.end() && distance(option, *nearest) <= 3;
    throw UsageError(fmt::format("{}: this option is unknown. {}--help lists all.", option,
                                 close ? fmt::format("Did you mean {}? ", *nearest) : ""));
  }
};

CommandLine::CommandLine(const std::string& description) : impl_(new Impl) {
  impl_->app.description(description);
  impl_->app.allow_extras();
  impl_->app.set_help_flag("--help,-h", "Print this help and end");
}
CommandLine::~CommandLine() = default;

CommandLine& CommandLine::add(const std::string& name, std::string& value, const std::string& help) {
  impl_->add(name, "TEXT", value, help, [&value](const std::string& text) { value = text; });
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, std::filesystem::path& value, const std::string& help) {
  impl_->add(name, "PATH", value.string(), help, [&value](const std::string& text) { value = text; });
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, std::int64_t& value, const std::string& help, std::int64_t min) {
  impl_->add(name, "INT", std::to_string(value), help,
             [&value, name, min](const std::string& text) { value = whole_number("--" + name, text, min); });
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, std::optional<std::int64_t>& value, const std::string& help,
                              std::int64_t min) {
  impl_->add(name, "INT", shown(value), help,
             [&value, name, min](const std::string& text) { value = whole_number("--" + name, text, min); });
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, double& value, const std::string& help) {
  impl_->add(name, "FLOAT", fmt::format("{}", value), help,
             [&value, name](const std::string& text) { value = number<double>("--" + name, text, "a number"); });
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, std::optional<double>& value, const std::string& help) {
  impl_->add(name, "FLOAT", shown(value), help,
             [&value, name](const std::string& text) { value = number<double>("--" + name, text, "a number"); });
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, BatchLimit& value, const std::string& help) {
  impl_->add(name, "N|FRACTION", shown(value), help,
             [&value, name](const std::string& text) { value = BatchLimit::parse(text, "--" + name); });
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, CheckInterval& value, const std::string& help) {
  impl_->add(name, "N|FRACTION|TIME", shown(value), help,
             [&value, name](const std::string& text) { value = CheckInterval::parse(text, "--" + name); });
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, DeviceList& value, const std::string& help) {
  impl_->add(name, "N|LIST", value.text(), help, [&value](const std::string& text) { value = text; });
  return *this;
}

CommandLine& CommandLine::add_flag(const std::string& name, bool& value, const std::string& help) {
  impl_->names.push_back("--" + name);
  const auto take = [&value, name](const std::string& text) { value = truth("--" + name, text); };
  impl_->app.add_option_function<std::string>("--" + name, take, help)
      ->type_name(value ? "BOOL [true]" : "BOOL [false]")->expected(0, 1)->take_last();
  return *this;
}

CommandLine& CommandLine::add_choice(const std::string& name, std::string& value,
                                     const std::vector<std::string>& choices, const std::string& help) {
  const std::string list = fmt::format("{}", fmt::join(choices, "|"));
  impl_->add(name, list, value, help, [&value, name, choices, list](const std::string& text) {
    if (std::find(choices.begin(), choices.end(), text) == choices.end())
      throw UsageError(fmt::format("--{} {}: choose one of {}.", name, text, list));
    value = text;
  });
  return *this;
}

CommandLine& CommandLine::add_trainer(TrainerConfig& c) {
  add("max-epochs", c.max_epochs, "Epochs; -1 for no limit", -1);
  add("min-epochs", c.min_epochs, "Epochs that an early stop waits for");
  add("max-steps", c.max_steps, "Optimizer steps; -1 for no limit", -1);
  add("min-steps", c.min_steps, "Steps that an early stop waits for");
  add("fast-dev-run", c.fast_dev_run, "This many batches of everything, one epoch, nothing written");
  add("limit-train-batches", c.limit_train_batches, "Training batches an epoch, or a fraction");
  add("limit-val-batches", c.limit_val_batches, "Validation batches, or a fraction");
  add("limit-test-batches", c.limit_test_batches, "Test batches, or a fraction");
  add("limit-predict-batches", c.limit_predict_batches, "Prediction batches, or a fraction");
  add("val-check-interval", c.val_check_interval, "Batches between validations, or a fraction of an epoch");
  add("check-val-every-n-epoch", c.check_val_every_n_epoch, "Epochs between validations", 1);
  add("num-sanity-val-steps", c.num_sanity_val_steps, "Validation batches before training; -1 for all", -1);
  add_flag("inference-mode", c.inference_mode, "Evaluate under inference_mode");
  add("accumulate-grad-batches", c.accumulate_grad_batches, "Batches an optimizer step", 1);
  add("gradient-clip-val", c.gradient_clip_val, "Clip gradients to this");
  add_choice("gradient-clip-algorithm", c.gradient_clip_algorithm, {"norm", "value"}, "What is clipped");
  add("precision", c.precision, "32-true, 64-true, 16-mixed, bf16-mixed, 16-true or bf16-true");
  add("accelerator", c.accelerator, "auto, cpu or cuda");
  add("devices", c.devices, "Number or list of devices");
  add("strategy", c.strategy, "auto or single");
  add("default-root-dir", c.default_root_dir, "Folder for logs and checkpoints");
  add("log-every-n-steps", c.log_every_n_steps, "Steps between rows of the log", 1);
  add_flag("enable-checkpointing", c.enable_checkpointing, "Save checkpoints");
  add_flag("enable-progress-bar", c.enable_progress_bar, "Show progress");
  add_flag("enable-model-summary", c.enable_model_summary, "Print the network first");
  add_flag("logger", c.logger, "Write metrics.csv");
  add_flag("deterministic", c.deterministic, "Always so here");
  add("seed", c.seed, "Seed of the default generator");
  add_flag("handle-signals", c.handle_signals, "Ctrl-C ends after the current step with a checkpoint");
  add_flag("detect-anomaly", c.detect_anomaly, "Find the operation that makes a NaN");
  return *this;
}

bool CommandLine::parse(int argc, const char* const* argv) {
  try {
    impl_->app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::cout << impl_->app.help();
    return false;
  } catch (const CLI::ArgumentMismatch& e) {
    throw UsageError(std::string(e.what()) + ". Give each option one value.");
  } catch (const CLI::ParseError& e) {
    throw UsageError(std::string(e.what()) + ". --help lists all options.");
  }
  if (const auto extra = impl_->app.remaining(); !extra.empty()) impl_->refuse_unknown(extra.front());
  return true;
}

TrainerConfig parse_flags(int argc, const char* const* argv, TrainerConfig config) {
  CommandLine line("Options of the Trainer");
  line.add_trainer(config);
  if (!line.parse(argc, argv)) throw HelpShown();
  return config;
}

int run_main(const std::function<int()>& body) {
  const auto complain = [](const char* text, int status) {
    std::cout.flush();
    std::cerr << "error: " << text << std::endl;
    return status;
  };
  try {
    return body();
  } catch (const HelpShown&) {
    return 0;
  } catch (const UsageError& e) {
    return complain(e.what(), 2);
  } catch (const Interrupted& e) {
    return complain(e.what(), 128 + e.signal());
  } catch (const std::exception& e) {
    return complain(e.what(), 1);
  }
}

}  // namespace levin
