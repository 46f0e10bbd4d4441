#pragma once
// Runs the operators of ONNX by operations of Levin.

#include "model.h"

#include <span>
#include <string_view>

namespace levin::interop::onnx {

using Tensors = std::vector<Tensor>;

/// A node and its inputs, as a row sees them. Shapes and lists of numbers are int64 tensors on the CPU; others are
/// moved to the device of the data.
class Call {
 public:
  Call(const Node& node, Tensors inputs, std::int64_t opset);

  std::int64_t opset() const { return opset_; }
  std::size_t inputs() const { return inputs_.size(); }
  std::size_t outputs() const { return node_.outputs.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i].defined(); }
  /// Throws ValueError for an input that is absent.
  Tensor operator[](std::size_t i) const;
  /// Input i if it is there, else an undefined tensor.
  Tensor or_none(std::size_t i) const { return has(i) ? (*this)[i] : Tensor(); }
  std::vector<std::int64_t> list(std::size_t i) const;
  std::int64_t number(std::size_t i) const;

  const Attribute* find(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  double real(std::string_view name, double otherwise) const;
  std::string_view text(std::string_view name, std::string_view otherwise) const;
  std::vector<std::int64_t> integers(std::string_view name, std::vector<std::int64_t> otherwise = {}) const;
  /// `count` numbers, all `otherwise` if the attribute is absent; throws ValueError for another number of them.
  std::vector<std::int64_t> integers_of(std::string_view name, std::size_t count, std::int64_t otherwise) const;
  /// A list that was an attribute and became input i in a later version; empty if it is absent.
  std::vector<std::int64_t> list_or_attribute(std::size_t i, std::string_view name) const;
  /// An axis of x, counted from the front.
  int axis(std::string_view name, std::int64_t otherwise, int dims) const;

  [[noreturn]] void refuse(const std::string& why) const;

 private:
  const Node& node_;
  Tensors inputs_;
  std::int64_t opset_;
  Device device_ = kCpu;
};

struct ImportRow {
  const char* op;
  int since;  ///< the oldest operator set whose form of the operator is read
  Tensors (*run)(const Call&);
  /// Returns what of this node is not supported, or null.
  const char* (*refuses)(const Node&) = nullptr;
};

/// Returns null for an operator without a row.
const ImportRow* find_import_row(std::string_view op);

std::span<const ImportRow> elementwise_import_rows();
std::span<const ImportRow> shape_import_rows();
std::span<const ImportRow> reduction_import_rows();
std::span<const ImportRow> layer_import_rows();
std::span<const ImportRow> index_import_rows();
std::span<const ImportRow> image_import_rows();

}  // namespace levin::interop::onnx
