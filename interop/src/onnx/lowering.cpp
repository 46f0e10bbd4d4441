#include "lowering.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace levin::interop::onnx {

const ExportRow* find_export_row(std::string_view op) {
  static const std::unordered_map<std::string_view, const ExportRow*> rows = [] {
    std::unordered_map<std::string_view, const ExportRow*> map;
    for (const auto list : {elementwise_export_rows(), shape_export_rows(), reduction_export_rows(),
                            layer_export_rows(), index_export_rows()})
      for (const ExportRow& row : list) map.emplace(row.op, &row);
    return map;
  }();
  const auto found = rows.find(op);
  return found == rows.end() ? nullptr : found->second;
}

// The step

std::string Lowering::in_as(std::size_t i, DType type) {
  if (!has(i)) return "";
  return value(i).dtype == type ? in(i) : cast(in(i), type);
}

void Lowering::set(const std::string& name, std::size_t i) { names_[step_->outputs[i]] = name; }

const Extents& Lowering::extents(const char* name) const { return std::get<Extents>(step_->attributes.at(name)); }

std::vector<int64_t> Lowering::integers(const char* name) const {
  std::vector<int64_t> list;
  for (const Extent& e : extents(name)) {
    if (!e.fixed()) refuse(fmt::format("its {} depends on the batch size", name));
    list.push_back(e.offset);
  }
  return list;
}

int64_t Lowering::integer(const char* name) const {
  const auto& value = step_->attributes.at(name);
  if (const double* v = std::get_if<double>(&value)) return static_cast<int64_t>(*v);
  return integers(name)[0];
}

double Lowering::real(const char* name) const {
  const auto& value = step_->attributes.at(name);
  if (const double* v = std::get_if<double>(&value)) return *v;
  return static_cast<double>(integers(name)[0]);
}

int64_t Lowering::axis(const char* name) const {
  const int64_t a = integer(name);
  return a < 0 ? a + rank() : a;
}

void Lowering::refuse(const std::string& why) const {
  throw ValueError(fmt::format("[export_onnx] {} cannot be exported{}{}. Leave it out of the exported part.", step_->op,
                               why.empty() ? ", since ONNX has no operator for it" : ": ", why));
}

// Nodes

std::string Lowering::fresh(const char* op) {
  std::string base;
  for (const char* c = op; *c; ++c) base += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  std::string name;
  do name = fmt::format("{}_{}", base, ++counts_[base]);
  while (!taken_.insert(name).second);
  return name;
}

std::vector<std::string> Lowering::add_many(const char* op, std::vector<std::string> inputs, std::size_t outputs,
                                            std::vector<Attribute> attributes) {
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  Node node{op, "", {}, std::move(inputs), {}, std::move(attributes)};
  for (std::size_t i = 0; i < outputs; ++i) node.outputs.push_back(fresh(op));
  node.name = node.outputs[0];
  graph_.nodes.push_back(node);
  return node.outputs;
}

std::string Lowering::add(const char* op, std::vector<std::string> inputs, std::vector<Attribute> attributes) {
  return add_many(op, std::move(inputs), 1, std::move(attributes))[0];
}

std::string Lowering::cast(const std::string& x, DType type) {
  return add("Cast", {x}, {{"to", static_cast<std::int64_t>(type_number(type))}});
}

std::string Lowering::constant(const Tensor& t) {
  const Tensor host = t.detach().cpu().contiguous();
  const auto bytes = static_cast<std::size_t>(host.numel() * size_of(host.dtype()));
  std::string key = fmt::format("{} {} ", name_of(host.dtype()), to_string(host.sizes()));
  if (bytes > 0) key.append(static_cast<const char*>(host.raw_data()), bytes);
  std::string& name = constants_[key];
  if (name.empty()) {
    name = fresh("Constant");
    graph_.nodes.push_back({"Constant", "", name, {}, {name}, {{"value", host}}});
  }
  return name;
}

