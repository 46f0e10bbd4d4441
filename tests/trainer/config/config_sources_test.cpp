// The sources of option values: flags, the environment, files; every field of TrainerConfig has them.
#include "support/paths.h"
#include "support/text/pattern.h"
#include "trainer/toy.h"

#include <levin/kernels/cuda.h>

#include <cstdlib>
#include <iostream>
#include <set>
#include <sstream>
#include <string_view>

using namespace levin;
using namespace levin::test;

namespace {

/// A variable of the environment for the time of a test.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() { unsetenv(name_.c_str()); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  std::string name_;
};

TrainerConfig flags(std::vector<std::string> arguments, TrainerConfig config = {}) {
  std::vector<const char*> argv = {"program"};
  for (const auto& a : arguments) argv.push_back(a.c_str());
  return parse_flags(static_cast<int>(argv.size()), argv.data(), std::move(config));
}

std::string refusal(std::vector<std::string> arguments) {
  return message_of<UsageError>([&] { flags(std::move(arguments)); });
}

/// Returns the standard output of a call.
template <class F>
std::string printed(const F& f) {
  std::ostringstream text;
  std::streambuf* const former = std::cout.rdbuf(text.rdbuf());
  try {
    f();
  } catch (const HelpShown&) {
  }
  std::cout.rdbuf(former);
  return text.str();
}

std::string source(const std::string& file) { return io::read_text(source_dir() / file); }

/// The names of TrainerConfig's fields, without those that hold the options of one strategy.
std::vector<std::string> declared_fields() {
  const std::string text = source("trainer/include/levin/trainer/config/config.h");
  const auto begin = text.find("struct TrainerConfig {");
  std::istringstream in(text.substr(begin, text.find("\n};", begin) - begin));
  static const Pattern field(R"(^  (?!\w+Config)[\w:<>]+ (\w+)(?: = |\{).*)");
  std::vector<std::string> names;
  for (std::string line; std::getline(in, line);)
    if (const auto m = field.match(line)) names.push_back(m->at(1));
  return names;
}

std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

}  // namespace

TEST_CASE("trainer/every_field_is_a_flag") {
  const std::string help = printed([] { flags({"--help"}); });
  std::istringstream words(help);
  std::set<std::string> options;
  for (std::string word; words >> word;) options.insert(word);
  const auto fields = declared_fields();
  CHECK(fields.size() >= 35);
  for (const auto& name : fields) {
    const bool only_code_gives_it = name == "callbacks" || name == "loggers";
    CHECK_MESSAGE(options.contains("--" + dashed(name)) != only_code_gives_it, name);
  }
  CHECK(contains(help, "A flag takes precedence over the environment (LEVIN_TRAINER_MAX_EPOCHS=5"));
  CHECK(contains(help, "the environment over the file of --config"));
}

TEST_CASE("an option of a strategy is one row, which makes its field and its flag") {
  const std::string help = printed([] { flags({"--help"}); });
  const std::string folder = "trainer/include/levin/trainer/config/", rows = source(folder + "strategy_option_rows.h");
  const std::string others = source(folder + "strategy_config.h") + source("trainer/src/config/config_fields.cpp");
  const Pattern row(R"re(LEVIN_[A-Z]+_OPTION\([\w:<>]+, (\w+), [^,]+,\s+"(\w+)")re");
  std::size_t options = 0;
  for (const auto& m : row.find_all(rows)) {
    ++options;
    const std::string &field = m[1], &flag = m[2];
    CHECK_MESSAGE(contains(help, "--" + dashed(flag) + " "), flag);
    CHECK_MESSAGE(!contains(others, flag), flag);
    CHECK_MESSAGE(!contains(others, "::" + field), field);
  }
  CHECK(options == 17);
}

TEST_CASE("a flag wins over the environment, that over the file, that over the program's default") {
  const TempDir f;
  const auto file = (f.path / "run.toml").string();
  io::write_file(file, std::string("max_epochs = 3\nmin_epochs = 2\nmax-steps = 40\n"));
  const Variable epochs("LEVIN_TRAINER_MAX_EPOCHS", "4"), least("LEVIN_TRAINER_MIN_EPOCHS", "1");
  const auto c = flags({"--config", file, "--max-epochs", "5"}, {.max_epochs = 9, .min_steps = 7, .seed = 6});
  CHECK(c.max_epochs == 5);
  CHECK(c.min_epochs == 1);
  CHECK(c.max_steps == 40);
  CHECK(c.min_steps == 7);
  CHECK(c.seed == 6);
}

