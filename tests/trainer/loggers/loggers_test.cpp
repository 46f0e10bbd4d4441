// Log files: JSON lines, events, the report, images. Other programs read them in tests/scripts/programs/logs_test.sh.
#include <levin/core/io.h>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>
#include <cstring>
#include <set>
#include <thread>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;
using nlohmann::json;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t at = 0;
  for (std::size_t end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(text.substr(at, end - at));
  return lines;
}

/// The data inside a report.
json report_data(const std::filesystem::path& file) {
  const std::string page = io::read_text(file), open = "id=\"levin-data\">";
  const auto start = page.find(open) + open.size();
  return json::parse(page.substr(start, page.find("</script>", start) - start));
}

}  // namespace

TEST_CASE("JSON lines are appended at each save; a resumed run drops lines after its checkpoint") {
  const TempDir f;
  const auto file = f.path / "logs/m.jsonl";
  JsonLinesLogger log(file);
  log.log_hyperparams({{"lr", 0.1}, {"name", std::string("a\"b")}, {"batch", std::int64_t{8}}, {"on", true}});
  log.log_metrics({0, 1, {{"loss", 0.25}, {"bad", std::nan("")}}});
  log.save();
  log.log_metrics({0, 2, {{"loss", 1.0 / 3}}});
  log.log_text("note", "two\nlines \xff", 2);
  log.log_confusion_matrix("cm", tensor<std::int64_t>({1, 2, 3, 4}).reshape({2, 2}), {"a", "b"}, 2);
  log.save();
  const auto lines = lines_of(io::read_text(file));
  REQUIRE(lines.size() == 5);
  CHECK(lines[0] == R"({"hyperparameters":{"lr":0.1,"name":"a\"b","batch":8,"on":true}})");
  CHECK(lines[1] == R"({"epoch":0,"step":1,"values":{"loss":0.25,"bad":"NaN"}})");
  CHECK(json::parse(lines[2])["values"]["loss"].get<double>() == 1.0 / 3);
  CHECK(json::parse(lines[4])["confusion_matrix"] == json::parse("[[1,2],[3,4]]"));

  io::write_file(file, io::read_text(file) + "{\"epoch\":0,\"st");  // as a crash leaves it
  JsonLinesLogger next(file);
  next.resume(1);
  next.log_metrics({0, 2, {{"loss", 9.0}}});
  next.save();
  const auto again = lines_of(io::read_text(file));
  REQUIRE(again.size() == 3);
  CHECK(again[1] == lines[1]);
  CHECK(again[2] == R"({"epoch":0,"step":2,"values":{"loss":9.0}})");
}

TEST_CASE("a full disk leaves complete lines, and the next save writes the missing ones") {
  const TempDir f;
  JsonLinesLogger log(f.path / "m.jsonl");
  log.log_metrics({0, 1, {{"loss", 1.0}}});
  io::fail_writes_after(0);
  CHECK_THROWS_AS(log.save(), IoError);
  io::fail_writes_after(-1);
  log.log_metrics({0, 2, {{"loss", 2.0}}});
  log.save();
  CHECK(lines_of(io::read_text(f.path / "m.jsonl")).size() == 2);
}

TEST_CASE("event files are framed by length and checksum") {
  const TempDir f;
  TensorBoardLogger log({.folder = {.save_dir = f.path, .name = "tb"}});
  CHECK(log.version() == "version_0");
  log.log_metrics({1, 5, {{"loss", 0.5}}});
  log.save();
  CHECK(TensorBoardLogger({.folder = {.save_dir = f.path, .name = "tb"}}).version() == "version_1");
  std::filesystem::path file;
  for (const auto& entry : std::filesystem::directory_iterator(log.log_dir())) file = entry.path();
  CHECK(contains(file.filename().string(), "events.out.tfevents."));
  const std::string data = io::read_text(file);
  std::vector<std::string> records;
  for (std::size_t at = 0; at < data.size();) {
    std::uint64_t size = 0;
    std::memcpy(&size, &data[at], 8);
    records.push_back(data.substr(at + 12, size));
    at += 16 + size;
    REQUIRE(at <= data.size());
  }
  REQUIRE(records.size() == 3);
  CHECK(records[0].substr(9) == std::string("\x1a\x0d", 2) + "brain.Event:2");
  // Event{wall_time, step 5, summary{value{tag "loss", simple_value 0.5}}}
  CHECK(records[1].substr(9) == std::string("\x10\x05\x2a\x0d\x0a\x0b\x0a\x04loss\x15\x00\x00\x00\x3f", 17));
  // the record of 24 bytes: length, its masked CRC-32C
  CHECK(data.substr(0, 8) == std::string("\x18\0\0\0\0\0\0\0", 8));
  CHECK(data.substr(8, 4) == "\xa3\x7f\x4b\x22");
}

