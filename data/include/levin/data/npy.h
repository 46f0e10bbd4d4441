#pragma once
// NumPy's files: .npy holds one array, .npz is a zip archive of .npy files.

#include <levin/core/state_dict.h>

#include <string>

namespace levin::data {

/// Options of load_npy and load_npz.
struct NpyOptions {
  /// Maps the file into memory instead of reading it: pages are read on first use, and processes share them. Writes to
  /// such a tensor are private to the process. The file must not be shortened while the tensor lives.
  bool mmap = false;
};

/// Reads versions 1 to 3, either byte order, C or Fortran order, and bool, int8 to int64, uint8, and float16 to
/// float64. Throws IoError for a missing or damaged file and for other types.
Tensor load_npy(const std::string& path, const NpyOptions& options = {});
/// Writes version 1, little-endian, row-major, atomically. Throws DTypeError for bfloat16, which NumPy lacks.
void save_npy(const std::string& path, const Tensor& tensor);

/// Reads the arrays of an archive under their names without ".npy", in the archive's order. Members may be stored or
/// deflated, and longer than 4 GiB. Checksums are verified, except those of mapped members (stored, with options.mmap).
StateDict load_npz(const std::string& path, const NpyOptions& options = {});
/// Writes an archive of stored members, as numpy.savez. Throws ValueError for a name that is empty or ends in ".npy",
/// and for more than 4 GiB.
void save_npz(const std::string& path, const StateDict& arrays);

}  // namespace levin::data
