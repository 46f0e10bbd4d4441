// The archive of torch.save: <folder>/data.pkl, one record <folder>/data/<key> per storage, <folder>/byteorder, and
// small records that say nothing about the values.

#include <levin/core/error.h>
#include <levin/interop/torch_file.h>

#include "objects.h"

#include <fmt/format.h>

#include <algorithm>

namespace levin::interop {

using detail::refuse_damage;
using detail::refuse_file;

namespace {

constexpr std::string_view kPickle = "data.pkl";
constexpr std::uint64_t kMostPickleBytes = std::uint64_t{256} << 20;
// A pickle of the number 0x1950a86a20f9469cfc6c, with which files began before PyTorch 1.6.
constexpr std::string_view kLegacy("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14);
constexpr std::size_t kTarMark = 257;

/// Throws for a file that is no zip archive, with the remedy for what it seems to be.
void check_kind(std::span<const std::byte> file, const std::string& what) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.starts_with("PK")) return;
  if (text.starts_with(kLegacy) || (text.size() > kTarMark && text.substr(kTarMark).starts_with("ustar"))) {
    refuse_file(what, "has the format of torch.save before PyTorch 1.6. Convert it in Python: "
                      "torch.save(torch.load(f, weights_only=True), g).");
  }
  if (text.size() > 8 && text[8] == '{') refuse_file(what, "is no file of torch.save. Read it with load_safetensors.");
  refuse_file(what,
              fmt::format("is no file of torch.save: its {} bytes do not begin as a zip archive's.", file.size()));
}

struct Archive {
  std::vector<io::ZipMember> members;
  std::string folder;  ///< with the slash
  const io::ZipMember* find(const std::string& name) const {
    const auto m = std::find_if(members.begin(), members.end(), [&](const auto& x) { return x.name == folder + name; });
    return m == members.end() ? nullptr : &*m;
  }
};

Archive open_archive(std::span<const std::byte> file, const std::string& what) {
  Archive archive{io::zip_members(file, what), {}};
  for (const io::ZipMember& m : archive.members) {
    const std::size_t slash = m.name.find('/');
    if (slash == std::string::npos || m.name.substr(slash + 1) != kPickle) continue;
    if (!archive.folder.empty()) refuse_damage(what, "it has two pickles");
    archive.folder = m.name.substr(0, slash + 1);
  }
  if (archive.folder.empty()) refuse_file(what, "is an archive without a data.pkl, so torch.save did not write it.");
  if (archive.find("constants.pkl"))
    refuse_file(what, "is a TorchScript archive, which holds code. Save its state_dict() in Python.");
  return archive;
}

void check_byte_order(const io::FileBytes& file, const Archive& archive, const std::string& what) {
  const io::ZipMember* record = archive.find("byteorder");  // since PyTorch 2.1
  if (!record) return;
  const io::FileBytes content = detail::record_content(file, *record, what, false);
  const std::string_view order(reinterpret_cast<const char*>(content.data.data()), content.data.size());
  if (order != "little")
    refuse_file(what, fmt::format("has the byte order \"{}\". Save it again on a little-endian machine.",
                                  detail::printable(order)));
}

}  // namespace

TorchValue load_torch(const std::string& path, const LoadTorchOptions& options) {
  const io::FileBytes file = options.mmap ? io::map_bytes(path) : io::read_bytes(path);
  check_kind(file.data, path);
  const Archive archive = open_archive(file.data, path);
  check_byte_order(file, archive, path);
  const io::ZipMember& record = *archive.find(std::string(kPickle));
  if (record.size > kMostPickleBytes)
    refuse_file(path, fmt::format("has a pickle of {} bytes; 256 MiB are read. Save tensors, not lists.", record.size));
  const io::FileBytes pickle = detail::record_content(file, record, path, false);
  detail::TorchObjects objects(file, archive.members, archive.folder, path, options);
  auto document = std::make_shared<const detail::PickleDocument>(detail::read_pickle(pickle.data, path, objects));
  const detail::NodeId root = document->root;
  return {std::move(document), root, {}};
}

}  // namespace levin::interop
