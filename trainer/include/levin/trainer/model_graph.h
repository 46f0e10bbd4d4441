#pragma once
// A network as a list: the operations recorded for a batch, and its modules with their sizes.

#include <levin/nn/module.h>

#include <string>
#include <vector>

namespace levin {

/// The operations that computed a tensor, in topological order.
struct ModelGraph {
  struct Node {
    std::string name;                 ///< "relu_3"; for a parameter its name: "fc1.weight"
    std::string op;                   ///< "relu", or "Parameter"
    std::vector<std::string> inputs;  ///< names
    Shape shape;                      ///< shape of its (first) output
  };
  std::vector<Node> nodes;
};

/// Reads the autograd graph of `output`, which a module computed with gradients enabled. Throws ValueError if nothing
/// was recorded.
ModelGraph trace_graph(const nn::Module& module, const Tensor& output);

/// One row of the table of a network's modules.
struct ModuleRow {
  std::string name, type;
  int depth = 1;
  std::int64_t parameters = 0, trainable = 0;
};
std::vector<ModuleRow> module_rows(const nn::Module& module, int max_depth = 1);

}  // namespace levin
