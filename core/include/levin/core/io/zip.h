#pragma once
// Zip archives (PKWARE's APPNOTE 6.3.10): stored and deflated members, zip64; neither encryption nor several volumes.

#include <levin/core/io/bytes.h>

#include <vector>

namespace levin::io {

/// An entry of an archive.
struct ZipMember {
  std::string name;                    ///< its path in the archive, with "/" between folders
  bool deflated = false;               ///< false: stored as it is
  std::uint32_t crc = 0;               ///< CRC-32 of its content
  std::uint64_t packed = 0, size = 0;  ///< bytes
  std::uint64_t begin = 0;             ///< offset of its content in the file
};

/// Returns the entries of the central directory. Throws IoError for anything that does not fit the file.
std::vector<ZipMember> zip_members(std::span<const std::byte> file, const std::string& name);

/// Returns the content of a member. With `lazily`, the checksum of a stored member is not verified.
FileBytes zip_content(const FileBytes& file, const ZipMember& member, const std::string& name, bool lazily);

/// Builds an archive of stored members, up to 4 GiB.
class ZipWriter {
 public:
  /// Appends a stored member.
  void add(const std::string& name, std::string_view content);
  /// Returns the whole file. Throws ValueError if it is too long.
  std::string finish();

 private:
  std::string out_, directory_;
  std::uint16_t count_ = 0;
};

}  // namespace levin::io
