#pragma once
// The parts of ONNX files (onnx.ai, onnx.proto) that are written and read here.

#include <levin/core/io.h>
#include <levin/core/tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace levin::interop::onnx {

struct Attribute {
  enum class Type {
    none = 0,
    real = 1,
    integer = 2,
    text = 3,
    tensor = 4,
    graph = 5,
    reals = 6,
    integers = 7,
    texts = 8
  };

  Attribute() = default;
  Attribute(std::string n, double v) : name(std::move(n)), type(Type::real), real(static_cast<float>(v)) {}
  Attribute(std::string n, std::int64_t v) : name(std::move(n)), type(Type::integer), integer(v) {}
  Attribute(std::string n, int v) : Attribute(std::move(n), std::int64_t{v}) {}
  Attribute(std::string n, const char* v) : name(std::move(n)), type(Type::text), text(v) {}
  Attribute(std::string n, Tensor v) : name(std::move(n)), type(Type::tensor), tensor(std::move(v)) {}
  Attribute(std::string n, std::vector<std::int64_t> v)
      : name(std::move(n)), type(Type::integers), integers(std::move(v)) {}

  std::string name;
  Type type = Type::none;
  float real = 0;
  std::int64_t integer = 0;
  std::string text;
  Tensor tensor;
  std::vector<float> reals;
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
};

struct Node {
  std::string op, domain, name;
  std::vector<std::string> inputs, outputs;  ///< an absent optional one is empty
  std::vector<Attribute> attributes;
};

/// A size that is known, or named.
struct Dim {
  std::int64_t size = -1;
  std::string name{};
};

struct Value {
  std::string name;
  DType dtype = DType::f32;
  std::vector<Dim> sizes;
  bool shaped = true;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<std::pair<std::string, Tensor>> initializers;
  std::vector<Value> inputs, outputs;
};

struct Model {
  std::int64_t ir_version = 8;
  std::int64_t opset = 17;  ///< of the default domain
  std::string producer;
  Graph graph;
};

/// Returns the number whose shortest decimal is that of v: 0.1 for 0.1f.
double decimal_of(float v);

/// Numbers of ONNX's TensorProto.DataType.
int type_number(DType t);

/// Returns the bytes of the file. Throws ValueError above 2 GiB.
std::string encode(const Model& model);
/// Parses the bytes of a file; `what` names it in errors. Throws IoError for a file that is damaged, or holds something
/// that is not read here: data in other files, types of elements that Levin has not, functions.
Model decode(std::span<const std::byte> data, const std::string& what);

/// Returns the graph as text, one line for each node.
std::string to_text(const Model& model);

}  // namespace levin::interop::onnx
