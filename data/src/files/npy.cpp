#include <levin/core/io.h>
#include <levin/core/io/zip.h>
#include <levin/data/npy.h>

#include "npy_format.h"

#include <fmt/format.h>

#include <limits>

namespace levin::data {

namespace {

constexpr std::string_view kSuffix = ".npy";

io::FileBytes open_file(const std::string& path, const NpyOptions& options) {
  return options.mmap ? io::map_bytes(path) : io::read_bytes(path);
}

std::string npy_bytes(const Tensor& tensor) {
  const Tensor dense = tensor.cpu().contiguous();
  std::string out = detail::npy_header(dense);
  out.append(static_cast<const char*>(dense.raw_data()),
             static_cast<std::size_t>(dense.numel() * size_of(dense.dtype())));
  return out;
}

}  // namespace

Tensor load_npy(const std::string& path, const NpyOptions& options) {
  return detail::parse_npy(open_file(path, options), path);
}

void save_npy(const std::string& path, const Tensor& tensor) { io::write_file(path, npy_bytes(tensor)); }

StateDict load_npz(const std::string& path, const NpyOptions& options) {
  const io::FileBytes file = open_file(path, options);
  StateDict arrays;
  for (const io::ZipMember& member : io::zip_members(file.data, path)) {
    const std::string where = fmt::format("{}, {}", path, member.name);
    const io::FileBytes content = io::zip_content(file, member, where, options.mmap);
    std::string name = member.name;
    if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
    if (arrays.contains(name)) throw IoError(fmt::format("[npz] {}: there are two arrays \"{}\".", path, name));
    arrays.set(name, detail::parse_npy(content, where));
  }
  return arrays;
}

void save_npz(const std::string& path, const StateDict& arrays) {
  io::ZipWriter zip;
  for (const auto& [name, tensor] : arrays) {
    if (name.empty() || name.ends_with(kSuffix) || name.size() > std::numeric_limits<std::uint16_t>::max() / 2) {
      throw ValueError(fmt::format("[npz] \"{}\" cannot name an array: give a word that does not end in .npy.", name));
    }
    zip.add(name + std::string(kSuffix), npy_bytes(tensor));
  }
  io::write_file(path, zip.finish());
}

}  // namespace levin::data
