#include <levin/trainer/loggers/html_report.h>

#include <levin/core/config.h>
#include <levin/core/io.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>

#include "src/loggers/json_values.h"
#include "src/loggers/report/page.h"

namespace levin {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr const char* kThroughput = "steps_per_second";

std::string date_text() { return fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(std::time(nullptr))); }

std::string base64(std::string_view data) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < data.size(); i += 3) {
    std::uint32_t v = 0;
    for (std::size_t k = 0; k < 3; ++k)
      v = (v << 8) | (i + k < data.size() ? static_cast<unsigned char>(data[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) out += i + k <= data.size() ? kDigits[(v >> (18 - 6 * k)) & 63U] : '=';
  }
  return out;
}

struct Point {
  std::int64_t step = 0, epoch = 0;
  double seconds = 0, value = 0;
};

struct Series {
  std::string name;
  std::vector<Point> points;
};

/// Halves the number of points: keeps the minimum and maximum of every four, so that spikes remain.
void thin(std::vector<Point>& points) {
  std::vector<Point> kept;
  for (std::size_t i = 0; i < points.size(); i += 4) {
    const auto first = points.begin() + static_cast<std::ptrdiff_t>(i);
    const auto last = points.begin() + static_cast<std::ptrdiff_t>(std::min(points.size(), i + 4));
    auto [a, b] = std::minmax_element(first, last, [](const Point& p, const Point& q) { return p.value < q.value; });
    if (a > b) std::swap(a, b);
    kept.push_back(*a);
    if (a != b) kept.push_back(*b);
  }
  points = std::move(kept);
}

/// Keeps at most `most` entries of a name: drops every second one and keeps the newest.
void limit(json& list, const std::string& name, std::size_t most) {
  const auto count = std::count_if(list.begin(), list.end(), [&](const json& i) { return i["name"] == name; });
  if (static_cast<std::size_t>(count) <= most) return;
  json kept = json::array();
  auto left = count;
  for (auto& item : list)
    if (item["name"] != name || --left % 2 == 0) kept.push_back(std::move(item));
  list = std::move(kept);
}

void drop_after(json& list, std::int64_t step) {
  json kept = json::array();
  for (auto& item : list)
    if (item.value("step", std::int64_t{0}) <= step) kept.push_back(std::move(item));
  list = std::move(kept);
}

}  // namespace

struct HtmlReport::Data {
  std::vector<Series> series;
  json images = json::array(), matrices = json::array(), texts = json::array(), curves = json::array();
  json hyperparameters = json::array(), model;
  std::string status = "running", started = date_text();
  std::int64_t step = 0, epoch = -1;
  double seconds_before = 0;  // of the runs before this one was resumed
  Clock::time_point start = Clock::now();
  std::optional<Clock::time_point> written;
  bool unsaved = true;
  // Last record, for the throughput
  std::optional<std::int64_t> last_step;
  double last_seconds = 0;

  double seconds() const { return seconds_before + std::chrono::duration<double>(Clock::now() - start).count(); }
  Series& find(const std::string& name) {
    for (auto& s : series)
      if (s.name == name) return s;
    return series.emplace_back(Series{name, {}});
  }
  json to_json(const HtmlReportOptions& options) const;
  void read(const json& j, std::int64_t last_step_kept);
};

json HtmlReport::Data::to_json(const HtmlReportOptions& options) const {
  json list = json::array();
  for (const auto& s : series) {
    json x = json::array(), e = json::array(), t = json::array(), y = json::array();
    for (const auto& p : s.points) {
      x.push_back(p.step);
      e.push_back(p.epoch);
      t.push_back(std::round(p.seconds * 1000) / 1000);
      y.push_back(json_number(p.value));
    }
    list.push_back({{"name", s.name}, {"x", x}, {"e", e}, {"t", t}, {"y", y}});
  }
  return {{"title", options.title},
          {"status", status},
          {"started", started},
          {"written", date_text()},
          {"levin", LEVIN_VERSION},
          {"step", step},
          {"epoch", epoch < 0 ? json() : json(epoch)},
          {"seconds", seconds()},
          {"series", list},
          {"images", images},
          {"matrices", matrices},
          {"texts", texts},
          {"curves", curves},
          {"hyperparameters", hyperparameters},
          {"model", model},
          {"environment", environment_rows()}};
}

void HtmlReport::Data::read(const json& j, std::int64_t last_step_kept) {
  step = last_step_kept;
  for (const auto& s : j.at("series")) {
    Series& mine = find(s.at("name").get<std::string>());
    for (std::size_t i = 0; i < s.at("x").size(); ++i) {
      const Point p{s.at("x").at(i).get<std::int64_t>(), s.at("e").at(i).get<std::int64_t>(),
                    s.at("t").at(i).get<double>(), number_of(s.at("y").at(i))};
      if (p.step > last_step_kept) break;
      mine.points.push_back(p);
      seconds_before = std::max(seconds_before, p.seconds);
      epoch = std::max(epoch, p.epoch);
    }
  }
  images = j.at("images");
  matrices = j.at("matrices");
  texts = j.at("texts");
  curves = j.at("curves");
  hyperparameters = j.at("hyperparameters");
  model = j.at("model");
  started = j.at("started").get<std::string>();
  for (json* list : {&images, &matrices, &texts}) drop_after(*list, last_step_kept);
}

HtmlReport::HtmlReport(HtmlReportOptions options) : options_(std::move(options)), data_(std::make_unique<Data>()) {}
HtmlReport::~HtmlReport() = default;

