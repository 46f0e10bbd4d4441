// --logger and TrainerConfig::logger: names, files, and refusals.
#include "trainer/toy.h"

#include <iostream>
#include <set>
#include <sstream>

using namespace levin;
using namespace levin::test;

namespace {

using Names = std::vector<std::string>;

/// The configuration that a command line gives.
TrainerConfig with_flags(std::vector<const char*> arguments, TrainerConfig config = {}) {
  arguments.insert(arguments.begin(), "program");
  return parse_flags(static_cast<int>(arguments.size()), arguments.data(), std::move(config));
}

/// Returns the names of the files that a fit and a test after it leave in a folder; "tensorboard/version_0" stands for
/// an event file in it.
std::set<std::string> files_of(const LoggerChoice& logger, std::int64_t fast_dev_run = 0) {
  const TempDir folder;
  ToyModule model;
  data::DataLoader train(toy_points(8), {.batch_size = 4});
  auto config = quiet({.max_epochs = 1, .fast_dev_run = fast_dev_run, .default_root_dir = folder.path / "toy"});
  config.logger = logger;
  Trainer(config).fit(model, train);
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path)) {
    if (!entry.is_regular_file()) continue;
    CHECK_MESSAGE(entry.file_size() > 0, entry.path().string());
    const auto file = std::filesystem::relative(entry.path(), folder.path / "toy");
    files.insert((file.string().find("tfevents") == std::string::npos ? file : file.parent_path()).string());
  }
  return files;
}

}  // namespace

TEST_CASE("logger/parse: names in their order, the words for true and false, none") {
  struct Row {
    const char* text;
    Names names;
  };
  const std::vector<Row> rows = {{"csv", {"csv"}},
                                 {"tensorboard", {"tensorboard"}},
                                 {"jsonl", {"jsonl"}},
                                 {"html", {"html"}},
                                 {"html,csv", {"html", "csv"}},
                                 {"csv, tensorboard ,jsonl,html", {"csv", "tensorboard", "jsonl", "html"}},
                                 {"csv,csv", {"csv"}},
                                 {"[html, jsonl]", {"html", "jsonl"}},
                                 {"[\"csv\", 'html']", {"csv", "html"}},
                                 {"none", {}},
                                 {"true", {"csv"}},
                                 {"yes", {"csv"}},
                                 {"on", {"csv"}},
                                 {"1", {"csv"}},
                                 {"false", {}},
                                 {"no", {}},
                                 {"off", {}},
                                 {"0", {}}};
  for (const auto& row : rows) {
    INFO(row.text);
    CHECK(LoggerChoice::parse(row.text).names() == row.names);
    CHECK(with_flags({"--logger", row.text}).logger.names() == row.names);
    CHECK(LoggerChoice::parse(LoggerChoice::parse(row.text).text()).names() == row.names);
  }
  CHECK(with_flags({}).logger.names() == Names{"csv"});
  CHECK(with_flags({"--logger"}, {.logger = false}).logger.names() == Names{"csv"});
  CHECK(with_flags({"--logger", "--max-epochs", "2"}, {.logger = "html"}).logger.names() == Names{"csv"});
  CHECK(with_flags({}, {.logger = "html"}).logger.names() == Names{"html"});
}

TEST_CASE("logger/refused: one sentence with the option, its value and the known names") {
  const std::string known = "Give csv, tensorboard, jsonl or html, several separated by commas, or none.";
  const auto said = [](const char* text) {
    return message_of<UsageError>([&] { with_flags({"--logger", text}); });
  };
  CHECK(said("cvs") == "--logger cvs: there is no logger \"cvs\". " + known);
  CHECK(said("csv,wandb") == "--logger csv,wandb: there is no logger \"wandb\". " + known);
  CHECK(said("csv,none") == "--logger csv,none: there is no logger \"none\". " + known);
  CHECK(said("csv,") == "--logger csv,: there is no logger \"\". " + known);
  CHECK(said("HTML") == "--logger HTML: there is no logger \"HTML\". " + known);
  CHECK(said("[]") == "--logger []: there is no logger \"\". " + known);
  TrainerConfig config;
  CHECK(message_of<UsageError>([&] { config.logger = "cvs"; }) == "--logger cvs: there is no logger \"cvs\". " + known);
  CHECK(config.logger.text() == "csv");
}

