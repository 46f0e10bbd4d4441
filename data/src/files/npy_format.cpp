#include "npy_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

namespace levin::data::detail {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw IoError(fmt::format("[npy] {}: {}", name, why));
}

struct Kind {
  std::string_view code;  ///< NumPy's type code without the byte order
  DType dtype;
};
constexpr Kind kKinds[] = {{"b1", kBool},  {"i1", kInt8},    {"u1", kUInt8},   {"i2", kInt16},  {"i4", kInt32},
                           {"i8", kInt64}, {"f2", kFloat16}, {"f4", kFloat32}, {"f8", kFloat64},
                           {"c8", kComplex64}, {"c16", kComplex128}};

struct Header {
  DType dtype = kFloat32;
  bool swapped = false;
  bool fortran_order = false;
  Shape sizes;
};

/// Reads the header's dictionary, a Python literal with three known keys.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Header read() {
    Header header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        read_type(header);
        descr = true;
      } else if (key == "fortran_order" && !order) {
        header.fortran_order = boolean();
        order = true;
      } else if (key == "shape" && !shape) {
        read_shape(header);
        shape = true;
      } else {
        refuse_header();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!descr || !order || !shape) refuse_header();
    return header;
  }

 private:
  [[noreturn]] void refuse_header() const {
    const std::string_view shown = text_.substr(0, std::min<std::size_t>(text_.find('\n'), 100));
    std::string clean;
    for (const char c : shown) clean += c >= ' ' && c <= '~' ? c : '?';
    refuse(name_,
           fmt::format("its header is not NumPy's: {}. It is damaged, or holds records, which are not read.", clean));
  }

  bool accept(char c) {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse_header();
  }
  std::string_view quoted() {
    const char quote = accept('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) refuse_header();
    const std::string_view word = text_.substr(at_, end - at_);
    at_ = end + 1;
    return word;
  }
  bool boolean() {
    accept(' ');
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return word == "True";
    }
    refuse_header();
  }

  void read_type(Header& header) {
    const std::string_view word = quoted();
    if (word.size() >= 2) {
      for (const Kind& k : kKinds) {
        if (word.substr(1) != k.code || std::string_view("<>|=").find(word[0]) == std::string_view::npos) continue;
        header.dtype = k.dtype;
        header.swapped = word[0] == '>' && size_of(k.dtype) > 1;
        return;
      }
    }
    std::string clean;
    for (const char c : word.substr(0, 20)) clean += c >= ' ' && c <= '~' ? c : '?';
    refuse(name_,
           fmt::format("its type '{}' is none of bool, int8 to int64, uint8, float16 to float64, complex64, "
                       "complex128. Convert it with astype before saving.",
                       clean));
  }

  void read_shape(Header& header) {
    expect('(');
    while (!accept(')')) {
      accept(' ');
      int64_t size = 0;
      const char* from = text_.data() + std::min(at_, text_.size());
      const auto [end, error] = std::from_chars(from, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) refuse_header();
      if (header.sizes.size() == kMaxDims) refuse(name_, fmt::format("it has more than {} dimensions.", kMaxDims));
      header.sizes.push_back(size);
      at_ += static_cast<std::size_t>(end - from);
      accept('L');  // Python 2's long numbers
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
};

/// Returns the offset of the elements and the text of the header.
std::pair<std::size_t, std::string_view> split(std::span<const std::byte> file, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic) || file.size() < 10) {
    refuse(name,
           fmt::format("it has {} bytes and does not begin as a .npy file. Is this the right file?", file.size()));
  }
  const int major = static_cast<int>(file[6]);
  if (major < 1 || major > 3) refuse(name, fmt::format("it has version {}; versions 1 to 3 are read.", major));
  const std::size_t begin = major == 1 ? 10 : 12;
  if (file.size() < begin) refuse(name, fmt::format("it is truncated after {} bytes.", file.size()));
  const std::size_t length =
      major == 1 ? io::little_endian<std::uint16_t>(file, 8) : io::little_endian<std::uint32_t>(file, 8);
  if (length > file.size() - begin) {
    refuse(name,
           fmt::format("it is truncated: its header needs {} bytes, the file has {}.", begin + length, file.size()));
  }
  return {begin + length, text.substr(begin, length)};
}

