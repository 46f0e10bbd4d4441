#pragma once
// CSV tables as RFC 4180 defines them.

#include <levin/data/dataset.h>

#include <string>
#include <string_view>
#include <vector>

namespace levin::data {

/// Options of parse_csv and read_csv.
struct CsvOptions {
  char delimiter = ',';  ///< stands between cells
  bool header = true;    ///< the first line names the columns; else they are "0", "1", ...
  char comment = 0;      ///< lines that begin with it are skipped; 0: none
};

/// A table of text cells, stored by column.
class CsvTable {
 public:
  /// Number of rows, without the header.
  int64_t rows() const { return rows_; }
  /// Names of the columns, in the file's order.
  const std::vector<std::string>& columns() const { return names_; }
  /// Returns the cells of a column; throws ValueError with the list of columns if there is none of this name.
  const std::vector<std::string>& text(std::string_view column) const;
  /// Returns a column as numbers (N) of a floating type or int64; empty cells are NaN, and an error for int64. Throws
  /// ValueError with the line and the column of a cell that is not a number or does not fit the type, and DTypeError
  /// for other types.
  Tensor numbers(std::string_view column, DType dtype = kFloat64) const;
  /// Returns several columns as numbers (N, C), which are read as float64 and converted.
  Tensor matrix(const std::vector<std::string>& columns, DType dtype = kFloat32) const;
  /// Returns a column of words as int64 classes (N), numbered from 0 in the order of their bytes; `classes`, unless
  /// null, receives the words.
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

/// Parses a table, or reads it from a file. Cells in double quotes may hold delimiters, line ends and doubled quotes.
/// Throws IoError, which begins with `name` or the path, for a missing file or a table without rows, and with the line
/// if rows have different numbers of cells, a quote stays open, or a column's name occurs twice.
CsvTable parse_csv(std::string_view text, const CsvOptions& options = {}, const std::string& name = "csv");
CsvTable read_csv(const std::string& path, const CsvOptions& options = {});

/// Options of a dataset whose samples are the feature columns, f32 (C), and the target (): an int64 class, or f32 for
/// regression.
struct CsvDatasetOptions {
  std::string target{};                 ///< the last column if empty
  std::vector<std::string> features{};  ///< all other columns if empty
  bool regression = false;
  CsvOptions csv{};                     ///< how the file is read
};
/// Reads a table as a dataset. Throws IoError as read_csv, and for a table without rows; ValueError for a column that
/// is missing or a feature that is not a number.
TensorDataset csv_dataset(const std::string& path, const CsvDatasetOptions& options = {});

}  // namespace levin::data