TEST_CASE("logger/cpp: a bool, a text, and a chain of assignments") {
  TrainerConfig config;
  CHECK(config.logger);
  config.enable_progress_bar = config.enable_model_summary = config.logger = false;
  CHECK_FALSE(config.logger);
  CHECK_FALSE(config.enable_progress_bar);
  CHECK(config.logger.text() == "none");
  config.logger = "csv,html";
  CHECK(config.logger.has("html"));
  CHECK_FALSE(config.logger.has("jsonl"));
  config.logger = std::string("jsonl");
  CHECK(config.logger.text() == "jsonl");
  config.logger = true;
  CHECK(config.logger.text() == "csv");
}

TEST_CASE("logger/sources: the environment and a file, and what --print-config prints is read back") {
  const TempDir f;
  const auto file = (f.path / "run.toml").string();
  for (const char* line : {"logger = \"jsonl,html\"\n", "logger = [\"jsonl\", \"html\"]\n", "logger: jsonl,html\n"}) {
    io::write_file(file, std::string(line));
    CHECK_MESSAGE(with_flags({"--config", file.c_str()}).logger.text() == "jsonl,html", line);
  }
  io::write_file(file, std::string("max_epochs = 3\nlogger = html,cvs\n"));
  CHECK(message_of<UsageError>([&] { with_flags({"--config", file.c_str()}); })
            .starts_with(file + ":2: logger html,cvs: there is no logger \"cvs\". "));
  std::ostringstream printed;
  std::streambuf* const former = std::cout.rdbuf(printed.rdbuf());
  try {
    with_flags({"--print-config", "--logger", "tensorboard,html"});
  } catch (const HelpShown&) {
  }
  std::cout.rdbuf(former);
  CHECK(contains(printed.str(), "\nlogger = \"tensorboard,html\"\n"));
  io::write_file(file, printed.str());
  CHECK(with_flags({"--config", file.c_str()}).logger.text() == "tensorboard,html");
}

TEST_CASE("logger/files: each name writes its file into the run's folder, several write theirs, none writes nothing") {
  using Files = std::set<std::string>;
  CHECK(files_of("csv") == Files{"metrics.csv"});
  CHECK(files_of(true) == Files{"metrics.csv"});
  CHECK(files_of("tensorboard") == Files{"tensorboard/version_0"});
  CHECK(files_of("jsonl") == Files{"metrics.jsonl"});
  CHECK(files_of("html") == Files{"report.html"});
  CHECK(files_of("jsonl,html") == Files{"metrics.jsonl", "report.html"});
  CHECK(files_of("csv,tensorboard,jsonl,html") ==
        Files{"metrics.csv", "metrics.jsonl", "report.html", "tensorboard/version_0"});
  CHECK(files_of("none").empty());
  CHECK(files_of(false).empty());
  CHECK(files_of("csv,tensorboard,jsonl,html", 1).empty());
}

TEST_CASE("logger/title: the report is titled by its folder's name, and stands beside loggers that are objects") {
  const TempDir f;
  ToyModule model;
  data::DataLoader train(toy_points(8), {.batch_size = 4});
  auto config = quiet({.max_epochs = 1, .default_root_dir = f.path / "first run" / "."});
  config.logger = "html";
  config.loggers = {std::make_shared<JsonLinesLogger>(f.path / "own.jsonl")};
  Trainer(config).fit(model, train);
  CHECK(contains(io::read_text(f.path / "first run/report.html"), "<title>first run</title>"));
  CHECK(contains(io::read_text(f.path / "own.jsonl"), "\"values\""));
}

TEST_CASE("logger/help: the names stand in the help text with the default") {
  std::ostringstream printed;
  std::streambuf* const former = std::cout.rdbuf(printed.rdbuf());
  CHECK_THROWS_AS(with_flags({"--help"}, {.logger = "csv,html"}), HelpShown);
  std::cout.rdbuf(former);
  const std::string text = printed.str();
  const auto at = text.find("--logger NAMES [\"csv,html\"]");
  REQUIRE(at != std::string::npos);
  std::istringstream words(text.substr(at, 400));
  std::string sentence;
  for (std::string word; words >> word;) sentence += word + " ";
  CHECK(contains(sentence, "Logs to write: csv, tensorboard, jsonl, html, several separated by commas, or none; "));
}
