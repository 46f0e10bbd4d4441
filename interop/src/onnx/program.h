#pragma once
// A forward pass as a list of steps. It is traced at two batch sizes; numbers that differ between the two traces are
// linear functions of the batch size.

#include <levin/autograd/trace.h>
#include <levin/nn/module.h>

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace levin::interop::onnx {

/// slope * batch size + offset
struct Extent {
  int64_t slope = 0, offset = 0;

  bool fixed() const { return slope == 0; }
  friend bool operator==(const Extent&, const Extent&) = default;
};
using Extents = std::vector<Extent>;

enum class Origin { input, parameter, constant, step };

struct ProgramValue {
  Origin origin = Origin::step;
  Tensor tensor{};  ///< of parameters and constants; while tracing, of all values
  Extents sizes{};
  DType dtype = DType::f32;
  std::string name{};  ///< of parameters
};

struct Step {
  const char* op;
  std::vector<int> inputs{}, outputs{};  ///< numbers of values; -1 for absent ones
  std::map<std::string, std::variant<Extents, double>> attributes{};
};

struct Program {
  std::vector<ProgramValue> values;
  std::vector<Step> steps;
  std::vector<int> inputs, outputs;
};

using Forward = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
using Knows = std::function<bool(const TracedOperation&)>;

/// Inputs of one batch size each; equal for both if the program does not depend on the batch size.
using TwoBatches = std::array<std::vector<Tensor>, 2>;

/// The batch sizes of the two traces.
inline constexpr std::array<int64_t, 2> kTracedBatches{2, 3};

/// Traces forward with both lists of inputs. Parameters and buffers get the names of `module`, which may be null.
/// Throws ValueError that names the operation if the two traces differ in more than sizes, or if an operation cannot be
/// traced.
Program trace_program(const Forward& forward, const TwoBatches& inputs, const nn::Module* module, const Knows& knows);

}  // namespace levin::interop::onnx
