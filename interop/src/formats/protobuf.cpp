#include <levin/interop/protobuf.h>

#include <levin/core/error.h>

namespace levin::interop {

namespace {

[[noreturn]] void damaged_message(const std::string& what, const std::string& how) {
  throw IoError("[protobuf] " + what + " is damaged: " + how + ". Use another copy of the file.");
}

}  // namespace

void ProtoReader::damaged(const std::string& how) const { damaged_message(*what_, how); }

std::uint64_t ProtoReader::varint() {
  std::uint64_t v = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at_ == data_.size()) damaged("it ends inside a number");
    const auto byte = std::to_integer<std::uint64_t>(data_[at_++]);
    v |= (byte & 0x7f) << shift;
    if (byte < 0x80) return v;
  }
  damaged("a number has more than ten bytes");
}

std::uint64_t ProtoReader::fixed(std::size_t size) {
  if (data_.size() - at_ < size) damaged("it ends inside a number");
  std::uint64_t v = 0;
  for (std::size_t i = size; i-- > 0;) v = v << 8 | std::to_integer<std::uint64_t>(data_[at_ + i]);
  at_ += size;
  return v;
}

bool ProtoReader::next(ProtoField& field) {
  if (at_ == data_.size()) return false;
  const std::uint64_t tag = varint();
  if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) damaged("field " + std::to_string(tag >> 3) + " is no field number");
  field.number = static_cast<int>(tag >> 3);
  field.kind_ = static_cast<unsigned>(tag & 7);
  field.what_ = what_;
  switch (field.kind_) {
    case 0:
      field.value_ = varint();
      break;
    case 1:
      field.value_ = fixed(8);
      break;
    case 5:
      field.value_ = fixed(4);
      break;
    case 2: {
      const std::uint64_t length = varint();
      if (length > data_.size() - at_)
        damaged("field " + std::to_string(field.number) + " has " + std::to_string(length) + " bytes, but " +
                std::to_string(data_.size() - at_) + " are left");
      field.bytes_ = data_.subspan(at_, length);
      at_ += length;
      break;
    }
    default:
      damaged("field " + std::to_string(field.number) + " has the wire type " + std::to_string(field.kind_));
  }
  return true;
}

void ProtoField::refuse(const char* expected) const {
  damaged_message(*what_, "field " + std::to_string(number) + " is no " + expected);
}

std::int64_t ProtoField::integer() const {
  if (kind_ != 0) refuse("whole number");
  return static_cast<std::int64_t>(value_);
}

float ProtoField::real() const {
  if (kind_ != 5) refuse("float");
  return std::bit_cast<float>(static_cast<std::uint32_t>(value_));
}

double ProtoField::real64() const {
  if (kind_ != 1) refuse("double");
  return std::bit_cast<double>(value_);
}

std::span<const std::byte> ProtoField::bytes() const {
  if (kind_ != 2) refuse("text or message");
  return bytes_;
}

std::string_view ProtoField::text() const {
  const auto data = bytes();
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

void ProtoField::append_to(std::vector<std::int64_t>& list) const {
  if (kind_ != 2) return list.push_back(integer());
  ProtoReader reader(bytes_, *what_);
  while (reader.at_ < bytes_.size()) list.push_back(static_cast<std::int64_t>(reader.varint()));
}

void ProtoField::append_to(std::vector<float>& list) const {
  if (kind_ != 2) return list.push_back(real());
  ProtoReader reader(bytes_, *what_);
  while (reader.at_ < bytes_.size()) list.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(reader.fixed(4))));
}

void ProtoField::append_to(std::vector<double>& list) const {
  if (kind_ != 2) return list.push_back(real64());
  ProtoReader reader(bytes_, *what_);
  while (reader.at_ < bytes_.size()) list.push_back(std::bit_cast<double>(reader.fixed(8)));
}

}  // namespace levin::interop