void HtmlReport::changed() {
  data_->unsaved = true;
  const auto& at = data_->written;
  if (!at || std::chrono::duration<double>(Clock::now() - *at).count() >= options_.interval) save();
}

void HtmlReport::add_point(const std::string& name, std::int64_t step, std::int64_t epoch, double value) {
  auto& points = data_->find(name).points;
  points.push_back({step, epoch, data_->seconds(), value});
  if (points.size() > std::max<std::size_t>(options_.max_points, 8)) thin(points);
}

void HtmlReport::log_metrics(const LogRecord& record) {
  Data& d = *data_;
  d.status = "running";
  // A test after the last epoch logs that epoch's step with the next epoch's number, which is ignored.
  if (d.epoch < 0 || record.step > d.step) d.epoch = std::max(d.epoch, record.epoch);
  d.step = std::max(d.step, record.step);
  for (const auto& [name, value] : record.values) add_point(name, record.step, record.epoch, value);
  const double now = d.seconds();
  if (options_.throughput && d.last_step && record.step > *d.last_step && now > d.last_seconds)
    add_point(kThroughput, record.step, record.epoch,
              static_cast<double>(record.step - *d.last_step) / (now - d.last_seconds));
  d.last_step = record.step;  // a record of the same step is a validation, whose time is excluded
  d.last_seconds = now;
  changed();
}

void HtmlReport::log_hyperparams(const Hyperparameters& parameters) {
  for (const auto& [name, value] : parameters) {
    json& list = data_->hyperparameters;
    const auto known = std::find_if(list.begin(), list.end(), [&](const json& row) { return row[0] == name; });
    const json row = {name, to_string(value)};
    if (known == list.end())
      list.push_back(row);
    else
      *known = row;
  }
  changed();
}

void HtmlReport::log_model(const nn::Module& module) {
  json rows = json::array();
  for (const auto& r : module_rows(module, 2))
    rows.push_back({{"name", r.name},
                    {"type", r.type},
                    {"depth", r.depth},
                    {"parameters", r.parameters},
                    {"trainable", r.trainable}});
  std::int64_t all = 0, trainable = 0, bytes = 0;
  for (const auto& [name, p] : module.named_parameters()) {
    all += p.numel();
    bytes += p.numel() * size_of(p.dtype());
    trainable += p.requires_grad() ? p.numel() : 0;
  }
  data_->model = {{"type", module.type_name()},
                  {"rows", rows},
                  {"parameters", all},
                  {"trainable", trainable},
                  {"megabytes", static_cast<double>(bytes) / 1e6}};
  changed();
}

void HtmlReport::log_image(const std::string& name, const Tensor& images, std::int64_t step) {
  const Tensor grid = data::to_uint8(data::make_grid(images.cpu(), options_.grid));
  data_->images.push_back({{"name", name},
                           {"step", step},
                           {"width", grid.size(2)},
                           {"height", grid.size(1)},
                           {"png", base64(data::encode_png(grid))}});
  limit(data_->images, name, options_.max_images);
  changed();
}

void HtmlReport::log_text(const std::string& name, const std::string& text, std::int64_t step) {
  data_->texts.push_back({{"name", name}, {"step", step}, {"text", text}});
  changed();
}

void HtmlReport::log_confusion_matrix(const std::string& name, const Tensor& counts,
                                      const std::vector<std::string>& labels, std::int64_t step) {
  data_->matrices.push_back({{"name", name}, {"step", step}, {"rows", json_rows(counts)}, {"labels", labels}});
  limit(data_->matrices, name, options_.max_matrices);
  changed();
}

void HtmlReport::log_curve(const LogCurve& c) {
  json x = json::array(), y = json::array();
  for (const double v : c.x) x.push_back(json_number(v));
  for (const double v : c.y) y.push_back(json_number(v));
  json curve{{"name", c.name},
             {"x_label", c.x_label},
             {"y_label", c.y_label},
             {"x", x},
             {"y", y},
             {"log_x", c.log_x},
             {"mark", c.mark ? json_number(*c.mark) : json()}};
  json& list = data_->curves;
  const auto known = std::find_if(list.begin(), list.end(), [&](const json& i) { return i["name"] == c.name; });
  if (known == list.end())
    list.push_back(std::move(curve));
  else
    *known = std::move(curve);
  changed();
}

std::string HtmlReport::log_dir() const { return std::filesystem::path(options_.file).parent_path(); }

void HtmlReport::resume(std::int64_t step) {
  auto fresh = std::make_unique<Data>();
  if (std::filesystem::exists(options_.file)) {
    const auto j = json::parse(report::data_of(io::read_text(options_.file)), nullptr, false);
    try {
      if (j.is_object()) fresh->read(j, step);
    } catch (const json::exception&) {
      fresh = std::make_unique<Data>();  // not a report of this version: start over
    }
  }
  fresh->step = step;
  data_ = std::move(fresh);
}

void HtmlReport::save() {
  if (!data_->unsaved) return;
  if (const std::filesystem::path file(options_.file); file.has_parent_path())
    std::filesystem::create_directories(file.parent_path());
  io::write_file(options_.file, report::page(options_.title, dumped(data_->to_json(options_))));
  data_->unsaved = false;
  data_->written = Clock::now();
}

void HtmlReport::finalize(RunStatus status) {
  constexpr const char* kNames[] = {"success", "interrupted", "failed"};
  data_->status = kNames[static_cast<int>(status)];
  data_->unsaved = true;
  save();
}

}  // namespace levin
