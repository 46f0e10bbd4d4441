#include <levin/interop/onnx.h>

#include "interpreter.h"

#include <levin/core/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

namespace levin::interop {

namespace onnx {
namespace {

/// Holds the parameters below one part of a dotted name.
class Scope : public nn::Module {
 public:
  std::map<std::string, Scope*> children;
};

/// A node whose inputs and outputs are places in a list of tensors; -1 for absent ones.
struct Instruction {
  const Node* node;
  const ImportRow* row;
  std::vector<int> inputs, outputs, last_reads;
};

}  // namespace
}  // namespace onnx

struct OnnxModel::State {
  onnx::Model model;
  std::vector<Tensor> values;  // constants and parameters; empty places are computed
  std::vector<onnx::Instruction> instructions;
  std::vector<int> inputs, outputs;
  std::vector<std::string> input_names, output_names;
};

namespace onnx {
namespace {

/// Finds rows and places, and checks that every node reads what was computed before.
class Loader {
 public:
  Loader(OnnxModel::State& state, nn::Module& module, const std::string& what)
      : state_(state), module_(module), what_(what) {}

  void load() {
    const Graph& g = state_.model.graph;
    check_operators(g);
    std::set<std::string> statistics;  // of batch norms: buffers
    for (const Node& n : g.nodes)
      if (n.op == "BatchNormalization" && n.inputs.size() == 5) statistics.insert(n.inputs.begin() + 3, n.inputs.end());
    for (const auto& [name, t] : g.initializers) add_place(name, registered(name, t, statistics.contains(name)));
    for (const Value& v : g.inputs) {
      if (places_.contains(v.name)) continue;  // an initializer may be listed as input
      state_.inputs.push_back(add_place(v.name, {}));
      state_.input_names.push_back(v.name);
    }
    for (const Node& n : g.nodes) add_instruction(n);
    for (const Value& v : g.outputs) {
      state_.outputs.push_back(place(v.name, "the graph"));
      state_.output_names.push_back(v.name);
    }
    find_last_reads();
  }

 private:
  [[noreturn]] void damaged(const std::string& how) const {
    throw IoError(fmt::format("[load_onnx] {} is no valid graph: {}. Use another copy of the file.", what_, how));
  }

  void check_operators(const Graph& g) const {
    std::set<std::string> missing;
    for (const Node& n : g.nodes) {
      const bool other_domain = !n.domain.empty() && n.domain != "ai.onnx";
      const ImportRow* row = other_domain ? nullptr : find_import_row(n.op);
      if (!row)
        missing.insert(other_domain ? n.domain + "." + n.op : n.op);
      else if (state_.model.opset < row->since)
        missing.insert(fmt::format("{} of operator set {}", n.op, state_.model.opset));
      else if (const char* reason = row->refuses ? row->refuses(n) : nullptr)
        missing.insert(fmt::format("{} with {}", n.op, reason));
    }
    if (!missing.empty())
      throw IoError(
          fmt::format("[load_onnx] {} needs operators that are not supported: {}. Export the network without "
                      "them.",
                      what_, fmt::join(missing, ", ")));
  }

  Tensor registered(const std::string& name, const Tensor& t, bool statistic) {
    const bool trained = t.is_floating() && (t.dim() > 0 || state_.model.producer == "levin");
    if (!trained) return t;
    std::vector<std::string> parts;
    std::size_t begin = 0;
    for (std::size_t dot; (dot = name.find('.', begin)) != std::string::npos; begin = dot + 1)
      parts.push_back(name.substr(begin, dot - begin));
    std::string last = name.substr(begin);
    nn::Module* place = &module_;
    std::map<std::string, Scope*>* children = &scopes_;
    const bool splits = !last.empty() && std::ranges::count(parts, "") == 0;
    if (!splits) {
      last = name;
      std::ranges::replace(last, '.', '_');
      if (last.empty()) last = "_";
      parts.clear();
    }
    for (const std::string& part : parts) {
      Scope*& child = (*children)[part];
      if (!child) {
        if (!names_.insert(std::pair(place, part)).second) damaged("\"" + part + "\" is a parameter and a module");
        child = &place->add<Scope>(part);
      }
      place = child;
      children = &child->children;
    }
    if (!names_.insert(std::pair(place, last)).second) damaged("two initializers have the name \"" + name + "\"");
    return statistic ? place->register_buffer(last, t) : static_cast<const Tensor&>(place->register_parameter(last, t));
  }

