// What people see and what stays on disk: progress, summary, CSV.
#include <levin/core/io.h>
#include <levin/trainer/model_summary.h>
#include <levin/trainer/progress_bar.h>

#include <algorithm>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

std::string shown(bool terminal, double plain_interval) {
  const TempDir f;
  const auto file = f.path / "out";
  std::FILE* out = std::fopen(file.c_str(), "w");
  manual_seed(1);
  ToyModule model;
  data::DataLoader train(toy_points(16), {.batch_size = 4}), val(toy_points(8), {.batch_size = 4});
  auto config = quiet({.max_epochs = 2});
  config.callbacks = {
      ProgressBar({.out = out, .terminal = terminal, .max_rate = 1e9, .plain_interval = plain_interval})};
  Trainer(config).fit(model, train, val);
  std::fclose(out);
  return io::read_text(file);
}

}  // namespace

TEST_CASE("on a terminal one line is overwritten, with rate, time left, loss and accuracy") {
  const std::string text = shown(true, 1e9);
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);  // one an epoch
  CHECK(std::count(text.begin(), text.end(), '\r') >= 8);
  for (const char* part :
       {"epoch 1/2 [", "2/4", "batches/s", "left 0:00", "train_loss", "val_acc", "took", "validation", "sanity check"})
    CHECK_MESSAGE(contains(text, part), part);
}

TEST_CASE("elsewhere there are plain lines") {
  const std::string text = shown(false, 1e9);
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
  CHECK(std::count(text.begin(), text.end(), '\r') == 0);
  CHECK(contains(text, "epoch 2/2 4/4"));
  CHECK(contains(text, "val_acc"));
  const std::string more = shown(false, 0.0);
  CHECK(std::count(more.begin(), more.end(), '\n') > 6);
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
    if (c == '\n') lines.emplace_back();
    else lines.back() += c;
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
    first.log({.epoch = 0, .step = step, .values = {{"a,b", 0.1 * static_cast<double>(step)}}});
  first.flush();
  CSVLogger second(file);
  second.resume(2);
  second.log({.epoch = 1, .step = 3, .values = {{"new", 5.0}}});
  second.flush();
  CHECK(io::read_text(file) == "epoch,step,\"a,b\",new\n0,1,0.1,\n0,2,0.2,\n1,3,,5\n");
}
