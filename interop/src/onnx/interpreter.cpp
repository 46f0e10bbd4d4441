#include "interpreter.h"

#include <levin/autograd/ops/elementwise.h>
#include <levin/core/error.h>

#include <fmt/format.h>

#include <unordered_map>

namespace levin::interop::onnx {

const ImportRow* find_import_row(std::string_view op) {
  static const std::unordered_map<std::string_view, const ImportRow*> rows = [] {
    std::unordered_map<std::string_view, const ImportRow*> map;
    for (const auto list : {elementwise_import_rows(), shape_import_rows(), reduction_import_rows(),
                            layer_import_rows(), index_import_rows(), image_import_rows()})
      for (const ImportRow& row : list) map.emplace(row.op, &row);
    return map;
  }();
  const auto found = rows.find(op);
  return found == rows.end() ? nullptr : found->second;
}

Call::Call(const Node& node, Tensors inputs, std::int64_t opset)
    : node_(node), inputs_(std::move(inputs)), opset_(opset) {
  for (const Tensor& t : inputs_)
    if (t.defined() && t.device() != kCpu) device_ = t.device();
}

void Call::refuse(const std::string& why) const {
  throw ValueError(fmt::format("[OnnxModel] node \"{}\" ({}) cannot run: {}. Check the inputs of the network.",
                               node_.name, node_.op, why));
}

Tensor Call::operator[](std::size_t i) const {
  if (!has(i)) refuse(fmt::format("it has no input {}", i));
  return inputs_[i].to(device_);
}

std::vector<std::int64_t> Call::list(std::size_t i) const {
  if (!has(i)) refuse(fmt::format("it has no input {}", i));
  return inputs_[i].to_vector<std::int64_t>();
}

std::int64_t Call::number(std::size_t i) const {
  const auto values = list(i);
  if (values.size() != 1) refuse(fmt::format("input {} has {} numbers instead of one", i, values.size()));
  return values[0];
}

const Attribute* Call::find(std::string_view name) const {
  for (const Attribute& a : node_.attributes)
    if (a.name == name) return &a;
  return nullptr;
}

std::int64_t Call::integer(std::string_view name, std::int64_t otherwise) const {
  const Attribute* a = find(name);
  return a ? a->integer : otherwise;
}

double Call::real(std::string_view name, double otherwise) const {
  const Attribute* a = find(name);
  if (!a) return otherwise;
  // Attributes are float32. The shortest decimal is the number that was meant, which float64 networks need.
  return decimal_of(a->real);
}

std::string_view Call::text(std::string_view name, std::string_view otherwise) const {
  const Attribute* a = find(name);
  return a ? std::string_view(a->text) : otherwise;
}

std::vector<std::int64_t> Call::integers(std::string_view name, std::vector<std::int64_t> otherwise) const {
  const Attribute* a = find(name);
  return a ? a->integers : otherwise;
}

std::vector<std::int64_t> Call::integers_of(std::string_view name, std::size_t count, std::int64_t otherwise) const {
  const Attribute* a = find(name);
  if (!a || (a->integers.empty() && count > 0)) return std::vector<std::int64_t>(count, otherwise);
  if (a->integers.size() != count)
    refuse(fmt::format("{} has {} numbers instead of {}", name, a->integers.size(), count));
  return a->integers;
}

std::vector<std::int64_t> Call::list_or_attribute(std::size_t i, std::string_view name) const {
  return has(i) ? list(i) : integers(name);
}

int Call::axis(std::string_view name, std::int64_t otherwise, int dims) const {
  return wrap_axis(integer(name, otherwise), dims, "OnnxModel");
}

}  // namespace levin::interop::onnx
