#pragma once
// CSV tables as RFC 4180 defines them.

#include <levin/data/dataset.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace levin::data {

struct CsvOptions {
  char delimiter = ',';
  bool header = true;  ///< the first line names the columns; else they are "0", "1", ...
  char comment = 0;    ///< lines that begin with it are skipped; 0: none
};

/// A table of text cells, stored by column.
class CsvTable {
 public:
  int64_t rows() const { return rows_; }
  const std::vector<std::string>& columns() const { return names_; }
  /// Returns the cells of a column; throws ValueError with the list of columns if there is none of this name.
  const std::vector<std::string>& text(std::string_view column) const;
  /// Returns a column as numbers (N) of a floating type or int64; empty cells are NaN. Throws ValueError with the line
  /// and the column of a cell that is not a number or does not fit the type.
  Tensor numbers(std::string_view column, DType dtype = kFloat64) const;
  /// Returns several columns as numbers (N, C).
  Tensor matrix(const std::vector<std::string>& columns, DType dtype = kFloat32) const;
  /// Returns a column of words as int64 classes (N), numbered in alphabetic order; `classes` receives the words.
  Tensor classes(std::string_view column, std::vector<std::string>* classes = nullptr) const;

 private:
  friend CsvTable parse_csv(std::string_view text, const CsvOptions& options, const std::string& name);
  std::size_t place_of(std::string_view column) const;
  std::string name_;
  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> cells_;  // by column
  std::vector<int64_t> lines_;                   // line number of each row in the file
  int64_t rows_ = 0;
};

/// Parses a table. Cells in double quotes may hold delimiters, line ends and doubled quotes. Throws IoError with the
/// line if rows have different numbers of cells, a quote stays open, or a column's name occurs twice.
CsvTable parse_csv(std::string_view text, const CsvOptions& options = {}, const std::string& name = "csv");
CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options = {});

/// Options of a dataset whose samples are the feature columns, f32 (C), and the target (): an int64 class, or f32 for
/// regression.
struct CsvDatasetOptions {
  std::string target{};                 ///< the last column if empty
  std::vector<std::string> features{};  ///< all other columns if empty
  bool regression = false;
  CsvOptions csv{};
};
TensorDataset csv_dataset(const std::filesystem::path& path, const CsvDatasetOptions& options = {});

}  // namespace levin::data
