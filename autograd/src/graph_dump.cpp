#include <levin/autograd/graph_dump.h>

#include <levin/autograd/node.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
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

GraphMemory graph_memory(const Tensor& y) {
  const std::vector<Line> lines = listed(y);
  std::set<const Storage*> seen;
  for (const Line& line : lines)
    if (line.node->leaf) seen.insert(line.node->leaf->storage.get());
  GraphMemory memory;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Node& node = *lines[i].node;
    OperationMemory row{i, label(node), node.outputs.empty() ? Shape{} : node.outputs[0].sizes, 0};
    node.for_each_saved([&](const Tensor& t) {
      if (seen.insert(t.impl()->storage.get()).second) row.bytes += static_cast<int64_t>(t.impl()->storage->bytes());
    });
    memory.bytes += row.bytes;
    if (row.bytes > 0) memory.rows.push_back(row);
  }
  std::ranges::stable_sort(memory.rows, std::greater(), &OperationMemory::bytes);
  return memory;
}

std::string GraphMemory::text() const {
  struct Sum {
    std::string name;
    std::size_t count = 0;
    int64_t bytes = 0;
  };
  std::vector<Sum> sums;
  for (const OperationMemory& row : rows) {
    auto place = std::ranges::find(sums, row.name, &Sum::name);
    if (place == sums.end()) place = sums.insert(sums.end(), {row.name});
    ++place->count;
    place->bytes += row.bytes;
  }
  std::ranges::stable_sort(sums, std::greater(), &Sum::bytes);
  std::string text = fmt::format("{:<28} {:>6} {:>16}\n", "operation", "count", "saved bytes");
  for (const Sum& s : sums) text += fmt::format("{:<28} {:>6} {:>16}\n", s.name, s.count, s.bytes);
  return text + fmt::format("{:<28} {:>6} {:>16}\n", "all", rows.size(), bytes);
}

}  // namespace levin
