#include <levin/core/error.h>
#include <levin/core/io.h>
#include <levin/core/io/zip.h>

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

namespace levin::io {

namespace {

using View = std::span<const std::byte>;

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kLocator64 = 0x07064b50;
constexpr std::size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56, kLocatorSize = 20;
constexpr std::uint32_t kIn64 = 0xffffffff;  // marks a number that is stored in the zip64 field
constexpr std::uint64_t kMostRatio = 1032;   // the highest compression ratio of deflate

[[noreturn]] void refuse_zip(const std::string& name, const std::string& why) {
  throw IoError(fmt::format("[zip] {}: {}", name, why));
}

struct Directory {
  std::uint64_t begin = 0, size = 0, count = 0;
};

/// Finds the end record, which only a comment of up to 65535 bytes may follow.
std::size_t find_end(View file, const std::string& name) {
  if (file.size() >= kEndSize) {
    const std::size_t last = file.size() - kEndSize, first = last > 65535 ? last - 65535 : 0;
    for (std::size_t at = last + 1; at-- > first;) {
      if (little_endian<std::uint32_t>(file, at) == kEnd) return at;
    }
  }
  refuse_zip(name,
             fmt::format("none of its {} bytes begin a zip archive's end record: it is not an archive, or truncated.",
                         file.size()));
}

Directory find_directory(View file, const std::string& name) {
  const std::size_t end = find_end(file, name);
  Directory d{little_endian<std::uint32_t>(file, end + 16), little_endian<std::uint32_t>(file, end + 12),
              little_endian<std::uint16_t>(file, end + 10)};
  const bool in_64 = d.begin == kIn64 || d.size == kIn64 || d.count == 0xffff;
  if (in_64 && end >= kLocatorSize && little_endian<std::uint32_t>(file, end - kLocatorSize) == kLocator64) {
    const auto at = little_endian<std::uint64_t>(file, end - kLocatorSize + 8);
    if (at > file.size() || file.size() - at < kEnd64Size || little_endian<std::uint32_t>(file, at) != kEnd64) {
      refuse_zip(name, "its zip64 end record is not where it should be. It is damaged.");
    }
    d = {little_endian<std::uint64_t>(file, at + 48), little_endian<std::uint64_t>(file, at + 40),
         little_endian<std::uint64_t>(file, at + 32)};
  }
  if (d.begin > file.size() || d.size > file.size() - d.begin || d.count > d.size / kCentralSize) {
    refuse_zip(name, fmt::format("its directory of {} members at byte {} does not fit its {} bytes. It is damaged.",
                                 d.count, d.begin, file.size()));
  }
  return d;
}

/// Reads the numbers that did not fit 32 bits, in the order of `wanted`.
void read_zip64(View extra, std::initializer_list<std::uint64_t*> wanted, const std::string& name) {
  while (extra.size() >= 4) {
    const auto id = little_endian<std::uint16_t>(extra), size = little_endian<std::uint16_t>(extra, 2);
    if (size > extra.size() - 4) break;
    View field = extra.subspan(4, size);
    extra = extra.subspan(4 + static_cast<std::size_t>(size));
    if (id != 1) continue;
    for (std::uint64_t* number : wanted) {
      if (*number != kIn64) continue;
      if (field.size() < 8) refuse_zip(name, "a member's zip64 field is too short. It is damaged.");
      *number = little_endian<std::uint64_t>(field);
      field = field.subspan(8);
    }
    return;
  }
}

/// Finds a member's content after its local header, and checks that both lie within the file.
void locate(View file, std::uint64_t local, ZipMember& m, const std::string& name) {
  if (local > file.size() || file.size() - local < kLocalSize || little_endian<std::uint32_t>(file, local) != kLocal) {
    refuse_zip(name, fmt::format("member \"{}\" is not at byte {}. It is damaged.", m.name, local));
  }
  m.begin = local + kLocalSize + little_endian<std::uint16_t>(file, local + 26) +
            little_endian<std::uint16_t>(file, local + 28);
  if (m.begin > file.size() || m.packed > file.size() - m.begin) {
    refuse_zip(name, fmt::format("member \"{}\" of {} bytes at byte {} does not fit its {} bytes. It is truncated.",
                                 m.name, m.packed, m.begin, file.size()));
  }
  const bool sizes_fit = m.deflated ? m.size / kMostRatio <= m.packed : m.size == m.packed;
  if (!sizes_fit) {
    refuse_zip(name, fmt::format("member \"{}\" cannot hold {} bytes in {}. It is damaged.", m.name, m.size, m.packed));
  }
}

/// Reads one entry of the directory and removes it from `rest`.
ZipMember read_entry(View file, View& rest, const std::string& name) {
  if (rest.size() < kCentralSize || little_endian<std::uint32_t>(rest) != kCentral) {
    refuse_zip(name, "its directory is damaged.");
  }
  const auto flags = little_endian<std::uint16_t>(rest, 8), method = little_endian<std::uint16_t>(rest, 10);
  ZipMember m;
  m.crc = little_endian<std::uint32_t>(rest, 16);
  m.packed = little_endian<std::uint32_t>(rest, 20);
  m.size = little_endian<std::uint32_t>(rest, 24);
  std::uint64_t local = little_endian<std::uint32_t>(rest, 42);
  const std::size_t name_size = little_endian<std::uint16_t>(rest, 28),
                    extra_size = little_endian<std::uint16_t>(rest, 30);
  const std::size_t entry = kCentralSize + name_size + extra_size + little_endian<std::uint16_t>(rest, 32);
  if (entry > rest.size()) refuse_zip(name, "its directory is damaged.");
  for (const std::byte c : rest.subspan(kCentralSize, name_size)) {
    const char letter = static_cast<char>(c);
    m.name += static_cast<unsigned char>(letter) < ' ' ? '?' : letter;
  }
  read_zip64(rest.subspan(kCentralSize + name_size, extra_size), {&m.size, &m.packed, &local}, name);
  if ((flags & 1) != 0) refuse_zip(name, fmt::format("member \"{}\" is encrypted; only plain ones are read.", m.name));
  if (method != 0 && method != 8) {
    refuse_zip(name,
               fmt::format("member \"{}\" is packed by method {}; stored and deflated ones are read.", m.name, method));
  }
  m.deflated = method == 8;
  locate(file, local, m, name);
  rest = rest.subspan(entry);
  return m;
}

std::shared_ptr<Bytes> inflate_member(View packed, std::uint64_t size, const std::string& name) {
  auto out = std::make_shared<Bytes>(static_cast<std::size_t>(size));
  z_stream z{};
  if (inflateInit2(&z, -15) != Z_OK) refuse_zip(name, "zlib did not start.");
  std::size_t read = 0, written = 0;
  int status = Z_OK;
  constexpr std::size_t most = 1u << 30;  // bytes per call, within the range of zlib's counters
  while (status == Z_OK) {
    z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + read));
    z.avail_in = static_cast<uInt>(std::min(most, packed.size() - read));
    z.next_out = reinterpret_cast<Bytef*>(out->data() + written);
    z.avail_out = static_cast<uInt>(std::min(most, out->size() - written));
    const uInt in = z.avail_in, room = z.avail_out;
    status = inflate(&z, Z_NO_FLUSH);
    read += in - z.avail_in;
    written += room - z.avail_out;
    if (status == Z_BUF_ERROR || (in == z.avail_in && room == z.avail_out)) break;
  }
  inflateEnd(&z);
  if (status != Z_STREAM_END || written != out->size() || read != packed.size()) {
    refuse_zip(name, fmt::format("its compressed data is damaged after {} of {} bytes.", written, out->size()));
  }
  return out;
}

}  // namespace

