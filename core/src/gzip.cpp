#include <levin/core/error.h>
#include <levin/core/io.h>

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace levin::io {

namespace {

constexpr std::size_t kStep = std::size_t{1} << 30;  // zlib counts in 32 bits

/// Returns a first guess of the size: the size of the last member in the gzip trailer, but no more than the data could
/// inflate to.
std::size_t guess_size(std::span<const std::byte> data) {
  std::uint32_t size = 0;
  if (data.size() >= 4) std::memcpy(&size, data.data() + data.size() - 4, 4);
  constexpr std::size_t best_ratio = 1032;
  return std::min<std::size_t>(size, data.size() * best_ratio);
}

/// Decompresses all members with one zlib stream.
class Inflater {
 public:
  explicit Inflater(const std::string& what) : what_(what) {
    if (inflateInit2(&z_, 15 + 16) != Z_OK) throw IoError(fmt::format("[gunzip] {}: zlib did not start.", what_));
  }
  ~Inflater() { inflateEnd(&z_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Bytes run(std::span<const std::byte> data, std::size_t limit) {
    Bytes out(std::min(limit, guess_size(data)) + 1);
    std::size_t in = 0, size = 0;
    for (;;) {
      if (size == out.size()) out.resize(std::min(limit + 1, out.size() * 2));
      const std::size_t give = std::min(data.size() - in, kStep), room = std::min(out.size() - size, kStep);
      z_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(data.data() + in));
      z_.avail_in = static_cast<uInt>(give);
      z_.next_out = reinterpret_cast<Bytef*>(out.data() + size);
      z_.avail_out = static_cast<uInt>(room);
      const int status = inflate(&z_, Z_NO_FLUSH);
      in += give - z_.avail_in;
      size += room - z_.avail_out;
      if (size > limit) refuse(fmt::format("it holds more than the {} bytes that are allowed", limit));
      if (status == Z_STREAM_END) {
        if (in == data.size()) break;
        inflateReset(&z_);
      } else if (status == Z_BUF_ERROR && in == data.size() && z_.avail_out > 0) {
        refuse(fmt::format("it ends early, after {} compressed bytes", data.size()));
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        refuse(fmt::format("it is damaged near byte {} ({})", in, z_.msg ? z_.msg : zError(status)));
      }
    }
    out.resize(size);
    return out;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw IoError(fmt::format("[gunzip] {}: {}. Fetch the file again.", what_, why));
  }

  z_stream z_{};
  const std::string& what_;
};

}  // namespace

Bytes gunzip(std::span<const std::byte> data, const std::string& what, std::size_t limit) {
  return Inflater(what).run(data, limit);
}

std::uint32_t crc32(std::span<const std::byte> data, std::uint32_t crc) {
  uLong value = crc;
  while (!data.empty()) {
    const auto part = data.first(std::min(data.size(), kStep));
    value = ::crc32(value, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(part.size()));
    data = data.subspan(part.size());
  }
  return static_cast<std::uint32_t>(value);
}

}  // namespace levin::io
