#include <levin/core/io.h>
#include <levin/data/csv.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace levin::data {

namespace {

[[noreturn]] void refuse(const std::string& name, int64_t line, const std::string& why) {
  throw IoError(fmt::format("[csv] {}, line {}: {}", name, line, why));
}

/// Splits text into rows of cells.
class CsvReader {
 public:
  CsvReader(std::string_view text, const CsvOptions& options, const std::string& name)
      : text_(text), o_(options), name_(name) {}

  /// Returns the next row that is neither empty nor a comment, or nothing at the end. Sets `line` to its first line.
  std::optional<std::vector<std::string>> row(int64_t& line) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n' || c == '\r') {
        end_line();
      } else if (o_.comment != 0 && c == o_.comment) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        line = line_;
        return cells();
      }
    }
    return std::nullopt;
  }

 private:
  void end_line() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    ++line_;
  }

  std::vector<std::string> cells() {
    std::vector<std::string> list;
    for (;;) {
      list.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted() : plain());
      if (at_ >= text_.size() || text_[at_] != o_.delimiter) break;
      ++at_;
    }
    end_line();
    return list;
  }

  std::string plain() {
    const std::size_t end = std::min(text_.find_first_of(std::string{o_.delimiter, '\n', '\r'}, at_), text_.size());
    const std::string_view cell = text_.substr(at_, end - at_);
    at_ = end;
    return std::string(cell);
  }

  std::string quoted() {
    const int64_t begin = line_;
    std::string cell;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
        ++at_;
      }
      line_ += c == '\n';
      cell += c;
    }
    if (at_ >= text_.size()) refuse(name_, begin, "a quote is opened and never closed.");
    ++at_;
    if (at_ < text_.size() && text_[at_] != o_.delimiter && text_[at_] != '\n' && text_[at_] != '\r') {
      refuse(name_, line_, "text follows a closing quote. Write quotes inside of a cell twice.");
    }
    return cell;
  }

  std::string_view text_;
  const CsvOptions& o_;
  const std::string& name_;
  std::size_t at_ = 0;
  int64_t line_ = 1;
};

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

template <class T>
std::optional<T> number_in(std::string_view cell) {
  cell = trimmed(cell);
  if (!cell.empty() && cell.front() == '+') cell.remove_prefix(1);
  if (std::is_floating_point_v<T> && cell.empty()) return std::numeric_limits<T>::quiet_NaN();
  T value{};
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size()) return std::nullopt;
  return value;
}

}  // namespace

CsvTable parse_csv(std::string_view text, const CsvOptions& options, const std::string& name) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  CsvTable table;
  table.name_ = name;
  CsvReader reader(text, options, name);
  int64_t line = 0;
  std::optional<std::vector<std::string>> row = reader.row(line);
  if (!row) throw IoError(fmt::format("[csv] {}: it has no rows.", name));
  for (std::size_t c = 0; c < row->size(); ++c) {
    table.names_.push_back(options.header ? std::string(trimmed((*row)[c])) : std::to_string(c));
    if (std::count(table.names_.begin(), table.names_.end(), table.names_.back()) > 1) {
      refuse(name, line, fmt::format("the column \"{}\" comes twice.", table.names_.back()));
    }
  }
  table.cells_.resize(table.names_.size());
  if (options.header) row = reader.row(line);
  for (; row; row = reader.row(line)) {
    if (row->size() != table.names_.size()) {
      refuse(name, line, fmt::format("it has {} cells, the table has {} columns.", row->size(), table.names_.size()));
    }
    for (std::size_t c = 0; c < row->size(); ++c) table.cells_[c].push_back(std::move((*row)[c]));
    table.lines_.push_back(line);
    ++table.rows_;
  }
  return table;
}

CsvTable read_csv(const std::string& path, const CsvOptions& options) {
  return parse_csv(io::read_text(path), options, path);
}

std::size_t CsvTable::place_of(std::string_view column) const {
  const auto found = std::find(names_.begin(), names_.end(), column);
  if (found == names_.end()) {
    throw ValueError(fmt::format("[csv] {} has no column \"{}\"; it has {}.", name_, column, fmt::join(names_, ", ")));
  }
  return static_cast<std::size_t>(found - names_.begin());
}

const std::vector<std::string>& CsvTable::text(std::string_view column) const { return cells_[place_of(column)]; }

Tensor CsvTable::numbers(std::string_view column, DType dtype) const {
  const std::size_t place = place_of(column);
  if (dtype != kInt64 && !is_floating(dtype)) {
    throw DTypeError(fmt::format("[csv] numbers are read as int64 or a floating type, not {}.", name_of(dtype)));
  }
  const auto read = [&]<class T>(T) {
    std::vector<T> values;
    for (std::size_t r = 0; r < cells_[place].size(); ++r) {
      const std::optional<T> value = number_in<T>(cells_[place][r]);
      if (!value) {
        throw ValueError(fmt::format("[csv] {}, line {}, column \"{}\": \"{}\" is not a {} number.", name_, lines_[r],
                                     column, cells_[place][r].substr(0, 40),
                                     std::is_integral_v<T> ? "whole" : "finite"));
      }
      values.push_back(*value);
    }
    return from_data(values, {rows_}, {.dtype = dtype});
  };
  return dtype == kInt64 ? read(int64_t{}) : read(double{});
}

Tensor CsvTable::matrix(const std::vector<std::string>& columns, DType dtype) const {
  const auto width = static_cast<int64_t>(columns.size());
  std::vector<double> values(static_cast<std::size_t>(rows_ * width));
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const Tensor column = numbers(columns[c]);
    for (int64_t r = 0; r < rows_; ++r) {
      values[static_cast<std::size_t>(r * width) + c] = column.data<double>()[r];
    }
  }
  return from_data(values, {rows_, width}, {.dtype = dtype});
}

Tensor CsvTable::classes(std::string_view column, std::vector<std::string>* classes) const {
  const std::vector<std::string>& words = text(column);
  std::map<std::string, int64_t> numbers;
  for (const std::string& w : words) numbers.emplace(w, 0);
  int64_t next = 0;
  if (classes) classes->clear();
  for (auto& [word, number] : numbers) {
    number = next++;
    if (classes) classes->push_back(word);
  }
  std::vector<int64_t> labels;
  for (const std::string& w : words) labels.push_back(numbers.at(w));
  return from_data(labels, {rows_});
}

TensorDataset csv_dataset(const std::string& path, const CsvDatasetOptions& o) {
  const CsvTable table = read_csv(path, o.csv);
  if (table.rows() == 0) throw IoError(fmt::format("[csv] {}: it has no rows.", path));
  const std::string target = o.target.empty() ? table.columns().back() : o.target;
  std::vector<std::string> features = o.features;
  if (features.empty()) {
    features = table.columns();
    std::erase(features, target);
  }
  return TensorDataset(
      {table.matrix(features), o.regression ? table.numbers(target, kFloat32) : table.classes(target)});
}

}  // namespace levin::data