  int add_place(const std::string& name, const Tensor& t) {
    const auto at = static_cast<int>(state_.values.size());
    if (!places_.emplace(name, at).second) damaged("\"" + name + "\" is computed twice");
    state_.values.push_back(t);
    return at;
  }

  int place(const std::string& name, const std::string& reader) const {
    const auto found = places_.find(name);
    if (found == places_.end()) damaged(fmt::format("{} reads \"{}\", which is not computed before", reader, name));
    return found->second;
  }

  void add_instruction(const Node& n) {
    Instruction i{&n, find_import_row(n.op), {}, {}, {}};
    for (const std::string& name : n.inputs)
      i.inputs.push_back(name.empty() ? -1 : place(name, "node \"" + n.name + "\""));
    for (const std::string& name : n.outputs) i.outputs.push_back(name.empty() ? -1 : add_place(name, {}));
    state_.instructions.push_back(std::move(i));
  }

  /// Values are freed after the instruction that reads them last.
  void find_last_reads() {
    std::vector<bool> read(state_.values.size());
    for (const int o : state_.outputs) read[static_cast<std::size_t>(o)] = true;
    for (std::size_t k = state_.instructions.size(); k-- > 0;) {
      Instruction& i = state_.instructions[k];
      for (const auto* list : {&i.inputs, &i.outputs})
        for (const int v : *list)
          if (v >= 0 && !read[static_cast<std::size_t>(v)]) {
            read[static_cast<std::size_t>(v)] = true;
            i.last_reads.push_back(v);
          }
    }
  }

  OnnxModel::State& state_;
  nn::Module& module_;
  const std::string& what_;
  std::unordered_map<std::string, int> places_;
  std::map<std::string, Scope*> scopes_;
  std::set<std::pair<const nn::Module*, std::string>> names_;
};

}  // namespace
}  // namespace onnx

OnnxModel::OnnxModel(std::span<const std::byte> data, const std::string& what) : state_(std::make_unique<State>()) {
  state_->model = onnx::decode(data, what);
  onnx::Loader(*state_, *this, what).load();
  eval();
}

OnnxModel::~OnnxModel() = default;
OnnxModel::OnnxModel(OnnxModel&&) noexcept = default;

std::vector<Tensor> OnnxModel::forward(const std::vector<Tensor>& inputs) {
  using namespace onnx;
  const State& s = *state_;
  if (inputs.size() != s.inputs.size())
    throw ValueError(fmt::format("[OnnxModel] {} inputs are given, but the network takes {}: {}.", inputs.size(),
                                 s.inputs.size(), fmt::join(s.input_names, ", ")));
  std::vector<Tensor> values = s.values;
  for (std::size_t i = 0; i < inputs.size(); ++i) values[static_cast<std::size_t>(s.inputs[i])] = inputs[i];
  for (const Instruction& i : s.instructions) {
    Tensors arguments;
    for (const int v : i.inputs) arguments.push_back(v < 0 ? Tensor() : values[static_cast<std::size_t>(v)]);
    const Call call(*i.node, std::move(arguments), s.model.opset);
    Tensors results;
    try {
      results = i.row->run(call);
    } catch (Error& e) {
      e.set_origin(nullptr, i.node->name, i.node->op);
      throw;
    }
    for (std::size_t k = 0; k < i.outputs.size(); ++k) {
      if (i.outputs[k] < 0) continue;
      if (k >= results.size()) call.refuse(fmt::format("output {} is not supported", k));
      values[static_cast<std::size_t>(i.outputs[k])] = results[k];
    }
    for (const int v : i.last_reads) values[static_cast<std::size_t>(v)] = s.values[static_cast<std::size_t>(v)];
  }
  std::vector<Tensor> outputs;
  for (const int o : s.outputs) outputs.push_back(values[static_cast<std::size_t>(o)]);
  return outputs;
}

std::string OnnxModel::extra_repr() const {
  return fmt::format("{} nodes, inputs: {}, outputs: {}", state_->instructions.size(),
                     fmt::join(state_->input_names, ", "), fmt::join(state_->output_names, ", "));
}

const std::vector<std::string>& OnnxModel::input_names() const { return state_->input_names; }
const std::vector<std::string>& OnnxModel::output_names() const { return state_->output_names; }
std::string OnnxModel::to_text() const { return onnx::to_text(state_->model); }

OnnxModel load_onnx(const std::string& path) { return {io::read_file(path), path}; }

}  // namespace levin::interop