std::string Lowering::initializer(std::string name, const Tensor& t) {
  while (!taken_.insert(name).second) name += "_";
  graph_.initializers.emplace_back(name, t);
  return name;
}

std::string Lowering::number(double v, DType type) { return constant(full({}, v, {.dtype = type})); }

std::string Lowering::scalar(const char* name, DType type) {
  const auto& value = step_->attributes.at(name);
  if (const double* real = std::get_if<double>(&value)) return constant(tensor(*real, {.dtype = type}));
  const Extent e = std::get<Extents>(value)[0];
  if (e.fixed()) return constant(tensor(e.offset, {.dtype = type}));
  const std::string n = add("Squeeze", {size(e), list({0})});
  return type == kInt64 ? n : cast(n, type);
}

std::string Lowering::list(const std::vector<int64_t>& values) {
  return constant(from_data(values, {static_cast<int64_t>(values.size())}));
}

std::string Lowering::size(const Extent& e) {
  const std::string key = fmt::format("{} {}", e.slope, e.offset);
  if (const auto known = sizes_.find(key); known != sizes_.end()) return known->second;
  if (batch_.empty())
    batch_ = add("Gather", {add("Shape", {batch_source_.first}), list({batch_source_.second})}, {{"axis", 0}});
  std::string n = batch_;
  if (e.slope != 1) n = add("Mul", {n, list({e.slope})});
  if (e.offset != 0) n = add("Add", {n, list({e.offset})});
  return sizes_[key] = n;
}

std::string Lowering::sizes(const Extents& values) {
  std::vector<std::string> parts;
  std::vector<int64_t> numbers;
  const auto flush = [&] {
    if (!numbers.empty()) parts.push_back(list(std::exchange(numbers, {})));
  };
  for (const Extent& e : values) {
    if (e.fixed()) {
      numbers.push_back(e.offset);
    } else {
      flush();
      parts.push_back(size(e));
    }
  }
  if (parts.empty()) return list(numbers);
  flush();
  return parts.size() == 1 ? parts[0] : add("Concat", parts, {{"axis", 0}});
}

std::string Lowering::reshape(const std::string& x, const Extents& from, const Extents& to) {
  if (from == to) return x;
  // 0 copies the size of the same axis, and one size may be -1.
  std::vector<int64_t> target;
  int unknown = 0;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const bool copied = !to[i].fixed() && i < from.size() && from[i] == to[i];
    if (!to[i].fixed() && !copied) ++unknown;
    target.push_back(to[i].fixed() ? to[i].offset : copied ? 0 : -1);
  }
  const bool empty = std::ranges::any_of(to, [](const Extent& e) { return e.fixed() && e.offset == 0; });
  if (empty || unknown > 1) return add("Reshape", {x, sizes(to)});
  return add("Reshape", {x, list(target)});
}

std::string Lowering::reduce(const char* op, const std::string& x, const std::vector<int64_t>& axes, bool keep) {
  std::vector<Attribute> attributes{{"keepdims", keep ? 1 : 0}};
  std::vector<std::string> inputs{x};
  if (opset_ >= 18 || std::string_view(op) == "ReduceSum")  // the axes became an input in versions 13 and 18
    inputs.push_back(axes.empty() ? "" : list(axes));
  else if (!axes.empty())
    attributes.emplace_back("axes", axes);
  return add(op, inputs, attributes);
}

std::string Lowering::permute(const std::string& x, const std::vector<int64_t>& order) {
  return add("Transpose", {x}, {{"perm", order}});
}

std::string Lowering::name_of_value(int v) {
  const auto known = names_.find(v);
  if (known != names_.end()) return known->second;
  const ProgramValue& value = value_of(v);
  if (value.origin == Origin::parameter) return names_[v] = initializer(value.name, value.tensor);
  return names_[v] = constant(value.tensor);
}

