#pragma once
// Files: whole or not at all when written, checked when read.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace levin::io {

using Bytes = std::vector<std::byte>;

/// Writes to a temporary name beside `path`, syncs, renames over it, and syncs the folder. On failure (a full disk, no
/// permission) throws IoError naming path and reason; the old file is untouched and the temporary one is removed.
void write_file(const std::filesystem::path& path, std::span<const std::byte> data);
void write_file(const std::filesystem::path& path, const std::string& text);

/// The same for a whole folder: `fill` writes files into a temporary folder which then takes the place of `path`.
/// If `path` exists it is replaced; a crash in between leaves the old or the new one, under its name or with the
/// suffix ".old", which `recover_folder` puts back.
void write_folder(const std::filesystem::path& path, const std::function<void(const std::filesystem::path&)>& fill);
/// Finishes what a crash inside write_folder left: puts "<path>.old" back if `path` is missing, removes strays.
void recover_folder(const std::filesystem::path& path);

/// Removes a folder as one: a crash in between leaves it whole, or a stray. Throws IoError.
void remove_folder(const std::filesystem::path& path);
/// Removes what processes that are gone left half written or half removed in `folder`; gives the number.
int remove_strays(const std::filesystem::path& folder);

/// Makes `link` name `target` (a relative name) by an atomic rename.
void write_pointer(const std::filesystem::path& link, const std::string& target);

/// The whole file; throws IoError with the reason.
Bytes read_file(const std::filesystem::path& path);
std::string read_text(const std::filesystem::path& path);

/// Inflates gzip data (any number of members); throws IoError that names `what` when damaged or truncated, or when the
/// result would exceed `limit` bytes.
Bytes gunzip(std::span<const std::byte> data, const std::string& what, std::size_t limit = std::size_t{4} << 30);

/// CRC-32 (IEEE) of `data`, continuing from `crc`.
std::uint32_t crc32(std::span<const std::byte> data, std::uint32_t crc = 0);

/// For tests: makes writes fail with `error` (an errno; 0: no space left on device) once `bytes` more have been
/// written; negative turns off.
void fail_writes_after(std::int64_t bytes, int error = 0);
/// For tests: SIGKILL ends the process in place of operation number `operations` from now (from 0). Each creation,
/// 64 KiB of writing, synchronisation, renaming and removal is one. Negative turns off.
void kill_process_after(std::int64_t operations);

}  // namespace levin::io
