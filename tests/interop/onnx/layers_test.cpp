// Every layer and function is exported, imported, and gives the eager result at other batch sizes. With
// LEVIN_ONNX_FILES=folder the files, inputs and results are written there, for ONNX's own checker and onnxruntime.
#include "cases.h"

#include "support/comparison.h"
#include "support/files.h"
#include "support/tolerance.h"

#include <levin/autograd/ops.h>
#include <levin/interop/onnx.h>
#include <levin/interop/safetensors.h>

#include <doctest/doctest.h>

#include <cstdlib>

using namespace levin;
using namespace levin::test;

namespace {

/// A number, and the letters and digits of the name.
std::string file_name(std::string name) {
  static int count = 0;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return std::to_string(++count) + "_" + name;
}

/// Tensors that are not undefined: absent results have no place in a file.
std::vector<Tensor> defined(std::vector<Tensor> tensors) {
  std::erase_if(tensors, [](const Tensor& t) { return !t.defined(); });
  return tensors;
}

/// Compares with an allowance for sums in another order, relative to the largest value.
std::string difference(const Tensor& actual, const Tensor& expected, double ulps) {
  if (actual.dtype() != expected.dtype()) return "the types differ";
  if (!expected.is_floating()) return compare(actual, expected, {.ulps = 0});
  const double largest = largest_difference(expected, zeros(expected.sizes()));
  if (!std::isfinite(largest)) return "an expected value is not finite";
  return compare(actual, expected, {.ulps = ulps, .scale = largest * ulps / 4});
}

void write_for_clients(const std::filesystem::path& folder, const OnnxCase& c, const io::Bytes& bytes,
                       const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
  StateDict tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i) tensors.merge("", {{"input." + std::to_string(i), inputs[i]}});
  for (std::size_t i = 0; i < outputs.size(); ++i) tensors.merge("", {{"output." + std::to_string(i), outputs[i]}});
  const std::string name = file_name(c.name);
  io::write_file(folder / (name + ".onnx"), bytes);
  interop::save_safetensors(folder / (name + ".safetensors"), tensors);
}

void check_round_trip(const OnnxCase& c, DType type, int opset = 17) {
  CAPTURE(c.name);
  manual_seed(3);
  const auto module = c.make();
  module->to(type);
  const auto typed = [type](std::vector<Tensor> tensors) {
    for (Tensor& t : tensors)
      if (t.is_floating()) t = t.to(type);
    return tensors;
  };
  const auto forward = [&](const std::vector<Tensor>& x) { return module->call(x); };
  const io::Bytes bytes = interop::encode_onnx(*module, forward, typed(c.inputs(2)),
                                               {.batch_axes = c.batch_axes, .opset = opset});
  interop::OnnxModel imported(bytes, c.name);
  module->eval();
  no_grad guard;
  for (const int64_t batch : {1, 3, 5}) {
    CAPTURE(batch);
    const std::vector<Tensor> inputs = typed(c.inputs(batch));
    const std::vector<Tensor> expected = defined(module->call(inputs)), actual = imported(inputs);
    REQUIRE(actual.size() == expected.size());
    REQUIRE(!expected.empty());
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK_MESSAGE(difference(actual[i], expected[i], c.tolerance) == "", imported.to_text());
    const char* folder = std::getenv("LEVIN_ONNX_FILES");
    if (folder && batch == 5 && type == kFloat32) write_for_clients(folder, c, bytes, inputs, expected);
  }
}

}  // namespace

TEST_CASE("every layer gives the same results after export and import, in float32") {
  for (const OnnxCase& c : onnx_layer_cases()) check_round_trip(c, kFloat32);
}

TEST_CASE("every layer gives the same results after export and import, in float64") {
  for (const OnnxCase& c : onnx_layer_cases()) check_round_trip(c, kFloat64);
}

TEST_CASE("every function gives the same results after export and import") {
  for (const OnnxCase& c : onnx_function_cases()) check_round_trip(c, kFloat32);
  for (const OnnxCase& c : onnx_function_cases()) check_round_trip(c, kFloat64);
}

TEST_CASE("every layer and function gives the same results after export and import in operator set 20") {
  for (const OnnxCase& c : onnx_layer_cases()) check_round_trip(c, kFloat32, 20);
  for (const OnnxCase& c : onnx_function_cases()) check_round_trip(c, kFloat32, 20);
}
