#pragma once
// Messages of the protocol-buffer wire format (protobuf.dev/programming-guides/encoding), written and read field by
// field, so that programs need neither libprotobuf nor a code generator. TensorBoard's event files and ONNX use it.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace levin::interop {

/// A message that is written field by field; each function appends one field and returns the message.
class ProtoMessage {
 public:
  /// A whole number (uint64, bool, enumerators).
  ProtoMessage& varint(int field, std::uint64_t v) {
    tag(field, 0);
    raw_varint(v);
    return *this;
  }
  /// A whole number with a sign, as int64 and int32 fields are written.
  ProtoMessage& integer(int field, std::int64_t v) { return varint(field, static_cast<std::uint64_t>(v)); }
  /// A double.
  ProtoMessage& fixed64(int field, double v) {
    tag(field, 1);
    raw(std::bit_cast<std::uint64_t>(v));
    return *this;
  }
  /// A float.
  ProtoMessage& fixed32(int field, float v) {
    tag(field, 5);
    raw(std::bit_cast<std::uint32_t>(v));
    return *this;
  }
  /// Text or bytes.
  ProtoMessage& bytes(int field, std::string_view v) {
    tag(field, 2);
    raw_varint(v.size());
    text_ += v;
    return *this;
  }
  /// A message within this one.
  ProtoMessage& message(int field, const ProtoMessage& m) { return bytes(field, m.text_); }
  /// A packed list of doubles.
  ProtoMessage& packed(int field, const std::vector<double>& values) {
    ProtoMessage list;
    for (const double v : values) list.raw(std::bit_cast<std::uint64_t>(v));
    return message(field, list);
  }
  /// Returns the encoded message.
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

/// A field of a message. Lists of numbers may be packed into one field or be spread over several.
class ProtoField {
 public:
  int number = 0;  ///< of the field, which its message's definition gives a meaning

  /// Returns the value. Throws IoError if the field has another wire type.
  std::int64_t integer() const;
  float real() const;
  double real64() const;
  std::string_view text() const;
  std::span<const std::byte> bytes() const;
  /// Appends the number, or all numbers of a packed list. Throws IoError if the field has another wire type.
  void append_to(std::vector<std::int64_t>& list) const;
  void append_to(std::vector<float>& list) const;
  void append_to(std::vector<double>& list) const;

 private:
  friend class ProtoReader;
  [[noreturn]] void refuse(const char* expected) const;

  unsigned kind_ = 0;        // of the wire format: 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes
  std::uint64_t value_ = 0;  // of kinds 0, 1 and 5
  std::span<const std::byte> bytes_{};
  const std::string* what_ = nullptr;
};

/// Reads a message that is not trusted; `what` names it in errors and has to live as long as the reader.
class ProtoReader {
 public:
  /// Reads the message that these bytes encode.
  ProtoReader(std::span<const std::byte> data, const std::string& what) : data_(data), what_(&what) {}
  /// Returns false at the end. Throws IoError for a field that is cut off or of an unknown wire type.
  bool next(ProtoField& field);

 private:
  friend class ProtoField;
  std::uint64_t varint();
  std::uint64_t fixed(std::size_t size);
  [[noreturn]] void damaged(const std::string& how) const;

  std::span<const std::byte> data_;
  std::size_t at_ = 0;
  const std::string* what_;
};

}  // namespace levin::interop
