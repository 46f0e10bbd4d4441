#pragma once
// A network as a list: the operations recorded for a batch, and its modules with their sizes.

#include <levin/nn/module.h>

#include <string>
#include <vector>

namespace levin {

/// The operations that computed a tensor, in topological order.
struct ModelGraph {
  /// One operation, or a leaf such as a parameter.
  struct Node {
    std::string name;                 ///< "relu_3"; for a parameter its name: "fc1.weight"
    std::string op;                   ///< "relu", "Parameter", or "Leaf" for another leaf
    std::vector<std::string> inputs;  ///< names
    Shape shape;                      ///< shape of its (first) output
  };
  std::vector<Node> nodes;  ///< inputs come before what is computed from them
};

/// Reads the autograd graph of `output`, which a module computed with gradients enabled. Throws ValueError if nothing
/// was recorded.
ModelGraph trace_graph(const nn::Module& module, const Tensor& output);

/// One row of the table of a network's modules: `name` and `type` as "encoder.fc1" and "Linear", the number of elements
/// of its `parameters` and of the `trainable` ones, with all submodules.
struct ModuleRow {
  std::string name, type;
  int depth = 1;  ///< 1 for children of the network
  std::int64_t parameters = 0, trainable = 0;
};
/// Returns the rows of all submodules down to `max_depth` (-1 for all), in the order of named_modules().
std::vector<ModuleRow> module_rows(const nn::Module& module, int max_depth = 1);

}  // namespace levin
