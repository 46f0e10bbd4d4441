#include <levin/core/io.h>
#include <levin/data/idx.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

namespace levin::data {

namespace {

std::optional<DType> type_of_code(std::byte code) {
  switch (static_cast<int>(code)) {
    case 0x08: return kUInt8;
    case 0x09: return kInt8;
    case 0x0B: return kInt16;
    case 0x0C: return kInt32;
    case 0x0D: return kFloat32;
    case 0x0E: return kFloat64;
    default: return std::nullopt;
  }
}

std::uint32_t big_endian(const std::byte* p) {
  return static_cast<std::uint32_t>(p[0]) << 24 | static_cast<std::uint32_t>(p[1]) << 16 |
         static_cast<std::uint32_t>(p[2]) << 8 | static_cast<std::uint32_t>(p[3]);
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw IoError(fmt::format("[idx] {}: {}", path, why));
}

struct Header {
  DType dtype;
  Shape sizes;
  std::size_t bytes;  ///< length of the header
};

Header read_header(const io::Bytes& file, const std::string& path) {
  if (file.size() < 4)
    refuse(path, fmt::format("it has {} bytes, too few for an IDX file. Fetch it again.", file.size()));
  const auto dtype = type_of_code(file[2]);
  const int dims = static_cast<int>(file[3]);
  if (file[0] != std::byte{0} || file[1] != std::byte{0} || !dtype || dims > kMaxDims) {
    refuse(path,
           fmt::format("it begins with {:#010x}, which is not an IDX magic number (2051 for images, 2049 for labels). "
                       "Is this the right file?",
                       big_endian(file.data())));
  }
  Header header{*dtype, {}, 4 + 4 * static_cast<std::size_t>(dims)};
  if (file.size() < header.bytes) {
    refuse(path, fmt::format("it is truncated: the header needs {} bytes, the file has {}. Fetch it again.",
                             header.bytes, file.size()));
  }
  for (int i = 0; i < dims; ++i) header.sizes.push_back(big_endian(file.data() + 4 + 4 * i));
  return header;
}

/// Number of bytes that the header announces; throws IoError for sizes whose product overflows.
std::size_t promised_bytes(const Header& header, const std::string& path) {
  std::size_t bytes = static_cast<std::size_t>(size_of(header.dtype));
  for (const int64_t s : header.sizes) {
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(s), &bytes)) {
      refuse(path, fmt::format("its sizes {} are more than any file holds. It is damaged.", to_string(header.sizes)));
    }
  }
  return bytes;
}

Tensor swap_elements(const std::byte* from, const Header& header) {
  Tensor out = empty(header.sizes, {.dtype = header.dtype});
  auto* to = static_cast<std::byte*>(out.raw_data());
  const auto width = static_cast<std::size_t>(size_of(header.dtype));
  for (std::size_t i = 0; i < static_cast<std::size_t>(out.numel()); ++i) {
    std::reverse_copy(from + i * width, from + (i + 1) * width, to + i * width);
  }
  return out;
}

}  // namespace

Tensor read_idx(const std::string& path) {
  auto file = std::make_shared<io::Bytes>(io::read_file(path));
  if (file->size() >= 2 && (*file)[0] == std::byte{0x1f} && (*file)[1] == std::byte{0x8b}) {
    *file = io::gunzip(*file, path);
  }
  const Header header = read_header(*file, path);
  const std::size_t expected = promised_bytes(header, path), actual = file->size() - header.bytes;
  if (actual != expected) {
    refuse(path, fmt::format("shape {} of {} needs {} bytes after the header, the file has {}: it {}. Fetch it again.",
                             to_string(header.sizes), name_of(header.dtype), expected, actual,
                             actual < expected ? "is truncated" : "has trailing bytes"));
  }
  std::byte* data = file->data() + header.bytes;
  if (size_of(header.dtype) > 1) return swap_elements(data, header);
  return from_blob(data, header.sizes, {.dtype = header.dtype}, [file] {});  // the tensor keeps the buffer
}

}  // namespace levin::data
