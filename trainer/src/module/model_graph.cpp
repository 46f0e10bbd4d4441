#include <levin/trainer/model_graph.h>

#include <levin/autograd/node.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace levin {

ModelGraph trace_graph(const nn::Module& module, const Tensor& output) {
  const Edge root = gradient_edge(output);
  if (!root)
    throw ValueError("[trace_graph] the tensor has no recorded graph. Compute it with gradients on, from parameters.");
  std::unordered_map<const TensorImpl*, std::string> parameters;
  for (const auto& [name, p] : module.named_parameters()) parameters[p.impl()] = name;

  std::vector<NodePtr> nodes{root.node};  // nodes reached so far
  std::unordered_map<const Node*, std::string> names{{root.node.get(), {}}};
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const Edge& e : nodes[i]->edges)
      if (e && names.emplace(e.node.get(), std::string()).second) nodes.push_back(e.node);
  std::sort(nodes.begin(), nodes.end(), [](const NodePtr& a, const NodePtr& b) {
    if (a->accumulates != b->accumulates) return a->accumulates;  // leaves first: created before their users
    return a->sequence() < b->sequence();
  });

  ModelGraph graph;
  std::map<std::string, int> counts;
  for (const auto& n : nodes) {
    ModelGraph::Node node;
    const auto known = n->accumulates ? parameters.find(n->leaf) : parameters.end();
    if (n->accumulates)
      node.op = known != parameters.end() ? "Parameter" : "Leaf";
    else
      node.op = n->name();
    if (known != parameters.end())
      node.name = known->second;
    else
      node.name = fmt::format("{}_{}", node.op, ++counts[node.op]);
    for (const Edge& e : n->edges)
      if (e) node.inputs.push_back(names.at(e.node.get()));
    if (n->accumulates && n->leaf)
      node.shape = n->leaf->sizes;
    else if (!n->outputs.empty())
      node.shape = n->outputs[0].sizes;
    names[n.get()] = node.name;
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

std::vector<ModuleRow> module_rows(const nn::Module& module, int max_depth) {
  std::vector<ModuleRow> rows;
  for (const auto& [name, m] : module.named_modules()) {
    const auto depth = static_cast<int>(name.empty() ? 0 : 1 + std::count(name.begin(), name.end(), '.'));
    if (depth == 0 || (max_depth >= 0 && depth > max_depth)) continue;
    ModuleRow row{name, m->type_name(), depth, m->parameter_count(), 0};
    for (const auto& [_, p] : m->named_parameters()) row.trainable += p.requires_grad() ? p.numel() : 0;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace levin