TEST_CASE("the graph of a network lists its operations after their inputs, with parameters by name") {
  ToyModule model({.dropout = 0});
  const auto graph = trace_graph(model, model(zeros({4, 6})));
  std::vector<std::string> names;
  for (const auto& n : graph.nodes) {
    for (const auto& input : n.inputs)
      CHECK_MESSAGE(std::find(names.begin(), names.end(), input) != names.end(), n.name << " before " << input);
    names.push_back(n.name);
  }
  for (const char* name : {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "relu_1"})
    CHECK_MESSAGE(std::find(names.begin(), names.end(), name) != names.end(), name);
  CHECK(graph.nodes.back().shape == Shape{4, 3});
  CHECK(contains(message_of<ValueError>([&] { trace_graph(model, zeros({2})); }), "has no recorded graph"));
}

TEST_CASE("the report keeps every value, escapes its input, and shows how the run ended") {
  const TempDir f;
  const auto file = f.path / "sub/report.html";
  HtmlReport report({.file = file, .title = "a </script><b>"});
  report.log_hyperparams({{"text", std::string("</script><!--")}, {"lr", 0.5}});
  report.log_hyperparams({{"lr", 0.25}});
  report.log_model(ToyModule());
  for (const int step : {1, 2, 3}) report.log_metrics({0, step, {{"loss", 1.0 / step}}});
  report.log_metrics({1, 4, {{"loss", std::nan("")}}});
  report.log_image("grid", rand({2, 1, 4, 4}), 4);
  report.log_confusion_matrix("cm", eye(2), {}, 4);
  report.log_curve({.name = "search", .x_label = "lr", .y_label = "loss", .x = {0.1, 1}, .y = {2, 1}, .mark = 0.5});
  report.save();
  CHECK(report_data(file)["status"] == "running");
  report.finalize(RunStatus::interrupted);
  const std::string page = io::read_text(file);
  CHECK(contains(page, "<title>a &lt;/script>&lt;b></title>"));
  CHECK(!contains(page, "https:"));
  CHECK(page.find("http:") == page.rfind("http:"));  // the XML namespace of SVG, which is never fetched
  CHECK(contains(page, "NS = \"http://www.w3.org/2000/svg\""));
  const json data = report_data(file);
  CHECK(data["status"] == "interrupted");
  CHECK(data["title"] == "a </script><b>");
  CHECK(data["hyperparameters"] == json::parse(R"([["text", "</script><!--"], ["lr", "0.25"]])"));
  CHECK(data["series"][0]["name"] == "loss");
  CHECK(data["series"][0]["x"] == json({1, 2, 3, 4}));
  CHECK(data["series"][0]["e"] == json({0, 0, 0, 1}));
  CHECK(data["series"][0]["y"][2].get<double>() == 1.0 / 3);
  CHECK(data["series"][0]["y"][3] == "NaN");
  CHECK(data["series"][1]["name"] == "steps_per_second");
  CHECK(data["model"]["parameters"] == 123);
  CHECK(data["images"][0]["width"] == 14);
  CHECK(data["matrices"][0]["rows"] == json::parse("[[1.0,0.0],[0.0,1.0]]"));
  CHECK(data["curves"][0]["mark"] == 0.5);
}

TEST_CASE("a resumed run continues its report and drops everything after the checkpoint") {
  const TempDir f;
  const auto file = f.path / "report.html";
  HtmlReport first({.file = file});
  for (std::int64_t step = 1; step <= 6; ++step) {
    first.log_metrics({step / 4, step, {{"loss", static_cast<double>(step)}}});
    first.log_image("grid", zeros({1, 4, 4}), step);
  }
  first.finalize(RunStatus::failed);
  HtmlReport second({.file = file});
  second.resume(4);
  second.log_metrics({1, 5, {{"loss", 50.0}}});
  second.save();
  const json data = report_data(file);
  CHECK(data["series"][0]["x"] == json({1, 2, 3, 4, 5}));
  CHECK(data["series"][0]["y"] == json({1.0, 2.0, 3.0, 4.0, 50.0}));
  CHECK(data["images"].size() == 4);
  CHECK(data["status"] == "running");
  const auto times = data["series"][0]["t"].get<std::vector<double>>();
  CHECK(std::is_sorted(times.begin(), times.end()));
  io::write_file(file, "something else");
  HtmlReport third({.file = file});
  third.resume(4);
  third.save();
  CHECK(report_data(file)["series"].empty());
}

TEST_CASE("a long curve is thinned but keeps its spikes; of many images some are kept, including the newest") {
  const TempDir f;
  HtmlReport report(
      {.file = f.path / "r.html", .interval = 1e9, .max_points = 200, .max_images = 5, .throughput = false});
  for (int step = 0; step < 5000; ++step)
    report.log_metrics({0, step, {{"loss", step == 1234 ? 77.0 : step == 3000 ? -5.0 : 1.0 / (1 + step)}}});
  for (std::int64_t step = 1; step <= 40; ++step) report.log_image("grid", zeros({1, 4, 4}), step);
  report.save();
  const json data = report_data(f.path / "r.html");
  const auto y = data["series"][0]["y"].get<std::vector<double>>();
  CHECK(y.size() <= 200);
  CHECK(y.size() >= 90);
  CHECK(*std::max_element(y.begin(), y.end()) == 77.0);
  CHECK(*std::min_element(y.begin(), y.end()) == -5.0);
  CHECK(data["images"].size() <= 5);
  CHECK(data["images"].back()["step"] == 40);
}

