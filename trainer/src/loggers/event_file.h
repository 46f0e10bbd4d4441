#pragma once
// TensorBoard's event files: TFRecord framing around protocol-buffer messages. The few messages needed are encoded by
// hand (their wire format is tags, varints and lengths), so users need neither libprotobuf nor a code generator.

#include <levin/core/io.h>

#include <bit>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace levin {

/// A message of the protocol-buffer wire format, written field by field.
class ProtoMessage {
 public:
  ProtoMessage& varint(int field, std::uint64_t v) {
    tag(field, 0);
    raw_varint(v);
    return *this;
  }
  ProtoMessage& fixed64(int field, double v) {
    tag(field, 1);
    raw(std::bit_cast<std::uint64_t>(v));
    return *this;
  }
  ProtoMessage& fixed32(int field, float v) {
    tag(field, 5);
    raw(std::bit_cast<std::uint32_t>(v));
    return *this;
  }
  ProtoMessage& bytes(int field, std::string_view v) {
    tag(field, 2);
    raw_varint(v.size());
    text_ += v;
    return *this;
  }
  ProtoMessage& message(int field, const ProtoMessage& m) { return bytes(field, m.text_); }
  ProtoMessage& packed(int field, const std::vector<double>& values) {
    ProtoMessage list;
    for (const double v : values) list.raw(std::bit_cast<std::uint64_t>(v));
    return message(field, list);
  }
  const std::string& text() const { return text_; }

 private:
  template <class U>
  void raw(U v) {
    for (std::size_t i = 0; i < sizeof(U); ++i) text_ += static_cast<char>(v >> (8 * i));
  }
  void raw_varint(std::uint64_t v) {
    for (; v >= 0x80; v >>= 7) text_ += static_cast<char>(v | 0x80);
    text_ += static_cast<char>(v);
  }
  void tag(int field, unsigned kind) { raw_varint((static_cast<std::uint64_t>(field) << 3) | kind); }
  std::string text_;
};

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
