#include "model.h"

#include <levin/core/error.h>
#include <levin/interop/protobuf.h>

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace levin::interop::onnx {

namespace {

constexpr std::array kTypeNumbers = {11, 1, 10, 16, 7, 6, 5, 3, 2, 9};  // in the order of DType

ProtoMessage tensor_message(const std::string& name, const Tensor& t) {
  const Tensor host = t.detach().cpu().contiguous();
  ProtoMessage m;
  for (const int64_t size : host.sizes()) m.integer(1, size);
  m.integer(2, type_number(host.dtype()));
  if (!name.empty()) m.bytes(8, name);
  const auto bytes = static_cast<std::size_t>(host.numel() * size_of(host.dtype()));
  m.bytes(9, {static_cast<const char*>(bytes > 0 ? host.raw_data() : ""), bytes});
  return m;
}

ProtoMessage attribute_message(const Attribute& a) {
  ProtoMessage m;
  m.bytes(1, a.name);
  switch (a.type) {
    case Attribute::Type::real:
      m.fixed32(2, a.real);
      break;
    case Attribute::Type::integer:
      m.integer(3, a.integer);
      break;
    case Attribute::Type::text:
      m.bytes(4, a.text);
      break;
    case Attribute::Type::tensor:
      m.message(5, tensor_message("", a.tensor));
      break;
    case Attribute::Type::integers:
      for (const std::int64_t i : a.integers) m.integer(8, i);
      break;
    case Attribute::Type::texts:
      for (const std::string& t : a.texts) m.bytes(9, t);
      break;
    default:
      break;  // others are read only
  }
  return m.integer(20, static_cast<int>(a.type));
}

ProtoMessage node_message(const Node& n) {
  ProtoMessage m;
  for (const std::string& i : n.inputs) m.bytes(1, i);
  for (const std::string& o : n.outputs) m.bytes(2, o);
  m.bytes(3, n.name).bytes(4, n.op);
  for (const Attribute& a : n.attributes) m.message(5, attribute_message(a));
  if (!n.domain.empty()) m.bytes(7, n.domain);
  return m;
}

ProtoMessage value_message(const Value& v) {
  ProtoMessage shape;
  for (const Dim& d : v.sizes) {
    ProtoMessage size;
    if (d.size >= 0)
      size.integer(1, d.size);
    else
      size.bytes(2, d.name);
    shape.message(1, size);
  }
  ProtoMessage tensor, type, m;
  tensor.integer(1, type_number(v.dtype)).message(2, shape);
  type.message(1, tensor);
  return m.bytes(1, v.name).message(2, type);
}

ProtoMessage graph_message(const Graph& g) {
  ProtoMessage m;
  for (const Node& n : g.nodes) m.message(1, node_message(n));
  m.bytes(2, g.name);
  for (const auto& [name, t] : g.initializers) m.message(5, tensor_message(name, t));
  for (const Value& v : g.inputs) m.message(11, value_message(v));
  for (const Value& v : g.outputs) m.message(12, value_message(v));
  return m;
}

}  // namespace

double decimal_of(float v) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, v).ptr;
  double number = 0;
  std::from_chars(text, end, number);
  return number;
}

int type_number(DType t) {
  if (is_complex(t))
    throw DTypeError(fmt::format("[onnx] {} tensors cannot be exported. Use view_as_real(x).", name_of(t)));
  return kTypeNumbers[static_cast<std::size_t>(t)];
}

std::string encode(const Model& model) {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  std::int64_t bytes = 0;
  for (const auto& [name, t] : model.graph.initializers) bytes += t.numel() * size_of(t.dtype());
  if (bytes >= most - (1 << 24))
    throw ValueError(
        fmt::format("[onnx] the parameters have {} bytes, but an ONNX file holds less than 2 GiB. Export "
                    "the network in parts, or in 16-bit floats.",
                    bytes));
  ProtoMessage m, opset;
  opset.bytes(1, "").integer(2, model.opset);
  m.integer(1, model.ir_version).bytes(2, model.producer).message(7, graph_message(model.graph)).message(8, opset);
  return m.text();
}

namespace {

std::string type_text(const Value& v) {
  std::string text(name_of(v.dtype));
  if (!v.shaped) return text;
  text += "[";
  for (std::size_t i = 0; i < v.sizes.size(); ++i)
    text += (i > 0 ? ", " : "") + (v.sizes[i].size >= 0 ? std::to_string(v.sizes[i].size) : v.sizes[i].name);
  return text + "]";
}

std::string attribute_text(const Attribute& a) {
  switch (a.type) {
    case Attribute::Type::real:
      return fmt::format("{}={}", a.name, a.real);
    case Attribute::Type::integer:
      return fmt::format("{}={}", a.name, a.integer);
    case Attribute::Type::text:
      return fmt::format("{}=\"{}\"", a.name, a.text);
    case Attribute::Type::integers:
      return fmt::format("{}=[{}]", a.name, fmt::join(a.integers, ", "));
    case Attribute::Type::texts:
      return fmt::format("{}=[{}]", a.name, fmt::join(a.texts, ", "));
    case Attribute::Type::reals:
      return fmt::format("{}=[{}]", a.name, fmt::join(a.reals, ", "));
    case Attribute::Type::tensor:
      return fmt::format("{}={}{}", a.name, name_of(a.tensor.dtype()), to_string(a.tensor.sizes()));
    default:
      return a.name;
  }
}

}  // namespace

std::string to_text(const Model& model) {
  const Graph& g = model.graph;
  const auto values = [](const std::vector<Value>& list) {
    std::string text;
    for (const Value& v : list) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", type_text(v), v.name);
    return text;
  };
  std::string text =
      fmt::format("{} (opset {}): ({}) => ({})\n", g.name, model.opset, values(g.inputs), values(g.outputs));
  for (const auto& [name, t] : g.initializers)
    text += fmt::format("  {} {} {}\n", name_of(t.dtype()), to_string(t.sizes()), name);
  for (const Node& n : g.nodes) {
    std::string attributes;
    for (const Attribute& a : n.attributes) attributes += (attributes.empty() ? "" : ", ") + attribute_text(a);
    text += fmt::format("  {} = {}{}({})\n", fmt::join(n.outputs, ", "), n.op,
                        attributes.empty() ? "" : "<" + attributes + ">", fmt::join(n.inputs, ", "));
  }
  return text;
}

}  // namespace levin::interop::onnx
