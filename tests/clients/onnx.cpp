// Runs an ONNX file, for the clients beside this file:
//   levin_client_onnx run MODEL.onnx IN.safetensors OUT.safetensors    reads input.0, ..., writes output.0, ...
#include <levin/autograd/modes.h>
#include <levin/interop/onnx.h>
#include <levin/interop/safetensors.h>

#include <iostream>

using namespace levin;

namespace {

void run(const std::string& model, const std::string& in, const std::string& out) {
  interop::OnnxModel net = interop::load_onnx(model);
  const StateDict stored = interop::load_safetensors(in).tensors;
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < net.input_names().size(); ++i) inputs.push_back(stored.at("input." + std::to_string(i)));
  const no_grad guard;
  const std::vector<Tensor> outputs = net(inputs);
  StateDict results;
  for (std::size_t i = 0; i < outputs.size(); ++i) results.set("output." + std::to_string(i), outputs[i]);
  interop::save_safetensors(out, results);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (arguments.size() != 4 || arguments[0] != "run")
      throw UsageError("usage: levin_client_onnx run MODEL.onnx IN.safetensors OUT.safetensors");
    run(arguments[1], arguments[2], arguments[3]);
  } catch (const Error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
