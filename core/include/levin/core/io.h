#pragma once
// File input and output: a file is written completely or not at all, and every read is checked.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace levin::io {

/// Contents of a file.
using Bytes = std::vector<std::byte>;

/// Writes to a temporary name beside `path`, syncs, renames over it, and syncs the folder. On failure (a full disk, no
/// permission) throws IoError naming path and reason; the old file is untouched and the temporary one is removed.
void write_file(const std::string& path, std::span<const std::byte> data);
void write_file(const std::string& path, const std::string& text);

/// Writes a whole folder in the same way: `fill` writes files into a temporary folder, which then replaces `path`.
/// A crash in between leaves the old or the new folder, under its name or with the suffix ".old", which
/// `recover_folder` renames back.
void write_folder(const std::string& path, const std::function<void(const std::string&)>& fill);
/// Cleans up after a crash inside write_folder: renames "<path>.old" back if `path` is missing, and removes temporary
/// folders.
void recover_folder(const std::string& path);

/// Removes a folder atomically: a crash in between leaves it complete, or a temporary folder for remove_strays().
/// Throws IoError.
void remove_folder(const std::string& path);
/// Removes the files and folders in `folder` that ended processes left partly written or partly removed; returns their
/// number.
int remove_strays(const std::string& folder);

/// Makes `link` a symbolic link to `target` (a relative name) by an atomic rename.
void write_pointer(const std::string& link, const std::string& target);

/// Returns the contents of the file; throws IoError with the reason.
Bytes read_file(const std::string& path);
std::string read_text(const std::string& path);

/// Decompresses gzip data (any number of members). Throws IoError that names `what` when the data is damaged or
/// truncated, or when the result would exceed `limit` bytes.
Bytes gunzip(std::span<const std::byte> data, const std::string& what, std::size_t limit = std::size_t{4} << 30);

/// Computes the CRC-32 (IEEE) of `data`, continuing from `crc`.
std::uint32_t crc32(std::span<const std::byte> data, std::uint32_t crc = 0);

/// For tests: makes writes fail with `error` (an errno; 0: no space left on device) after `bytes` more have been
/// written. A negative number turns this off.
void fail_writes_after(std::int64_t bytes, int error = 0);
/// For tests: kills the process with SIGKILL instead of running operation number `operations` from now (counted from
/// 0). Each creation, write of 64 KiB, synchronisation, renaming and removal is one operation. A negative number turns
/// this off.
void kill_process_after(std::int64_t operations);

}  // namespace levin::io