TEST_CASE("the environment section names everything that results depend on") {
  std::map<std::string, std::string> rows;
  for (const auto& [key, value] : environment_rows()) rows[key] = value;
  for (const char* key : {"Levin", "Compiler", "SIMD target", "Threads", "Memory"}) CHECK(!rows[key].empty());
}

TEST_CASE("the weights are bit-equal with and without logging") {
  const TempDir f;
  std::vector<std::vector<std::vector<float>>> weights;
  for (const bool logs : {false, true}) {
    manual_seed(1);
    ToyModule model;
    data::DataLoader train(toy_points(24), {.batch_size = 4, .shuffle = true}), val(toy_points(8), {.batch_size = 4});
    auto config = quiet({.max_epochs = 2, .log_every_n_steps = 1});
    if (logs)
      config.loggers = {std::make_shared<HtmlReport>(HtmlReportOptions{.file = f.path / "r.html", .interval = 0}),
                        std::make_shared<TensorBoardLogger>(TensorBoardOptions{.folder = {.save_dir = f.path}}),
                        std::make_shared<JsonLinesLogger>(f.path / "m.jsonl")};
    Trainer(config).fit(model, train, val);
    weights.push_back(values_of(model));
  }
  CHECK(weights[0] == weights[1]);
  CHECK(report_data(f.path / "r.html")["series"].size() >= 4);
}

TEST_CASE("metrics.csv: names with commas and quotes are read back and continued in a resumed run") {
  const TempDir f;
  const std::string name = "a,\"b\"";
  CSVLogger first(f.path / "metrics.csv");
  first.log_metrics({0, 1, {{name, 0.5}, {"plain", 1.0}}});
  first.save();
  const std::string header = "epoch,step,\"a,\"\"b\"\"\",plain";
  CHECK(lines_of(io::read_text(first.path())) == std::vector<std::string>{header, "0,1,0.5,1"});
  CSVLogger second(f.path / "metrics.csv");
  second.resume(1);
  second.log_metrics({0, 2, {{name, 0.25}}});
  second.save();
  CHECK(lines_of(io::read_text(second.path())) == std::vector<std::string>{header, "0,1,0.5,1", "0,2,0.25,"});
}

TEST_CASE("the report's throughput counts the steps between two records") {
  const TempDir f;
  HtmlReport report({.file = f.path / "r.html", .interval = 1e9});
  report.log_metrics({0, 0, {{"loss", 1.0}}});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  report.log_metrics({0, 1000, {{"loss", 1.0}}});
  report.save();
  const json data = report_data(f.path / "r.html");
  const auto times = data["series"][0]["t"].get<std::vector<double>>();
  const double steps = data["series"][1]["y"][0].get<double>() * (times[1] - times[0]);
  CHECK(steps > 900);  // times are rounded to milliseconds
  CHECK(steps < 1100);
}

TEST_CASE("the report's images are complete PNG files; matrices have their own limit") {
  const TempDir f;
  HtmlReport report({.file = f.path / "r.html", .interval = 1e9, .max_images = 3, .max_matrices = 5});
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto decoded = [&](const std::string& text) {
    std::string out;
    REQUIRE(text.size() % 4 == 0);
    for (std::size_t i = 0; i < text.size(); i += 4) {
      std::uint32_t v = 0;
      int given = 0;
      for (std::size_t k = 0; k < 4; ++k) {
        const auto digit = digits.find(text[i + k]);
        given += digit != std::string::npos;
        v = v << 6 | static_cast<std::uint32_t>(digit == std::string::npos ? 0 : digit);
      }
      for (int k = 0; k + 1 < given; ++k) out += static_cast<char>(v >> (16 - 8 * k));
    }
    return out;
  };
  manual_seed(3);
  std::vector<std::string> images;
  std::set<std::size_t> rests;  // of three, which base64 pads
  for (int i = 0; rests.size() < 3 && i < 100; ++i) {
    const Tensor image = rand({1, 4 + i, 5});
    const std::string png = data::encode_png(data::to_uint8(data::make_grid(image, data::GridOptions{})));
    if (!rests.insert(png.size() % 3).second) continue;
    report.log_image("image", image, i);
    images.push_back(png);
  }
  REQUIRE(images.size() == 3);
  for (std::int64_t step = 0; step < 5; ++step) report.log_confusion_matrix("cm", eye(2), {}, step);
  report.save();
  const json data = report_data(f.path / "r.html");
  REQUIRE(data["images"].size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(decoded(data["images"][i]["png"].get<std::string>()) == images[i]);
  CHECK(data["matrices"].size() == 5);
}

TEST_CASE("the report counts trainable parameters separately") {
  const TempDir f;
  ToyModule model;  // 6 x 12 + 12 and 12 x 3 + 3
  model.fc1.requires_grad_(false);
  HtmlReport report({.file = f.path / "r.html"});
  report.log_model(model);
  report.save();
  const json data = report_data(f.path / "r.html");
  CHECK(data["model"]["parameters"] == 123);
  CHECK(data["model"]["trainable"] == 39);
}
