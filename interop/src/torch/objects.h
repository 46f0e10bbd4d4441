#pragma once
// The classes and functions that a pickle of torch.save may name, and the tensors that they build.

#include "pickle.h"

#include <levin/core/io/bytes.h>
#include <levin/core/io/zip.h>
#include <levin/interop/torch_file.h>

#include <unordered_map>
#include <unordered_set>

namespace levin::interop::detail {

/// Returns a member's content. With `lazily` the checksum of a stored one is not verified, and neither is one of 0,
/// which torch.serialization.set_crc32_options(False) writes.
io::FileBytes record_content(const io::FileBytes& file, const io::ZipMember& member, const std::string& what,
                             bool lazily);

/// PyTorch's storage class of a type, without "torch.": "FloatStorage".
std::string_view storage_class_of(DType dtype);

class TorchObjects : public PickleObjects {
 public:
  /// `members` are those of the archive `file`; the storages' names in it begin with `folder`.
  TorchObjects(const io::FileBytes& file, const std::vector<io::ZipMember>& members, const std::string& folder,
               const std::string& what, const LoadTorchOptions& options);

  Node global(std::string name) override;
  Node call(const std::string& name, const NodeIds& arguments, const PickleDocument& document) override;
  Node persistent(const Node& id, const PickleDocument& document) override;
  bool any_class() const override { return options_.any_class; }

 private:
  struct Layout {
    DType dtype = DType::f32;
    std::int64_t offset = 0;
    Shape sizes, strides;
  };

  Tensor rebuild_tensor(const NodeIds& arguments, const PickleDocument& document, bool with_dtype);
  Node rebuild_parameter(const NodeIds& arguments, const PickleDocument& document) const;
  Layout layout_of(const StorageNode& storage, const NodeIds& arguments, const PickleDocument& document,
                   bool with_dtype) const;
  bool is_empty(const Layout& layout) const;
  void check_extent(const Layout& layout, std::int64_t bytes) const;
  [[noreturn]] void refuse_type(std::string_view type) const;
  void check_booleans(const Tensor& bytes);
  const Tensor& storage_bytes(const std::string& key);
  Tensor read_storage(const std::string& key) const;

  const io::FileBytes& file_;
  const std::string& what_;
  const LoadTorchOptions& options_;
  std::unordered_map<std::string, const io::ZipMember*> records_;
  std::unordered_map<std::string, Tensor> storages_;
  std::unordered_set<const Storage*> checked_booleans_;
};

}  // namespace levin::interop::detail