TEST_CASE("TOML, INI and YAML files are equivalent") {
  const TempDir f;
  const auto read = [&](const std::string& name, const std::string& text) {
    io::write_file(f.path / name, text);
    return flags({"--config", (f.path / name).string()});
  };
  for (const auto& c :
       {read("run.toml",
             "# a comment\nmax_epochs = 3  # behind\n\n[trainer]\nprecision = \"16-mixed\"\nlogger = false\n"
             "devices = [1]\ndefault_root_dir = \"a # b \\\"c\\\"\"\nfast_dev_run = true\n"),
        read("run.ini",
             "; a comment\nmax_epochs=3\n[trainer]\nprecision=16-mixed\nlogger=off\ndevices=[1]\n"
             "default_root_dir='a # b \"c\"'\nfast_dev_run=1\n"),
        read("run.yaml",
             "---\ntrainer:\n  precision: 16-mixed\n  logger: no\n  devices: [1]\n"
             "  default_root_dir: 'a # b \"c\"'\n  fast_dev_run: true\nmax_epochs: 3\n")}) {
    CHECK(c.max_epochs == 3);
    CHECK(c.precision == "16-mixed");
    CHECK_FALSE(c.logger);
    CHECK(c.devices.indices(2, "cuda") == std::vector<int>{1});
    CHECK(c.default_root_dir == "a # b \"c\"");
    CHECK(c.fast_dev_run == 1);
  }
}

TEST_CASE("errors in a file or the environment are reported with their place") {
  const TempDir f;
  const auto file = (f.path / "run.toml").string();
  const auto said = [&](const std::string& text) {
    io::write_file(file, text);
    return refusal({"--config", file});
  };
  CHECK(contains(said("\nmax_epochs = many\n"), "run.toml:2: max_epochs many: give a whole number."));
  CHECK(contains(said("max_epoch = 3\n"), "run.toml:1: max_epoch: this option is unknown. Did you mean max_epochs?"));
  CHECK(
      contains(said("gpus = 2\n"), "run.toml:1: gpus 2: This is an old spelling. Use --accelerator cuda --devices 2."));
  CHECK(contains(said("max_epochs 3\n"), "run.toml:1: max_epochs 3: write one \"name = value\""));
  CHECK(contains(said("[model]\nwidth = 3\n"), "run.toml:2: section model: the one section is trainer"));
  CHECK(contains(said("precision = \"16\n"), "close the quotes"));
  CHECK(contains(message_of<IoError>([] { flags({"--config", "absent.toml"}); }), "absent.toml"));
  {
    const Variable v("LEVIN_TRAINER_MAX_EPOCH", "3");
    CHECK(contains(refusal({}),
                   "LEVIN_TRAINER_MAX_EPOCH: this option is unknown. Did you mean LEVIN_TRAINER_MAX_EPOCHS?"));
  }
  const Variable v("LEVIN_TRAINER_MAX_EPOCHS", "many");
  CHECK(contains(refusal({}), "LEVIN_TRAINER_MAX_EPOCHS many: give a whole number."));
}

TEST_CASE("--print-config prints a file that --config reads back, field by field") {
  const TempDir f;
  TrainerConfig c{.max_epochs = 7,
                  .min_steps = 3,
                  .fast_dev_run = 2,
                  .limit_train_batches = 0.25,
                  .limit_val_batches = 12,
                  .limit_test_batches = 1.0,
                  .inference_mode = false,
                  .gradient_clip_val = 0.1,
                  .gradient_clip_algorithm = "value",
                  .precision = "64-true",
                  .devices = {0, 3},
                  .default_root_dir = "with \"quotes\" # and \\",
                  .resume = "last"};
  const auto print = [&](const std::vector<std::string>& a, const TrainerConfig& d) {
    return printed([&] { flags(a, d); });
  };
  const std::string text = print({"--print-config"}, c);
  CHECK(contains(text, "\n[trainer]\n"));
  CHECK(contains(text, "\nmax_epochs = 7\n"));
  CHECK(contains(text, "\nlimit_test_batches = 1.0\n"));
  CHECK(contains(text, "\n# seed =\n"));
  for (const auto& name : declared_fields())
    if (name != "callbacks" && name != "loggers") CHECK_MESSAGE(contains(text, name + " ="), name);
  io::write_file(f.path / "run.toml", text);
  const auto file = (f.path / "run.toml").string();
  CHECK(print({"--config", file, "--print-config"}, {}) == text);
  CHECK(flags({"--config", file}).default_root_dir == c.default_root_dir);
  CHECK(contains(print({"--config", file, "--print-config", "--max-epochs", "8"}, {}), "\nmax_epochs = 8\n"));
}

