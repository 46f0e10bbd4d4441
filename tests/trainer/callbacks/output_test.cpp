// The output for users and on disk: progress, summary, CSV.
#include <levin/core/io.h>
#include <levin/trainer/callbacks/model_summary.h>
#include <levin/trainer/callbacks/progress_bar.h>

#include <algorithm>
#include <sstream>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

std::string shown(ProgressBarOptions options) {
  const TempDir f;
  const auto file = f.path / "out";
  options.out = std::fopen(file.c_str(), "w");
  manual_seed(1);
  ToyModule model;
  data::DataLoader train(toy_points(16), {.batch_size = 4}), val(toy_points(8), {.batch_size = 4});
  auto config = quiet({.max_epochs = 2, .val_check_interval = std::int64_t{2}});
  config.callbacks = {ProgressBar(options)};
  Trainer trainer(config);
  const DataModule only_val{.val = std::shared_ptr<data::DataLoader>(std::shared_ptr<void>(), &val)};
  trainer.fit(model, train, val);
  trainer.validate(model, only_val);
  trainer.test(model, {.test = only_val.val});
  trainer.predict(model, {.predict = only_val.val});
  std::fclose(options.out);
  return io::read_text(file);
}

/// The contents of a terminal after each write: handles \r, \n, ESC[nA (up), ESC[K and ESC[J (clear), colours.
struct Screen {
  std::vector<std::string> lines = std::vector<std::string>(1);
  std::size_t row = 0, column = 0, widest = 0;

  void put(char c) {
    if (c == '\r')
      column = 0;
    else if (c == '\n')
      lines.resize(std::max(lines.size(), ++row + 1)), column = 0;
    else {
      auto& line = lines[row];
      line.resize(std::max(line.size(), column + 1), ' ');
      line[column++] = c;
      widest = std::max(widest, column);
    }
  }
  void escape(int number, char kind) {
    if (kind == 'A') row -= static_cast<std::size_t>(number);
    if (kind == 'K' || kind == 'J') lines[row].resize(column);
    if (kind == 'J') lines.resize(row + 1);
  }
  /// Calls `look` before each cursor return.
  template <class F>
  void write(const std::string& text, const F& look) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\x1b') {
        if (text[i] == '\r') look(*this);
        put(text[i]);
        continue;
      }
      const auto end = text.find_first_of("AKJm", i);
      escape(std::atoi(text.substr(i + 2, end - i - 2).c_str()), text[end]);
      i = end;
    }
    look(*this);
  }
};

ProgressBarOptions on_terminal() {
  return {.terminal = true, .color = false, .unicode = false, .columns = 160, .max_rate = 1e9};
}

}  // namespace

TEST_CASE("a resumed epoch is measured from where it goes on") {
  const TempDir f;
  const auto file = f.path / "out";
  auto config = quiet({.max_epochs = 1, .max_steps = 2, .default_root_dir = f.path.string()});
  config.enable_checkpointing = true;
  data::DataLoader train(toy_points(16), {.batch_size = 4});
  ToyModule first, second;
  Trainer(config).fit(first, train);
  config.max_steps = 4;
  config.resume = "last";
  std::FILE* out = std::fopen(file.c_str(), "w");
  config.callbacks = {ProgressBar({.out = out})};
  Trainer(config).fit(second, train);
  std::fclose(out);
  const std::string text = io::read_text(file);
  CHECK_MESSAGE(contains(text, "epoch 1/1 4/4"), text);
  CHECK_MESSAGE(contains(text, "took 0:00"), text);  // not since the machine's start
}

TEST_CASE("an epoch counts the batches that run before max_steps ends the fit") {
  const TempDir f;
  const auto file = f.path / "out";
  auto config = quiet({.max_epochs = -1, .max_steps = 3, .accumulate_grad_batches = 2});
  std::FILE* out = std::fopen(file.c_str(), "w");
  auto options = on_terminal();
  options.out = out;
  config.callbacks = {ProgressBar(options)};
  data::DataLoader train(toy_points(16), {.batch_size = 4});
  ToyModule model;
  Trainer(config).fit(model, train);
  std::fclose(out);
  const std::string text = io::read_text(file);
  for (const char* counts : {" 1/4 ", " 3/4 ", " 1/2 ", " 2/2 "}) CHECK_MESSAGE(contains(text, counts), text);
}

TEST_CASE("on a terminal bars are drawn over: an epoch with its validation below, rate, time left, metrics") {
  std::vector<std::string> seen;
  Screen screen;
  std::size_t most = 0;
  screen.write(shown(on_terminal()), [&](const Screen& s) {
    std::string all;
    for (const auto& line : s.lines) all += line + "\n";
    seen.push_back(all);
    most = std::max(most, s.lines.size());
  });
  const auto stood = [&](const std::string& part) {
    return std::any_of(seen.begin(), seen.end(), [&](const auto& s) { return contains(s, part); });
  };
  CHECK(stood("sanity check [===================="));
  CHECK(stood("epoch 1/2 [=====>              ] 1/4  "));
  CHECK(stood("epoch 1/2 [==========>         ] 2/4  "));
  CHECK(stood("  validation [==========>         ] 1/2  "));
  CHECK(stood("left 0:00"));
  const bool nested = std::any_of(seen.begin(), seen.end(), [](const auto& s) {
    const auto epoch = s.find("epoch 2/2 [==========>"), inside = s.find("\n  validation [");
    return epoch != std::string::npos && inside != std::string::npos && epoch < inside;
  });
  CHECK(nested);
  // At the end: two epochs, validate, test, predict, each on one line, and no rest of a nested bar.
  REQUIRE(screen.lines.size() == 6);
  CHECK(most == 6);
  const std::string starts[] = {"epoch 1/2 [====================] 4/4",  "epoch 2/2 [====================] 4/4",
                                "validation [====================] 2/2", "test [====================] 2/2",
                                "predict [====================] 2/2",    ""};
  for (std::size_t i = 0; i < 6; ++i) CHECK_MESSAGE(screen.lines[i].starts_with(starts[i]), screen.lines[i]);
  for (const char* part : {"batches/s", "took 0:00", "train_loss_step ", "val_acc "})
    CHECK_MESSAGE(contains(screen.lines[1], part), part);
  CHECK(contains(screen.lines[2], "val_acc "));
  CHECK(screen.lines[5].empty());
}

