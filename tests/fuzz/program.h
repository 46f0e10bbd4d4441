#pragma once
// A random computation: leaves with values and strides, and one or several operation cases that feed each other.

#include "support/ops/op_case.h"

#include <string>
#include <vector>

namespace levin::fuzz {

using test::Draw;
using test::OpCase;
using test::Sample;
using test::Tensors;

/// Values in strided memory. Memory between the elements is NaN, or 1 for integers.
struct Leaf {
  DType dtype = DType::f64;
  bool tested = true;  ///< has the type under test, not a type of its own
  bool differentiable = false;
  bool factor = false;  ///< gradients are proportional to it
  Shape sizes, strides;
  int64_t offset = 0;
  std::vector<double> memory;

  /// Returns the strided tensor.
  Tensor tensor() const;
  /// Returns the values in contiguous memory: f64 if `tested`, else of its own type.
  Tensor exact() const;
};

/// Draws values and strides for `spec`. `free` allows any values, also special ones.
Leaf draw_leaf(Draw& d, const test::InputSpec& spec, DType dtype, bool free);

/// One operation. Its inputs are values of the program: leaves first, then the first output of each step. A value of
/// another size is cut or repeated to the sample's size.
struct Step {
  const OpCase* op_case = nullptr;
  Sample sample{};
  std::vector<std::size_t> sources{};
};

struct Program {
  DType dtype = DType::f64;
  std::vector<Leaf> leaves{};
  std::vector<Step> steps{};
  std::vector<Leaf> cotangents{};  ///< of the outputs that are differentiated, in their order

  bool is_graph() const { return steps.size() > 1; }
};

/// The families of random computations.
enum class Family { single, graph };

/// Draws a program from the cases. The inputs of operations in a graph have one floating type.
Program draw_program(Draw& d, const std::vector<OpCase>& cases, Family family);

class Noise;

/// All outputs of the last step, and those of other steps that no step takes.
/// `results`, when given, gets the first output of every step.
Tensors run(const Program& p, const Tensors& leaves, bool reference, Noise* noise = nullptr,
            Tensors* results = nullptr);
/// Positions among run()'s outputs and the rules of their cases.
struct OutputRule {
  const Step* step;
  std::size_t output;
};
std::vector<OutputRule> output_rules(const Program& p, const Tensors& outputs);
bool has_reference(const Program& p);

/// Returns the program as lines of C++.
std::string to_code(const Program& p);

}  // namespace levin::fuzz