std::vector<ZipMember> zip_members(View file, const std::string& name) {
  const Directory d = find_directory(file, name);
  View rest = file.subspan(static_cast<std::size_t>(d.begin), static_cast<std::size_t>(d.size));
  std::vector<ZipMember> members;
  std::uint64_t packed = 0;
  for (std::uint64_t i = 0; i < d.count; ++i) {
    members.push_back(read_entry(file, rest, name));
    packed += members.back().packed;
    if (packed > file.size()) refuse_zip(name, "its members overlap. It is damaged.");
  }
  return members;
}

FileBytes zip_content(const FileBytes& file, const ZipMember& m, const std::string& name, bool lazily) {
  const auto packed = file.data.subspan(static_cast<std::size_t>(m.begin), static_cast<std::size_t>(m.packed));
  FileBytes content{packed, file.keeper};
  if (m.deflated) {
    const auto out = inflate_member(packed, m.size, name);
    content = {*out, out};
  } else if (lazily) {
    return content;
  }
  if (crc32(content.data) != m.crc) refuse_zip(name, "its content does not match its checksum. It is damaged.");
  return content;
}

void ZipWriter::add(const std::string& name, std::string_view content) {
  const std::uint32_t crc = crc32(std::as_bytes(std::span(content)));
  const auto local = static_cast<std::uint32_t>(out_.size());
  // Pads the local header so that the content begins at a multiple of 64, where a tensor can be mapped.
  const std::size_t begin = out_.size() + kLocalSize + name.size();
  const auto padding = static_cast<std::uint16_t>((64 - (begin + 4) % 64) % 64 + 4);

  const auto put_common = [&](std::string& to, std::uint16_t extra) {
    put_little_endian<std::uint16_t>(to, 20);      // version needed
    put_little_endian<std::uint16_t>(to, 0x0800);  // names are UTF-8
    put_little_endian<std::uint16_t>(to, 0);       // stored
    put_little_endian<std::uint16_t>(to, 0);       // time
    put_little_endian<std::uint16_t>(to, 0x21);    // 1980-01-01
    put_little_endian(to, crc);
    put_little_endian(to, static_cast<std::uint32_t>(content.size()));
    put_little_endian(to, static_cast<std::uint32_t>(content.size()));
    put_little_endian(to, static_cast<std::uint16_t>(name.size()));
    put_little_endian(to, extra);
  };
  put_little_endian(out_, kLocal);
  put_common(out_, padding);
  out_ += name;
  put_little_endian<std::uint16_t>(out_, 0x4c56);  // an extra field that readers skip
  put_little_endian(out_, static_cast<std::uint16_t>(padding - 4));
  out_.append(padding - 4u, '\0');
  out_ += content;

  put_little_endian(directory_, kCentral);
  put_little_endian<std::uint16_t>(directory_, 20);
  put_common(directory_, 0);
  directory_.append(10, '\0');  // comment, disk, attributes
  put_little_endian(directory_, local);
  directory_ += name;
  ++count_;
  if (out_.size() + directory_.size() > std::numeric_limits<std::uint32_t>::max() - kEndSize || count_ == 0xffff) {
    throw ValueError("[zip] an archive of more than 4 GiB or 65534 members is not written. Write several.");
  }
}

std::string ZipWriter::finish() {
  const auto begin = static_cast<std::uint32_t>(out_.size());
  std::string all = std::move(out_) + directory_;
  put_little_endian(all, kEnd);
  put_little_endian<std::uint32_t>(all, 0);
  put_little_endian(all, count_);
  put_little_endian(all, count_);
  put_little_endian(all, static_cast<std::uint32_t>(directory_.size()));
  put_little_endian(all, begin);
  put_little_endian<std::uint16_t>(all, 0);
  return all;
}

}  // namespace levin::io