TEST_CASE("trainer/legacy_flag_hint") {
  struct Row {
    std::vector<std::string> arguments;
    const char* said;
  };
  const std::vector<Row> rows = {
      {{"--gpus", "2"}, "--gpus 2: This is an old spelling. Use --accelerator cuda --devices 2."},
      {{"--gpus=0,1"}, "--gpus 0,1: This is an old spelling. Use --accelerator cuda --devices 0,1."},
      {{"--tpu_cores", "8"},
       "--tpu_cores 8: This is an old spelling. There are no TPU kernels here. Use --accelerator cpu"},
      {{"--distributed_backend", "ddp"}, "Use --strategy ddp."},
      {{"--nb-gpu-nodes", "128"}, "Use --num-nodes 128."},
      {{"--amp_level", "O2"}, "--amp_level O2: This is an old spelling. Use --precision 16-o2."},
      {{"--amp-level", "O1"}, "Use --precision 16-mixed."},
      {{"--amp_level", "O0"}, "Use --precision 32-true."},
      {{"--amp_level", "O3"}, "Use --precision 16-true."},
      {{"--use_amp"}, "--use_amp: This is an old spelling. Use --precision 16-mixed."},
      {{"--resume_from_checkpoint", "a/b"}, "Use --resume a/b."},
  };
  for (const auto& row : rows) CHECK_MESSAGE(contains(refusal(row.arguments), row.said), refusal(row.arguments));
  const auto chosen = [](const char* name) {
    return message_of<UsageError>([&] { Trainer(TrainerConfig{.accelerator = name}); });
  };
  CHECK(chosen("ddp") == "--accelerator ddp: this is a strategy. Use --strategy ddp.");
  CHECK(chosen("dp") == "--accelerator dp: this is a strategy. Use --strategy dp.");
  CHECK(contains(chosen("ddp_cpu"), "Use --accelerator cpu --strategy ddp."));
}

