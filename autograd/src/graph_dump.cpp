#include <levin/autograd/graph_dump.h>

#include <levin/autograd/node.h>

#include <fmt/format.h>

#include <map>
#include <vector>

namespace levin {

namespace {

struct Line {
  const Node* node;
  std::vector<std::size_t> inputs;
};

/// Lists the nodes below y breadth first.
std::vector<Line> listed(const Tensor& y) {
  std::vector<Line> lines;
  std::map<const Node*, std::size_t> numbers;
  const auto number = [&](const NodePtr& node) {
    const auto [place, added] = numbers.try_emplace(node.get(), lines.size());
    if (added) lines.push_back({node.get(), {}});
    return place->second;
  };
  if (const Edge start = gradient_edge(y)) number(start.node);
  for (std::size_t i = 0; i < lines.size(); ++i)
    for (const Edge& edge : lines[i].node->edges) {
      if (!edge) continue;
      const std::size_t input = number(edge.node);
      lines[i].inputs.push_back(input);
    }
  return lines;
}

const char* label(const Node& node) { return node.accumulates ? "leaf" : node.name(); }
std::string sizes(const Node& node) {
  return node.outputs.empty() ? std::string("()") : to_string(node.outputs[0].sizes);
}

}  // namespace

std::string graph_text(const Tensor& y) {
  std::string text;
  const std::vector<Line> lines = listed(y);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& [node, inputs] = lines[i];
    text += fmt::format("{} {} {}{}{}\n", i, label(*node), sizes(*node), inputs.empty() ? "" : " <- ",
                        fmt::join(inputs, ", "));
  }
  return text;
}

std::string graph_dot(const Tensor& y) {
  std::string text = "digraph gradients {\n  node [shape=box, fontname=monospace];\n";
  const std::vector<Line> lines = listed(y);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& [node, inputs] = lines[i];
    text += fmt::format("  n{} [label=\"{}\\n{}\"{}];\n", i, label(*node), sizes(*node),
                        node->accumulates ? ", style=filled" : "");
    for (const std::size_t input : inputs) text += fmt::format("  n{} -> n{};\n", i, input);
  }
  return text + "}\n";
}

}  // namespace levin
