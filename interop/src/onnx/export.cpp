#include <levin/interop/onnx.h>

#include "lowering.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/indexing.h>

#include <fmt/format.h>

#include <algorithm>

namespace levin::interop {

namespace onnx {
namespace {

/// Evaluation for a scope; each module gets its own mode back.
class Evaluation {
 public:
  explicit Evaluation(nn::Module& module) {
    for (const auto& [_, m] : module.named_modules()) before_.emplace_back(m, m->is_training());
    module.eval();
  }
  ~Evaluation() {
    for (const auto& [m, training] : before_) m->train(training);  // parents first
  }
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

 private:
  std::vector<std::pair<nn::Module*, bool>> before_;
};

std::vector<std::string> names_of(const char* kind, std::vector<std::string> names, std::size_t count) {
  if (names.empty())
    for (std::size_t i = 0; i < count; ++i) names.push_back(i == 0 ? kind : fmt::format("{}_{}", kind, i + 1));
  std::vector<std::string> sorted = names;
  std::ranges::sort(sorted);
  const bool distinct = std::ranges::adjacent_find(sorted) == sorted.end() && std::ranges::count(sorted, "") == 0;
  if (names.size() != count || !distinct)
    throw ValueError(
        fmt::format("[export_onnx] the network has {} {}s, but the names given are \"{}\". Give each one "
                    "a name of its own.",
                    count, kind, fmt::join(names, "\", \"")));
  return names;
}

std::vector<int> batch_axes_of(const std::vector<Tensor>& inputs, const OnnxExportOptions& options) {
  if (!options.dynamic_batch) return std::vector<int>(inputs.size(), -1);
  std::vector<int> axes = options.batch_axes;
  if (axes.empty()) axes.assign(inputs.size(), 0);
  bool fits = axes.size() == inputs.size();
  for (std::size_t i = 0; fits && i < axes.size(); ++i)
    fits = axes[i] == -1 || (axes[i] >= 0 && axes[i] < inputs[i].dim() && inputs[i].sizes()[axes[i]] > 0);
  if (!fits)
    throw ValueError(fmt::format(
        "[export_onnx] the batch axes {} do not fit {} inputs. Give one axis that has "
        "elements, or -1, for each.",
        to_string(Shape(axes.begin(), axes.begin() + std::min<std::ptrdiff_t>(8, std::ssize(axes)))), inputs.size()));
  return axes;
}

/// Returns an input with `batch` samples, beginning with the sample `first` of the example; real numbers are mirrored
/// within each sample for the second trace, so that the traces have different values.
Tensor resized(const Tensor& example, int axis, int64_t batch, int64_t first) {
  Tensor x = example;
  if (axis >= 0) {
    std::vector<int64_t> places;
    for (int64_t i = 0; i < batch; ++i) places.push_back((first + i) % example.size(axis));
    x = index_select(x, axis, from_data(places, {batch}).to(x.device()));
  }
  if (first > 0 && x.is_floating() && x.dim() > 0 && x.dim() - 1 != axis) x = flip(x, -1);
  return x;
}

}  // namespace
}  // namespace onnx

io::Bytes encode_onnx(nn::Module& module, const OnnxForward& forward, const std::vector<Tensor>& example_inputs,
                      const OnnxExportOptions& options) {
  using namespace onnx;
  if (options.opset < 17 || options.opset > 20)
    throw ValueError(fmt::format("[export_onnx] opset {} is not supported; give 17 to 20.", options.opset));
  for (const Tensor& t : example_inputs)
    if (!t.defined()) throw ValueError("[export_onnx] an example input is undefined; give a tensor for each argument.");
  const Evaluation evaluation(module);
  const std::vector<int> axes = batch_axes_of(example_inputs, options);
  TwoBatches inputs;
  for (std::size_t i = 0; i < example_inputs.size(); ++i)
    for (std::size_t k = 0; k < 2; ++k)
      inputs[k].push_back(resized(example_inputs[i], axes[i], kTracedBatches[k], static_cast<int64_t>(k)));
  const Knows knows = [](const TracedOperation& o) {
    const ExportRow* row = find_export_row(o.name);
    return row && (!row->accepts || row->accepts(o));
  };
  const Program program = trace_program(forward, inputs, &module, knows);
  Model model;
  model.opset = options.opset;
  model.ir_version = options.opset >= 19 ? 9 : 8;
  model.producer = "levin";
  Lowering lowering(program, options.opset);
  model.graph = lowering.run(names_of("input", options.input_names, example_inputs.size()),
                             names_of("output", options.output_names, program.outputs.size()), axes);
  model.graph.name = module.type_name();
  const std::string text = encode(model);
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

void export_onnx(nn::Module& module, const OnnxForward& forward, const std::vector<Tensor>& example_inputs,
                 const std::string& path, const OnnxExportOptions& options) {
  io::write_file(path, encode_onnx(module, forward, example_inputs, options));
}

void export_onnx(nn::Module& module, const std::vector<Tensor>& example_inputs, const std::string& path,
                 const OnnxExportOptions& options) {
  export_onnx(
      module, [&](const std::vector<Tensor>& inputs) { return module.call(inputs); }, example_inputs, path, options);
}

}  // namespace levin::interop
