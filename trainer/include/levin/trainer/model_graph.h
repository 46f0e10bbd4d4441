#pragma once
// A network as a list: its operations as a batch ran through them, and its modules with their sizes.

#include <levin/nn/module.h>

#include <string>
#include <vector>

namespace levin {

/// The operations that made a tensor, inputs before those who use them.
struct ModelGraph {
  struct Node {
    std::string name;                 ///< "relu_3"; of a parameter, its name: "fc1.weight"
    std::string op;                   ///< "relu", or "Parameter"
    std::vector<std::string> inputs;  ///< names
    Shape shape;                      ///< of its (first) output
  };
  std::vector<Node> nodes;
};

/// Reads the recorded graph behind `output`, which a module computed with gradients on. Throws ValueError where nothing
/// was recorded.
ModelGraph trace_graph(const nn::Module& module, const Tensor& output);

/// A line of the table of a network's modules.
struct ModuleRow {
  std::string name, type;
  int depth = 1;
  std::int64_t parameters = 0, trainable = 0;
};
std::vector<ModuleRow> module_rows(const nn::Module& module, int max_depth = 1);

}  // namespace levin