// The graph

std::vector<bool> Lowering::needed_steps() const {
  std::unordered_set<int> needed(program_.outputs.begin(), program_.outputs.end());
  std::vector<bool> live(program_.steps.size());
  for (std::size_t i = program_.steps.size(); i-- > 0;) {
    const Step& s = program_.steps[i];
    live[i] = std::ranges::any_of(s.outputs, [&](int o) { return o >= 0 && needed.contains(o); });
    if (live[i]) needed.insert(s.inputs.begin(), s.inputs.end());
  }
  return live;
}

namespace {

/// "batch", "2*batch", "batch-1"
std::string size_name(const Extent& e) {
  const std::string multiple = e.slope == 1 ? "batch" : fmt::format("{}*batch", e.slope);
  return e.offset == 0 ? multiple : fmt::format("{}{:+}", multiple, e.offset);
}

}  // namespace

void Lowering::name_outputs(const std::vector<std::string>& names) {
  std::unordered_map<std::string, std::string> renamed;
  for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
    const ProgramValue& value = value_of(program_.outputs[i]);
    std::string name = name_of_value(program_.outputs[i]);
    const bool computed = std::ranges::any_of(
        graph_.nodes, [&](const Node& n) { return std::ranges::find(n.outputs, name) != n.outputs.end(); });
    if (!computed || renamed.contains(name)) name = add("Identity", {renamed.contains(name) ? renamed[name] : name});
    renamed[name] = names[i];
    Value v{names[i], value.dtype, {}};
    for (const Extent& e : value.sizes) v.sizes.push_back(e.fixed() ? Dim{e.offset} : Dim{-1, size_name(e)});
    graph_.outputs.push_back(v);
  }
  for (Node& n : graph_.nodes) {
    for (std::string& s : n.inputs)
      if (const auto r = renamed.find(s); r != renamed.end()) s = r->second;
    for (std::string& s : n.outputs)
      if (const auto r = renamed.find(s); r != renamed.end()) s = r->second;
  }
}

void Lowering::remove_unread_nodes() {
  std::unordered_set<std::string> read;
  for (const Value& v : graph_.outputs) read.insert(v.name);
  std::vector<Node> kept;
  for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
    Node& n = graph_.nodes[i];
    if (std::ranges::none_of(n.outputs, [&](const std::string& o) { return read.contains(o); })) continue;
    read.insert(n.inputs.begin(), n.inputs.end());
    kept.push_back(std::move(n));
  }
  graph_.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  std::erase_if(graph_.initializers, [&](const auto& i) { return !read.contains(i.first); });
}

Graph Lowering::run(const std::vector<std::string>& input_names, const std::vector<std::string>& output_names,
                    const std::vector<int>& batch_axes) {
  taken_.insert(input_names.begin(), input_names.end());
  taken_.insert(output_names.begin(), output_names.end());
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    const ProgramValue& value = value_of(program_.inputs[i]);
    Value v{input_names[i], value.dtype, {}};
    for (const Extent& e : value.sizes) v.sizes.push_back(e.fixed() ? Dim{e.offset} : Dim{-1, "batch"});
    graph_.inputs.push_back(v);
    names_[program_.inputs[i]] = input_names[i];
  }
  const std::vector<bool> live = needed_steps();
  if (const auto i = std::ranges::find_if(batch_axes, [](int a) { return a >= 0; }); i != batch_axes.end())
    batch_source_ = {input_names[static_cast<std::size_t>(i - batch_axes.begin())], *i};
  for (std::size_t i = 0; i < program_.steps.size(); ++i) {
    if (!live[i]) continue;
    step_ = &program_.steps[i];
    const ExportRow* row = find_export_row(step_->op);
    if (!row) refuse();
    row->lower(*this);
  }
  name_outputs(output_names);
  remove_unread_nodes();
  return std::move(graph_);
}

}  // namespace levin::interop::onnx
