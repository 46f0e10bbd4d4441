#include <levin/trainer/loggers/logger.h>

#include <levin/core/io.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>

namespace levin {
namespace {

std::string quoted(const std::string& name) {
  if (name.find_first_of(",\"\n") == std::string::npos) return name;
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::vector<std::string> split_line(const std::string& line) {
  std::vector<std::string> cells(1);
  bool inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool doubled = inside && line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"';
    if (line[i] == '"' && !doubled) inside = !inside;
    else if (line[i] == ',' && !inside) cells.emplace_back();
    else cells.back() += line[i];
    if (doubled) ++i;
  }
  return cells;
}

}  // namespace

std::size_t CSVLogger::column(const std::string& name) {
  const auto at = std::find(columns_.begin(), columns_.end(), name);
  if (at != columns_.end()) return static_cast<std::size_t>(at - columns_.begin());
  columns_.push_back(name);
  return columns_.size() - 1;
}

void CSVLogger::log_metrics(const LogRecord& record) {
  Row row{std::to_string(record.epoch), std::to_string(record.step), {}};
  for (const auto& [name, value] : record.values) {
    const std::size_t at = column(name);
    if (row.cells.size() <= at) row.cells.resize(at + 1);
    row.cells[at] = fmt::format("{}", value);
  }
  rows_.push_back(std::move(row));
  changed_ = true;
}

void CSVLogger::resume(std::int64_t step) {
  columns_.clear();
  rows_.clear();
  changed_ = true;
  if (std::filesystem::exists(file_)) read_rows(step);
}

void CSVLogger::read_rows(std::int64_t last_step) {
  std::istringstream in(io::read_text(file_));
  std::string line;
  std::getline(in, line);
  const auto header = split_line(line);
  if (header.size() < 2 || header[0] != "epoch" || header[1] != "step") return;  // not this logger's table: start over
  columns_.assign(header.begin() + 2, header.end());
  while (std::getline(in, line)) {
    const auto cells = split_line(line);
    std::int64_t step = 0;
    if (cells.size() < 2 || std::from_chars(cells[1].data(), cells[1].data() + cells[1].size(), step).ec != std::errc())
      continue;
    if (step <= last_step) rows_.push_back({cells[0], cells[1], {cells.begin() + 2, cells.end()}});
  }
}

void CSVLogger::save() {
  if (!std::exchange(changed_, false)) return;
  std::string text = "epoch,step";
  for (const auto& name : columns_) text += "," + quoted(name);
  text += '\n';
  for (const auto& row : rows_) {
    text += row.epoch + "," + row.step;
    for (std::size_t i = 0; i < columns_.size(); ++i)
      text += "," + (i < row.cells.size() ? row.cells[i] : std::string());
    text += '\n';
  }
  if (const std::filesystem::path file(file_); file.has_parent_path())
    std::filesystem::create_directories(file.parent_path());
  io::write_file(file_, text);
}

CSVLogger::CSVLogger(std::string file) : file_(std::move(file)) {}

std::string CSVLogger::log_dir() const { return std::filesystem::path(file_).parent_path(); }

}  // namespace levin
