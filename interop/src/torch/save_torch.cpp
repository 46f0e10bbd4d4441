// Writes the archive that load_torch.cpp describes, with a pickle of protocol 2.

#include <levin/core/error.h>
#include <levin/core/io.h>
#include <levin/core/io/zip.h>
#include <levin/interop/torch_file.h>

#include "objects.h"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <unordered_set>

namespace levin::interop {

namespace {

class PickleWriter {
 public:
  PickleWriter() : out_("\x80\x02") { ordered_dict(), out_ += '('; }

  void tensor(const std::string& name, const Tensor& t, const std::string& key) {
    text(name);
    global("torch._utils\n_rebuild_tensor_v2");
    out_ += "((";
    text("storage");
    global("torch\n" + std::string(detail::storage_class_of(t.dtype())));
    text(key), text("cpu");
    integer(t.numel());
    out_ += "tQ";
    integer(0);
    tuple(t.sizes()), tuple(t.strides());
    out_ += '\x89';  // requires no grad
    ordered_dict();  // no hooks
    out_ += "tR";
  }
  std::string finish() { return std::move(out_) + "u."; }

 private:
  void global(const std::string& name) { out_ += 'c' + name + '\n'; }
  void ordered_dict() { global("collections\nOrderedDict"), out_ += ")R"; }
  void text(const std::string& value) {
    out_ += 'X';
    io::put_little_endian(out_, static_cast<std::uint32_t>(value.size()));
    out_ += value;
  }
  void integer(std::int64_t value) {
    out_ += "\x8a\x08";
    io::put_little_endian(out_, static_cast<std::uint64_t>(value));
  }
  void tuple(const Shape& values) {
    out_ += '(';
    for (const std::int64_t v : values) integer(v);
    out_ += 't';
  }
  std::string out_;
};

void check_entries(const StateDict& tensors) {
  std::unordered_set<std::string> names;
  for (const auto& [name, t] : tensors) {
    if (!t.defined()) throw ValueError(fmt::format("[save_torch] tensor \"{}\" is undefined. Leave it out.", name));
    if (!names.insert(name).second)
      throw ValueError(
          fmt::format("[save_torch] the name \"{}\" occurs twice. Give every tensor a name of its own.", name));
  }
}

}  // namespace

void save_torch(const std::string& path, const StateDict& tensors) {
  check_entries(tensors);
  PickleWriter pickle;
  io::ZipWriter zip;
  std::vector<Tensor> storages;
  std::map<std::tuple<const void*, DType, std::int64_t>, std::string> keys;  // of tensors with the same elements
  for (const auto& [name, t] : tensors) {
    const Tensor dense = t.detach().contiguous();
    std::string key = std::to_string(storages.size());
    if (dense.numel() > 0) key = keys.try_emplace({dense.raw_data(), dense.dtype(), dense.numel()}, key).first->second;
    if (key == std::to_string(storages.size())) storages.push_back(dense);
    pickle.tensor(name, dense, key);
  }
  zip.add("archive/data.pkl", pickle.finish());
  zip.add("archive/byteorder", "little");
  for (std::size_t i = 0; i < storages.size(); ++i) {
    const Tensor host = storages[i].cpu();
    const auto bytes = static_cast<std::size_t>(host.numel() * size_of(host.dtype()));
    zip.add("archive/data/" + std::to_string(i), {static_cast<const char*>(host.raw_data()), bytes});
  }
  zip.add("archive/version", "3\n");
  io::write_file(path, zip.finish());
}

}  // namespace levin::interop
