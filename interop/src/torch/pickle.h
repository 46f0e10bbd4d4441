#pragma once
// An interpreter of Python's pickles (protocols 2 to 5, pickletools.py) that builds plain values and calls nothing.

#include <levin/core/tensor.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace levin::interop::detail {

using NodeId = std::uint32_t;
using NodeIds = std::vector<NodeId>;

/// The bytes of a storage as the file describes them.
struct StorageNode {
  Tensor bytes;      ///< uint8, (bytes)
  std::string type;  ///< "FloatStorage"
};

/// A class or function by its name. Only those that are allowed are called.
struct GlobalNode {
  std::string name;
};

/// None, bool, int, float, text; a list, tuple or set; a dictionary as key, value, key, value; and what builds tensors.
struct ListNode {
  NodeIds items;
};
struct DictNode {
  NodeIds items;
};
using Node =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, Tensor, ListNode, DictNode, GlobalNode,
                 StorageNode>;

/// All values of a pickle. They refer to each other by number, so that shared values are stored once and no nesting can
/// exhaust the stack of the thread that destroys them.
struct PickleDocument {
  std::string what;  ///< names the file in errors
  std::vector<Node> nodes;
  NodeId root = 0;
};

/// Returns the text by which a dictionary's key is known: "fc.weight", "0", "None"; nothing for what is no key.
std::optional<std::string> key_text(const Node& key);
/// Returns the text for an error: its first bytes, with ? for control characters and for bytes that are no UTF-8.
std::string printable(std::string_view text, std::size_t most = 100);
/// Checks what others rely on. Throws IoError for a nesting of more than 100, a value that contains itself, values that
/// are shared so often that walking them would not end, keys that are lists or occur twice, and storages by themselves.
void check_values(const PickleDocument& document);

/// The classes and functions that a pickle may name.
class PickleObjects {
 public:
  virtual ~PickleObjects() = default;
  /// Returns the node of a name: a GlobalNode, or a value such as a dtype. Throws IoError for one that is not allowed.
  virtual Node global(std::string name) = 0;
  /// Returns the result of `name` with the arguments; a GlobalNode stands for an object of an unknown class.
  virtual Node call(const std::string& name, const NodeIds& arguments, const PickleDocument& document) = 0;
  /// Returns the storage of a persistent id.
  virtual Node persistent(const Node& id, const PickleDocument& document) = 0;
  /// True if attributes of the objects of unknown classes are kept.
  virtual bool any_class() const = 0;
};

/// Interprets a pickle and checks its values. Throws IoError for a damaged one and for more than 16,000,000 values.
PickleDocument read_pickle(std::span<const std::byte> pickle, const std::string& what, PickleObjects& objects);

[[noreturn]] void refuse_file(const std::string& what, const std::string& how);
/// Throws "[load_torch] <what> is damaged: <how>. Use another copy of the file."
[[noreturn]] void refuse_damage(const std::string& what, const std::string& how);

}  // namespace levin::interop::detail
