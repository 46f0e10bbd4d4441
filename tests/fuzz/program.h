#pragma once
// A random computation: leaves with values and strides, and one operation case or several that feed each other.

#include "support/op_case.h"

#include <string>
#include <vector>

namespace levin::fuzz {

using test::Draw;
using test::OpCase;
using test::Sample;
using test::Tensors;

/// Values in strided memory. What lies between the elements is NaN, or 1 in integers.
struct Leaf {
  DType dtype = DType::f64;
  bool tested = true;  ///< of the type under test, not of a type of its own
  bool differentiable = false;
  Shape sizes, strides;
  int64_t offset = 0;
  std::vector<double> memory;

  /// The strided tensor.
  Tensor tensor() const;
  /// Its values in contiguous memory: f64 if `tested`, else of its own type.
  Tensor exact() const;
};

/// Draws values for `spec` and how they lie in memory. `free`: whether the values may be any, also special ones.
Leaf draw_leaf(Draw& d, const test::InputSpec& spec, DType dtype, bool free);

/// One operation. Its inputs are values of the program: leaves first, then the first output of each step. A value of
/// another size is cut or repeated to the size that the sample wants.
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

/// Which families of random computations there are.
enum class Family { single, graph };

/// Draws from the cases; what an operation of a graph takes are values of one floating type.
Program draw_program(Draw& d, const std::vector<OpCase>& cases, Family family);

class Noise;

/// All outputs of the last step, and those of other steps that no step takes.
/// `results`, when given, gets the first output of every step.
Tensors run(const Program& p, const Tensors& leaves, bool reference, Noise* noise = nullptr,
            Tensors* results = nullptr);
/// Places among run()'s outputs and their cases' rules.
struct OutputRule {
  const Step* step;
  std::size_t output;
};
std::vector<OutputRule> output_rules(const Program& p, const Tensors& outputs);
bool has_reference(const Program& p);

/// The program as lines of C++.
std::string to_code(const Program& p);

}  // namespace levin::fuzz
