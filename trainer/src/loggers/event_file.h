#pragma once
// TensorBoard's event files: TFRecord framing around protocol-buffer messages.

#include <levin/core/io.h>
#include <levin/interop/protobuf.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace levin {

using interop::ProtoMessage;

/// CRC-32C (Castagnoli), rotated and offset ("masked") as TFRecord requires.
std::uint32_t masked_crc32c(std::string_view data);

/// Appends records: length (u64), its masked CRC, data, its masked CRC. A reader stops at the first incomplete record.
class EventFile {
 public:
  EventFile() = default;
  ~EventFile() { close(); }
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  bool is_open() const { return file_ != nullptr; }
  /// Creates the folder and a new file with the version record that readers expect. Throws IoError.
  void open(const std::filesystem::path& folder);
  void write(const ProtoMessage& event);
  /// Flushes to the operating system, so that readers see the records.
  void flush();
  void close();

 private:
  [[noreturn]] void failed() const;
  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
};

/// Creates an event with the current time; the caller adds more fields.
ProtoMessage make_event(std::int64_t step);

}  // namespace levin
