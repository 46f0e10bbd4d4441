#pragma once
// ONNX (onnx.ai) is a file format of networks: a graph of operators with its parameters. Levin writes it by tracing a
// forward pass, and runs it by its own operations, without Python and without another library.
//
//   Net net;
//   interop::export_onnx(net, {randn({1, 1, 28, 28})}, "net.onnx");
//   interop::OnnxModel same = interop::load_onnx("net.onnx");
//   Tensor y = same({x})[0];

#include <levin/core/io.h>
#include <levin/nn/layer.h>

#include <map>

namespace levin::interop {

/// Arguments of export_onnx.
struct OnnxExportOptions {
  std::vector<std::string> input_names{};   ///< "input", "input_2", ... by default
  std::vector<std::string> output_names{};  ///< "output", "output_2", ... by default
  bool dynamic_batch = true;                ///< the file takes batches of any size
  std::vector<int> batch_axes{};  ///< axis of each input that is the batch, -1 for none; 0 for all inputs by default
  int opset = 17;                 ///< version of the operators, 17 to 20
};

/// Writes the forward pass of a module in evaluation as an ONNX file. Parameters keep their names, so that other
/// programs see PyTorch's. The forward pass runs with these inputs, and for a dynamic batch with two other batch sizes:
/// sizes that differ become functions of the batch size. Control flow is that of these runs. Throws ValueError that
/// names the operation if ONNX has no operator for it, or if the runs differ in more than sizes.
void export_onnx(nn::Module& module, const std::vector<Tensor>& example_inputs, const std::string& path,
                 const OnnxExportOptions& options = {});

/// The same for any function of tensors that calls the module, such as one with other arguments than forward's.
using OnnxForward = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
void export_onnx(nn::Module& module, const OnnxForward& forward, const std::vector<Tensor>& example_inputs,
                 const std::string& path, const OnnxExportOptions& options = {});
/// Returns the bytes of the file.
io::Bytes encode_onnx(nn::Module& module, const OnnxForward& forward, const std::vector<Tensor>& example_inputs,
                      const OnnxExportOptions& options = {});

/// A network from an ONNX file. Its floating initializers are parameters of the same names, so that it can be trained
/// on. Call it with a list of tensors; it returns a list.
class OnnxModel : public nn::Layer<OnnxModel> {
 public:
  /// Parses the bytes of a file; `what` names it in errors. Throws as load_onnx does.
  OnnxModel(std::span<const std::byte> data, const std::string& what);
  ~OnnxModel() override;
  OnnxModel(OnnxModel&&) noexcept;

  /// Throws ValueError for another number of inputs than the file's.
  std::vector<Tensor> forward(const std::vector<Tensor>& inputs);
  std::string extra_repr() const override;

  /// Names of the file's inputs and outputs, in the order of forward's lists.
  const std::vector<std::string>& input_names() const;
  const std::vector<std::string>& output_names() const;
  /// Returns the graph as text, one line for each node.
  std::string to_text() const;

  struct State;

 private:
  OwnedPtr<State> state_;
};

/// Reads an ONNX file. Throws IoError with one sentence for a file that is damaged or has its data in other files, and
/// for one with operators that are not supported, all of which are named.
OnnxModel load_onnx(const std::string& path);

}  // namespace levin::interop
