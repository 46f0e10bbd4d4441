#pragma once
// Writes a program as a graph of ONNX operators.

#include "model.h"
#include "program.h"

#include <string_view>
#include <unordered_set>

namespace levin::interop::onnx {

/// Where a row reads a step and writes nodes. Names of tensors are strings, as in ONNX.
class Lowering {
 public:
  Lowering(const Program& program, std::int64_t opset) : program_(program), opset_(opset) {}

  /// `batch_axes[i]` is the axis of input i that has the batch size, or -1.
  Graph run(const std::vector<std::string>& input_names, const std::vector<std::string>& output_names,
            const std::vector<int>& batch_axes);

  // The step
  const Step& step() const { return *step_; }
  std::int64_t opset() const { return opset_; }
  bool has(std::size_t i) const { return i < step_->inputs.size() && step_->inputs[i] >= 0; }
  /// Input i of the step.
  const ProgramValue& value(std::size_t i) const { return value_of(step_->inputs[i]); }
  const ProgramValue& result(std::size_t i = 0) const { return value_of(step_->outputs[i]); }
  std::string in(std::size_t i = 0) { return name_of_value(step_->inputs[i]); }
  /// Input i in a type, "" if it is absent.
  std::string in_as(std::size_t i, DType type);
  int rank(std::size_t i = 0) const { return static_cast<int>(value(i).sizes.size()); }
  /// Sets the name of output i.
  void set(const std::string& name, std::size_t i = 0);

  // Attributes of the step
  const Extents& extents(const char* name) const;
  int64_t integer(const char* name) const;
  double real(const char* name) const;
  std::vector<int64_t> integers(const char* name) const;
  /// Attributes that count axes from the end if they are negative.
  int64_t axis(const char* name = "axis") const;

  // Nodes
  std::string add(const char* op, std::vector<std::string> inputs, std::vector<Attribute> attributes = {});
  std::vector<std::string> add_many(const char* op, std::vector<std::string> inputs, std::size_t outputs,
                                    std::vector<Attribute> attributes = {});
  std::string cast(const std::string& x, DType type);
  /// A Constant node, which importers do not train, unlike initializers.
  std::string constant(const Tensor& t);
  std::string initializer(std::string name, const Tensor& t);
  std::string number(double v, DType type);
  /// A number that is an attribute; it may depend on the batch size.
  std::string scalar(const char* attribute, DType type);
  std::string list(const std::vector<int64_t>& values);
  /// A list of sizes; those that depend on the batch size are computed.
  std::string sizes(const Extents& values);
  std::string reshape(const std::string& x, const Extents& from, const Extents& to);
  std::string reduce(const char* op, const std::string& x, const std::vector<int64_t>& axes, bool keep);
  std::string permute(const std::string& x, const std::vector<int64_t>& order);
  /// Tensors of the type that the step computes.
  std::string binary(const char* op, const std::string& a, const std::string& b) { return add(op, {a, b}); }

  [[noreturn]] void refuse(const std::string& why = {}) const;

 private:
  const ProgramValue& value_of(int v) const { return program_.values[static_cast<std::size_t>(v)]; }
  std::string name_of_value(int v);
  std::string fresh(const char* op);
  std::string size(const Extent& e);
  std::vector<bool> needed_steps() const;
  void remove_unread_nodes();
  void name_outputs(const std::vector<std::string>& names);

  const Program& program_;
  const std::int64_t opset_;
  const Step* step_ = nullptr;
  Graph graph_;
  std::unordered_map<int, std::string> names_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, std::string> constants_;  // by type, sizes and bytes
  std::unordered_map<std::string, std::string> sizes_;      // by slope and offset
  std::unordered_map<std::string, int> counts_;
  std::pair<std::string, int> batch_source_;  // an input and its axis
  std::string batch_;                         // a list of one: the batch size, once it was needed
};

struct ExportRow {
  const char* op;
  void (*lower)(Lowering&);
  /// False for arguments that ONNX's operator has not: then the operations inside are exported.
  bool (*accepts)(const TracedOperation&) = nullptr;
};

/// Returns null for an operation without a row.
const ExportRow* find_export_row(std::string_view op);

std::span<const ExportRow> elementwise_export_rows();
std::span<const ExportRow> shape_export_rows();
std::span<const ExportRow> reduction_export_rows();
std::span<const ExportRow> layer_export_rows();
std::span<const ExportRow> index_export_rows();

}  // namespace levin::interop::onnx
