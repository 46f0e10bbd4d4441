#pragma once
// Tables of text: CSV as RFC 4180 has it.

#include <levin/data/dataset.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace levin::data {

struct CsvOptions {
  char delimiter = ',';
  bool header = true;  ///< the first line names the columns; else they are "0", "1", ...
  char comment = 0;    ///< lines that begin with it are left out
};

/// A table kept as text, by column.
class CsvTable {
 public:
  int64_t rows() const { return rows_; }
  const std::vector<std::string>& columns() const { return names_; }
  /// The cells of a column; throws ValueError that lists the columns.
  const std::vector<std::string>& text(std::string_view column) const;
  /// The cells as numbers (N); empty cells are NaN. Throws ValueError that names line and column of a cell that is no
  /// number, or that does not fit the type: floating, or int64.
  Tensor numbers(std::string_view column, DType dtype = kFloat64) const;
  /// Several columns as numbers (N, C).
  Tensor matrix(const std::vector<std::string>& columns, DType dtype = kFloat32) const;
  /// A column of words as classes (N), int64, numbered in the order of the words; `classes` receives them.
  Tensor classes(std::string_view column, std::vector<std::string>* classes = nullptr) const;

 private:
  friend CsvTable parse_csv(std::string_view text, const CsvOptions& options, const std::string& name);
  std::size_t place_of(std::string_view column) const;
  std::string name_;
  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> cells_;  // by column
  std::vector<int64_t> lines_;                   // of each row in the file
  int64_t rows_ = 0;
};

/// Cells in double quotes may hold delimiters, line ends and doubled quotes. Throws IoError, which names the line, when
/// rows have different numbers of cells, a quote stays open, or a column's name comes twice.
CsvTable parse_csv(std::string_view text, const CsvOptions& options = {}, const std::string& name = "csv");
CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options = {});

/// Samples: the feature columns f32 (C), the target () as int64 class (its words are numbered) or, for regression, f32.
struct CsvDatasetOptions {
  std::string target{};                 ///< the last column if empty
  std::vector<std::string> features{};  ///< all other columns if empty
  bool regression = false;
  CsvOptions csv{};
};
TensorDataset csv_dataset(const std::filesystem::path& path, const CsvDatasetOptions& options = {});

}  // namespace levin::data