std::size_t promised_bytes(const Header& header, const std::string& name) {
  std::size_t bytes = static_cast<std::size_t>(size_of(header.dtype));
  bool overflows = false;
  for (const int64_t s : header.sizes) {
    if (s > 0) overflows |= __builtin_mul_overflow(bytes, static_cast<std::size_t>(s), &bytes);
  }
  if (overflows || bytes > static_cast<std::size_t>(INT64_MAX)) {
    refuse(name, fmt::format("its sizes {} are more than any file holds. It is damaged.", to_string(header.sizes)));
  }
  return header.sizes.numel() == 0 ? 0 : bytes;
}

void swap_elements(std::byte* data, int64_t count, std::size_t width) {
  for (int64_t i = 0; i < count; ++i)
    std::reverse(data + static_cast<std::size_t>(i) * width, data + (static_cast<std::size_t>(i) + 1) * width);
}

/// A Fortran-ordered array is the transpose of a row-major one with its sizes in reverse.
Tensor in_file_order(const Header& header, std::byte* data, std::shared_ptr<void> keeper) {
  const TensorOptions options{.dtype = header.dtype};
  const auto release = [keeper = std::move(keeper)] {};
  if (!header.fortran_order || header.sizes.size() < 2) return from_blob(data, header.sizes, options, release);
  Shape strides = header.sizes;
  int64_t stride = 1;
  for (int d = 0; d < header.sizes.size(); ++d) {
    strides[d] = stride;
    stride *= header.sizes[d];
  }
  return from_blob(data, header.sizes, strides, options, release).contiguous();
}

}  // namespace

Tensor parse_npy(const io::FileBytes& file, const std::string& name) {
  const auto [begin, text] = split(file.data, name);
  const Header header = HeaderReader(text, name).read();
  const std::size_t expected = promised_bytes(header, name), actual = file.data.size() - begin;
  if (actual != expected) {
    refuse(name, fmt::format("shape {} of {} needs {} bytes after the header, the file has {}: it {}.",
                             to_string(header.sizes), name_of(header.dtype), expected, actual,
                             actual < expected ? "is truncated" : "has trailing bytes"));
  }
  if (expected == 0) return empty(header.sizes, {.dtype = header.dtype});
  std::byte* data = file.data.data() + begin;
  if (header.dtype == kBool && std::any_of(data, data + expected, [](std::byte b) { return b > std::byte{1}; })) {
    refuse(name, "one of its booleans is neither 0 nor 1. It is damaged.");
  }
  const auto width = static_cast<std::size_t>(size_of(header.dtype));
  if (!header.swapped && reinterpret_cast<std::uintptr_t>(data) % width == 0) {
    return in_file_order(header, data, file.keeper);
  }
  auto copy = std::make_shared<std::vector<std::byte>>(data, data + expected);
  if (header.swapped) {
    const auto number = static_cast<std::size_t>(size_of(real_type_of(header.dtype)));
    swap_elements(copy->data(), static_cast<int64_t>(expected / number), number);
  }
  return in_file_order(header, copy->data(), copy);
}

std::string npy_header(const Tensor& tensor) {
  const auto kind =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& k) { return k.dtype == tensor.dtype(); });
  if (kind == std::end(kKinds)) {
    throw DTypeError(fmt::format("[npy] NumPy has no {}. Save it as float32.", name_of(tensor.dtype())));
  }
  std::string shape;
  for (const int64_t s : tensor.sizes()) shape += fmt::format("{}, ", s);
  if (tensor.dim() > 1) shape.resize(shape.size() - 2);
  if (tensor.dim() == 1) shape.pop_back();
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 size_of(kind->dtype) > 1 ? '<' : '|', kind->code, shape);
  // The elements begin at a multiple of 64.
  text.resize((text.size() + 11 + kAlignment - 1) / kAlignment * kAlignment - 11, ' ');
  text += '\n';
  std::string out(kMagic);
  out += '\1';
  out += '\0';
  io::put_little_endian(out, static_cast<std::uint16_t>(text.size()));
  return out + text;
}

}  // namespace levin::data::detail
