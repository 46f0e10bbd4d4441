#include <levin/core/io/bytes.h>
#include <levin/interop/safetensors.h>

#include "safetensors_header.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

namespace levin::interop {
namespace {

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the limit of the format
constexpr std::size_t kLengthBytes = 8;

[[noreturn]] void damaged(const std::string& what, const std::string& how) {
  throw IoError("[safetensors] " + what + " is damaged: " + how + ". Use another copy of the file.");
}

std::uint64_t read_length(std::span<const std::byte> data) {
  std::uint64_t n = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) n = n << 8 | std::to_integer<std::uint64_t>(data[i]);
  return n;
}

/// Returns the number of bytes of the tensor. The product of the overflow check leaves out sizes of zero, since the
/// strides use that product too.
std::uint64_t checked_bytes(const TensorEntry& e, const std::string& what) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<int64_t>::max());
  auto bytes = static_cast<std::uint64_t>(size_of(e.dtype));
  for (const int64_t size : e.sizes) {
    const auto factor = static_cast<std::uint64_t>(std::max<int64_t>(size, 1));
    if (bytes > kMax / factor)
      damaged(what, "the size of tensor \"" + e.name + "\" " + to_string(e.sizes) + " overflows");
    bytes *= factor;
  }
  return e.sizes.numel() == 0 ? 0 : bytes;
}

/// Sorts the entries by their data offsets; throws unless they cover the data exactly once.
void check_coverage(std::vector<TensorEntry>& entries, std::uint64_t data_bytes, const std::string& what) {
  std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (const auto& e : entries) {
    const std::string name =
        "tensor \"" + e.name + "\" at bytes " + std::to_string(e.begin) + " to " + std::to_string(e.end);
    if (e.end < e.begin || e.end > data_bytes)
      damaged(what, name + " lies outside of the " + std::to_string(data_bytes) + " bytes of data");
    if (e.begin < at) damaged(what, name + " overlaps the tensor before it");
    if (e.begin > at) damaged(what, "no tensor owns bytes " + std::to_string(at) + " to " + std::to_string(e.begin));
    const std::uint64_t needed = checked_bytes(e, what);
    if (e.end - e.begin != needed)
      damaged(what, name + " should have " + std::to_string(needed) + " bytes for its shape " + to_string(e.sizes));
    at = e.end;
  }
  if (at != data_bytes)
    damaged(what, "its tensors end at byte " + std::to_string(at) + " of " + std::to_string(data_bytes));
}

}  // namespace

io::Bytes encode_safetensors(const StateDict& tensors, const std::map<std::string, std::string>& metadata) {
  std::vector<StateDict::Entry> order;
  std::set<std::string> names;
  for (const auto& [name, t] : tensors) {
    if (!t.defined()) throw ValueError("[safetensors] tensor \"" + name + "\" is undefined. Leave it out.");
    if (name == "__metadata__" || !names.insert(name).second)
      throw ValueError("[safetensors] the name \"" + name + "\" is taken. Give every tensor a name of its own.");
    order.emplace_back(name, t.detach().cpu().contiguous());
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    const auto sa = size_of(a.second.dtype()), sb = size_of(b.second.dtype());
    return sa != sb ? sa > sb : a.first < b.first;
  });

  Header header{{}, metadata};
  std::uint64_t at = 0;
  for (const auto& [name, t] : order) {
    const std::uint64_t end = at + static_cast<std::uint64_t>(t.numel() * size_of(t.dtype()));
    header.entries.push_back({name, t.dtype(), t.sizes(), at, end});
    at = end;
  }
  std::string text = write_header(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');

  io::Bytes out(kLengthBytes + text.size() + at);
  for (std::size_t i = 0; i < kLengthBytes; ++i) out[i] = static_cast<std::byte>(text.size() >> (8 * i));
  std::memcpy(out.data() + kLengthBytes, text.data(), text.size());
  std::byte* p = out.data() + kLengthBytes + text.size();
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& e = header.entries[i];
    if (e.end > e.begin) std::memcpy(p + e.begin, order[i].second.raw_data(), e.end - e.begin);
  }
  return out;
}

namespace {

bool is_aligned(const void* p, DType dtype) {
  return reinterpret_cast<std::uintptr_t>(p) % static_cast<std::uintptr_t>(size_of(dtype)) == 0;
}

/// Returns a tensor on the mapped bytes where `keeper` holds the mapping, else one with a copy of them.
Tensor tensor_of(const TensorEntry& e, const std::byte* bytes, const std::shared_ptr<void>& keeper) {
  if (keeper && e.end > e.begin && is_aligned(bytes, e.dtype))
    return from_blob(const_cast<std::byte*>(bytes), e.sizes, e.dtype, [keeper] {});
  Tensor t = empty(e.sizes, {.dtype = e.dtype});
  if (e.end > e.begin) std::memcpy(t.raw_data(), bytes, e.end - e.begin);
  return t;
}

Safetensors decode(std::span<const std::byte> data, const std::shared_ptr<void>& keeper, const std::string& what) {
  if (data.size() < kLengthBytes)
    damaged(what, "it has " + std::to_string(data.size()) + " bytes, too few for the header's length");
  const std::uint64_t length = read_length(data);
  if (length > kMaxHeader)
    damaged(what, "its header would have " + std::to_string(length) + " bytes, more than 100000000");
  if (length > data.size() - kLengthBytes)
    damaged(what, "its header of " + std::to_string(length) + " bytes is longer than the file of " +
                      std::to_string(data.size()));
  const std::string_view text(reinterpret_cast<const char*>(data.data()) + kLengthBytes, length);
  if (!text.starts_with('{')) damaged(what, "its header does not begin with {");

  Header header = parse_header(text, what);
  const auto body = data.subspan(kLengthBytes + length);
  check_coverage(header.entries, body.size(), what);

  Safetensors out{{}, std::move(header.metadata)};
  for (const auto& e : header.entries) {
    const Tensor t = tensor_of(e, body.data() + e.begin, keeper);
    if (e.dtype == DType::boolean) {
      const auto* p = static_cast<const std::uint8_t*>(t.raw_data());
      if (std::any_of(p, p + t.numel(), [](std::uint8_t v) { return v > 1; }))
        damaged(what, "tensor \"" + e.name + "\" of type BOOL has values other than 0 and 1");
    }
    out.tensors.merge("", {{e.name, t}});  // names are known to be unique, so no search is needed
  }
  return out;
}

}  // namespace

Safetensors decode_safetensors(std::span<const std::byte> data, const std::string& what) {
  return decode(data, nullptr, what);
}

void save_safetensors(const std::string& path, const StateDict& tensors,
                      const std::map<std::string, std::string>& metadata) {
  io::write_file(path, encode_safetensors(tensors, metadata));
}

Safetensors load_safetensors(const std::string& path, const SafetensorsOptions& options) {
  if (!options.mmap) return decode_safetensors(io::read_file(path), path);
  const io::FileBytes file = io::map_bytes(path);
  return decode(file.data, file.keeper, path);
}

}  // namespace levin::interop
