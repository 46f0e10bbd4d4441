#pragma once
// Networks of one layer or function each, which are exported and imported.

#include <levin/nn/nn.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace levin::test {

struct OnnxCase {
  std::string name;
  std::function<std::unique_ptr<nn::Module>()> make;
  std::function<std::vector<Tensor>(int64_t batch)> inputs;
  std::vector<int> batch_axes{};  ///< 0 for all inputs by default
  double tolerance = 8;           ///< in units of the last place of the largest value
};

/// A function of a list of tensors as a module.
class FunctionModule : public nn::Layer<FunctionModule> {
 public:
  using F = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  explicit FunctionModule(F f) : f_(std::move(f)) {}
  std::vector<Tensor> forward(const std::vector<Tensor>& inputs) { return f_(inputs); }

 private:
  F f_;
};

const std::vector<OnnxCase>& onnx_layer_cases();
const std::vector<OnnxCase>& onnx_function_cases();

}  // namespace levin::test