TEST_CASE("every spelling that an old name points to is a flag of today, or a callback") {
  const std::string help = printed([] { flags({"--help"}); });
  static const Pattern old_name(R"re(\{"(\w+)", "([^"]+)"\})re"), flag(R"(--[a-z-]+)");
  const std::string text = source("trainer/src/config/legacy_options.cpp");
  int rows = 0;
  for (const auto& m : old_name.find_all(text)) {
    ++rows;
    const std::string said = refusal({"--" + m[1], "4"});
    CHECK_MESSAGE(contains(said, "--" + m[1] + " 4: This is an old spelling. "), said);
    for (const auto& f : flag.find_all(m[2])) CHECK_MESSAGE(contains(help, f[0] + " "), f[0]);
  }
  CHECK(rows >= 30);
}

TEST_CASE("accelerator/tpu_refused") {
  const std::string built = std::string_view(cuda::flavour()) == "OFF" ? "cpu" : "cpu and cuda";
  const auto said = message_of<UsageError>([] { Trainer(TrainerConfig{.accelerator = "tpu"}); });
  CHECK(said == "--accelerator tpu: not built; this build has " + built +
                    ", and another device plugs in through levin/core/device.h and the tables of the operations "
                    "(docs/adding_a_device.md).");
}

TEST_CASE("accelerator/ipu_refused") {
  const auto accelerator = [](const std::string& name) {
    return message_of<UsageError>([&] { Trainer(TrainerConfig{.accelerator = name}); });
  };
  const auto strategy = [](const std::string& name) {
    return message_of<UsageError>([&] { Trainer(TrainerConfig{.strategy = name}); });
  };
  for (const char* name : {"ipu", "hpu", "mps", "xla"}) {
    CHECK_MESSAGE(contains(accelerator(name), std::string("--accelerator ") + name + ": not built; this build has cpu"),
                  accelerator(name));
    CHECK(contains(strategy(name), std::string("--strategy ") + name + ": not built; this build has cpu"));
  }
  for (const char* name : {"tpu", "tpu_spawn", "single_tpu", "single_xla", "xla_debug", "xla_fsdp", "hpu_parallel"})
    CHECK_MESSAGE(contains(strategy(name), "another device plugs in through levin/core/device.h"), strategy(name));
  CHECK(contains(accelerator("hivemind"), "--accelerator hivemind: not built; machines of one cluster"));
  CHECK(contains(strategy("hivemind"),
                 "--strategy hivemind: not built; machines of one cluster train together with "
                 "--strategy ddp"));
  CHECK_FALSE(contains(strategy("tpus"), "not built"));
}

TEST_CASE("strategy/deepspeed_points_to_zero") {
  const std::pair<const char*, const char*> rows[] = {
      {"deepspeed", "Use --strategy zero_1, zero_2 or zero_3, which is fsdp."},
      {"deepspeed_stage_1", "Use --strategy zero_1."},
      {"deepspeed_stage_2", "Use --strategy zero_2."},
      {"deepspeed_stage_2_offload", "Use --strategy zero_2."},
      {"deepspeed_stage_3", "Use --strategy zero_3, which is fsdp."},
      {"deepspeed_stage_3_offload_nvme", "Use --strategy zero_3, which is fsdp."}};
  for (const auto& [name, instead] : rows) {
    const auto said = message_of<UsageError>([&] { Trainer(TrainerConfig{.strategy = name}); });
    CHECK_MESSAGE(said == std::string("--strategy ") + name + ": DeepSpeed is a separate library. " + instead, said);
  }
}

TEST_CASE("trainer/devices_parse") {
  struct Row {
    DeviceList devices;
    int available;
    std::vector<int> indices;  // empty: refused
    const char* said = "";
  };
  const std::vector<Row> rows = {
      {"auto", 1, {0}},
      {"auto", 4, {0}},
      {-1, 1, {0}},
      {-1, 3, {0, 1, 2}},
      {"-1", 3, {0, 1, 2}},
      {1, 4, {0}},
      {"1", 4, {0}},
      {2, 2, {0, 1}},
      {"2", 4, {0, 1}},
      {4, 4, {0, 1, 2, 3}},
      {"0,3", 4, {0, 3}},
      {"3,0", 4, {3, 0}},
      {"3,", 4, {3}},
      {"[1]", 2, {1}},
      {"[0, 3]", 4, {0, 3}},
      {"[ 2 ,1 ]", 4, {2, 1}},
      {{0, 3}, 4, {0, 3}},
      {{2}, 4, {2}},
      {std::string("0, 1"), 2, {0, 1}},
      {99, 2, {}, "--devices 99: this machine has 2 cuda devices (counted from 0). Use at most 2"},
      {"3", 2, {}, "--devices 3: this machine has 2 cuda devices (counted from 0). Use at most 2"},
      {"0,2", 2, {}, "--devices 0,2: this machine has 2 cuda devices (counted from 0). Use indices below 2."},
      {{1}, 1, {}, "--devices [1]: this machine has 1 cuda device (counted from 0). Use indices below 1."},
      {-1, 0, {}, "--devices -1: this machine has 0 cuda devices."},
      {0, 2, {}, "--devices 0: give auto, -1 for all"},
      {-2, 2, {}, "--devices -2: give auto"},
      {"", 2, {}, "--devices : give auto"},
      {"[]", 2, {}, "--devices []: give auto"},
      {"0,0", 2, {}, "--devices 0,0: give auto"},
      {"0,-1", 2, {}, "--devices 0,-1: give auto"},
      {"1.5", 2, {}, "--devices 1.5: give auto"},
      {"two", 2, {}, "--devices two: give auto"},
      {"0;1", 2, {}, "--devices 0;1: give auto"},
      {"[0,1", 2, {}, "--devices [0,1: give auto"},
      {"99999999999", 2, {}, "--devices 99999999999: give auto"},
  };
  CHECK(rows.size() >= 30);
  for (const auto& row : rows) {
    INFO(row.devices.text(), " of ", row.available);
    if (row.indices.empty())
      CHECK(contains(message_of<UsageError>([&] { row.devices.indices(row.available, "cuda"); }), row.said));
    else
      CHECK(row.devices.indices(row.available, "cuda") == row.indices);
  }
  CHECK(contains(refusal({"--devices", "0,0"}), "--devices 0,0: give auto, -1 for all"));
}

TEST_CASE("--resume is the ckpt_path of fit, --checkpoint-every-n-steps a policy of its own") {
  const TempDir f;
  const auto run = [&](std::vector<std::string> arguments) {
    manual_seed(3);
    ToyModule model;
    data::DataLoader train(toy_points(20), {.batch_size = 4});
    auto c = quiet({.default_root_dir = f.path});
    c.enable_checkpointing = true;
    Trainer trainer(flags(std::move(arguments), c));
    trainer.fit(model, train);
    return std::pair(model.losses.size(), values_of(model));
  };
  const auto whole = run({"--max-steps", "9"});
  std::filesystem::remove_all(f.path / "checkpoints");
  CHECK(run({"--max-steps", "7", "--checkpoint-every-n-steps", "3"}).first == 7);
  const auto rest = run({"--max-steps", "9", "--resume", "last", "--checkpoint-every-n-steps", "3"});
  CHECK(rest.first == 3);  // steps 7 to 9: the newest checkpoint is that of step 6
  CHECK(rest.second == whole.second);
}

TEST_CASE("the page on the command line has the table of today's flags") {
  TrainerConfig config;
  CommandLine line("");
  line.add_trainer(config);
  CHECK_MESSAGE(contains(source("docs/command_line.md"), "<!-- flags -->\n" + line.markdown() + "<!-- /flags -->"),
                line.markdown());
}
