#pragma once
// NumPy's files: .npy holds one array, .npz is a zip archive of them.

#include <levin/core/state_dict.h>

#include <filesystem>

namespace levin::data {

struct NpyOptions {
  /// Map the file instead of reading it: pages come in when they are used, and processes share them. Writing to such a
  /// tensor changes neither the file nor what others see. The file must not be shortened meanwhile.
  bool mmap = false;
};

/// Reads versions 1 to 3, either byte order, C or Fortran order, and bool, int8 to int64, uint8, and float16 to
/// float64. Throws IoError for a missing or damaged file and for other types.
Tensor load_npy(const std::filesystem::path& path, const NpyOptions& options = {});
/// Writes version 1, little-endian, row-major; whole or not at all. bfloat16 has no such type (DTypeError).
void save_npy(const std::filesystem::path& path, const Tensor& tensor);

/// The arrays of an archive by their names without ".npy", in the archive's order. Stored and deflated members, also of
/// more than 4 GiB; checksums are verified, except of members that are mapped (the stored ones, with options.mmap).
StateDict load_npz(const std::filesystem::path& path, const NpyOptions& options = {});
/// Writes an archive of stored members, as numpy.savez. Throws ValueError for a name that is empty or ends in ".npy",
/// and for more than 4 GiB.
void save_npz(const std::filesystem::path& path, const StateDict& arrays);

}  // namespace levin::data
