#include <levin/trainer/loggers/json_lines_logger.h>

#include <levin/core/io.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "src/loggers/json_values.h"

namespace levin {

nlohmann::json json_rows(const Tensor& matrix) {
  if (matrix.dim() != 2 || matrix.size(0) != matrix.size(1))
    throw ShapeError(fmt::format("[log] a confusion matrix cannot be {}. Give (C, C).", to_string(matrix.sizes())));
  auto rows = nlohmann::json::array();
  const bool whole = !is_floating(matrix.dtype());
  const auto values = matrix.to_vector<double>();
  const auto c = static_cast<std::size_t>(matrix.size(1));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % c == 0) rows.push_back(nlohmann::json::array());
    if (whole)
      rows.back().push_back(static_cast<std::int64_t>(values[i]));
    else
      rows.back().push_back(json_number(values[i]));
  }
  return rows;
}

namespace {

/// Appends all of `text` or, on failure, nothing.
void append(const std::string& file, const std::string& text) {
  std::error_code ignored;
  const auto before = std::filesystem::file_size(file, ignored);
  std::FILE* f = std::fopen(file.c_str(), "ab");
  const bool written = f && std::fwrite(text.data(), 1, text.size(), f) == text.size();
  const int reason = errno;
  const bool closed = f && std::fclose(f) == 0;
  if (written && closed) return;
  if (!ignored) std::filesystem::resize_file(file, before, ignored);
  throw IoError(fmt::format("[log] {} could not be written: {}.", file, std::strerror(reason)));
}

}  // namespace

void JsonLinesLogger::log_metrics(const LogRecord& record) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (const auto& [name, value] : record.values) values[name] = json_number(value);
  nlohmann::ordered_json line{{"epoch", record.epoch}, {"step", record.step}, {"values", values}};
  pending_ += line.dump() + "\n";
}

void JsonLinesLogger::log_hyperparams(const Hyperparameters& parameters) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (const auto& [name, value] : parameters) values[name] = json_of(value);
  pending_ += nlohmann::ordered_json{{"hyperparameters", values}}.dump() + "\n";
}

void JsonLinesLogger::log_text(const std::string& name, const std::string& text, std::int64_t step) {
  pending_ += dumped({{"step", step}, {"name", name}, {"text", text}}) + "\n";
}

void JsonLinesLogger::log_confusion_matrix(const std::string& name, const Tensor& counts,
                                           const std::vector<std::string>& labels, std::int64_t step) {
  pending_ += dumped({{"step", step}, {"name", name}, {"confusion_matrix", json_rows(counts)}, {"labels", labels}});
  pending_ += "\n";
}

std::string JsonLinesLogger::log_dir() const { return std::filesystem::path(file_).parent_path(); }

void JsonLinesLogger::resume(std::int64_t step) {
  std::string kept;
  if (std::filesystem::exists(file_)) {
    const std::string text = io::read_text(file_);
    for (std::size_t at = 0; at < text.size();) {
      const auto end = text.find('\n', at);
      if (end == std::string::npos) break;
      const std::string line = text.substr(at, end - at);
      at = end + 1;
      const auto j = nlohmann::json::parse(line, nullptr, false);
      if (!j.is_discarded() && j.is_object() && j.value("step", std::int64_t{0}) <= step) kept += line + "\n";
    }
  }
  pending_ = kept + pending_;
  started_ = false;
}

void JsonLinesLogger::save() {
  if (pending_.empty()) return;
  if (const std::filesystem::path file(file_); file.has_parent_path())
    std::filesystem::create_directories(file.parent_path());
  if (!started_) {
    io::write_file(file_, pending_);
    started_ = true;
  } else {
    append(file_, pending_);
  }
  pending_.clear();
}

}  // namespace levin