TEST_CASE("a line never wraps: parts that do not fit are omitted, the counts last") {
  for (const int columns : {20, 40, 61, 80, 200}) {
    CAPTURE(columns);
    auto options = on_terminal();
    options.columns = columns;
    Screen screen;
    screen.write(shown(options), [](const Screen&) {});
    CHECK(screen.widest < static_cast<std::size_t>(columns));
    CHECK(contains(screen.lines[0], "4/4"));
    CHECK(contains(screen.lines[0], "val_acc") == (columns == 200));
  }
}

TEST_CASE("colours and drawn bars where the terminal has them") {
  auto options = on_terminal();
  options.color = options.unicode = true;
  const std::string text = shown(options);
  CHECK(contains(text, "\x1b[1mepoch 2/2\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m"));
  CHECK(!contains(shown(on_terminal()), "\x1b[1m"));
}

TEST_CASE("elsewhere there are plain lines: one an epoch, one an evaluation, more by the clock") {
  const std::string text = shown({.terminal = false, .plain_interval = 1e9});
  CHECK(std::count(text.begin(), text.end(), '\n') == 5);
  CHECK(text.find_first_of("\r\x1b") == std::string::npos);
  for (const char* part : {"epoch 2/2 4/4  ", "val_acc", "validation 2/2", "test 2/2", "predict 2/2"})
    CHECK_MESSAGE(contains(text, part), part);
  const std::string more = shown({.terminal = false, .plain_interval = 0.0});
  CHECK(std::count(more.begin(), more.end(), '\n') == 2 * 4 + 3 * 2);
}

TEST_CASE("the summary names modules and counts parameters") {
  ToyModule model;
  const std::string text = summary(model);
  CHECK(contains(text, "fc1"));
  CHECK(contains(text, "Linear"));
  CHECK(contains(text, "123 parameters, 123 of them trainable"));  // 6*12 + 12 + 12*3 + 3
  model.fc1.requires_grad_(false);
  CHECK(contains(summary(model), "123 parameters, 39 of them trainable"));
}

TEST_CASE("metrics.csv: a row each n steps, a row an epoch, a column a name") {
  const TempDir f;
  manual_seed(1);
  ToyModule model;
  data::DataLoader train(toy_points(16), {.batch_size = 4}), val(toy_points(8), {.batch_size = 4});
  auto config = quiet({.max_epochs = 2, .default_root_dir = f.path, .log_every_n_steps = 2});
  config.logger = true;
  Trainer(config).fit(model, train, val);
  const std::string text = io::read_text(f.path / "metrics.csv");
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += c;
  }
  REQUIRE(lines.size() == 10);  // header, 2 * (2 steps, validation, epoch), end
  CHECK(lines[0] == "epoch,step,train_loss_step,val_loss,val_acc,train_loss_epoch");
  CHECK(lines[1].starts_with("0,2,"));
  CHECK(lines[2].starts_with("0,4,"));
  CHECK(lines[3].starts_with("0,4,,"));
  CHECK(lines[4].starts_with("0,4,,,,"));
  CHECK(lines[5].starts_with("1,6,"));
  CHECK(std::stod(lines[1].substr(4)) == model.losses[1]);
}

TEST_CASE("a resumed log drops what came after the checkpoint and keeps what came before") {
  const TempDir f;
  const auto file = f.path / "m.csv";
  CSVLogger first(file);
  for (std::int64_t step = 1; step <= 4; ++step)
    first.log_metrics({.epoch = 0, .step = step, .values = {{"a,b", 0.1 * static_cast<double>(step)}}});
  first.save();
  CSVLogger second(file);
  second.resume(2);
  second.log_metrics({.epoch = 1, .step = 3, .values = {{"new", 5.0}}});
  second.save();
  CHECK(io::read_text(file) == "epoch,step,\"a,b\",new\n0,1,0.1,\n0,2,0.2,\n1,3,,5\n");
}

TEST_CASE("the share of waiting for data and the memory are shown where they are asked for") {
  const std::string plain = shown({.terminal = false});
  CHECK_FALSE(contains(plain, "  wait "));
  CHECK_FALSE(contains(plain, " MB"));
  const std::string text = shown({.terminal = false, .data_wait = true, .memory = true});
  std::istringstream in(text);
  int epochs = 0;
  for (std::string line; std::getline(in, line);) {
    CHECK_MESSAGE(contains(line, " MB"), line);
    const bool training = line.starts_with("epoch");
    CHECK_MESSAGE(contains(line, "  wait ") == training, line);
    CHECK_MESSAGE(contains(line, " batches/s"), line);
    epochs += training ? 1 : 0;
  }
  CHECK(epochs == 2);
}
