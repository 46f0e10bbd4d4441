// The exported graph as text, names, options, and all that an export refuses.
#include "cases.h"

#include "support/comparison.h"
#include "support/files.h"

#include <levin/autograd/ops.h>
#include <levin/interop/onnx.h>
#include <levin/nn/parametrize.h>
#include <levin/optim/optim.h>

#include <doctest/doctest.h>

using namespace levin;
using levin::test::FunctionModule;

namespace {

using Tensors = std::vector<Tensor>;

io::Bytes exported(nn::Module& m, const Tensors& inputs, const interop::OnnxExportOptions& options = {}) {
  return interop::encode_onnx(
      m, [&](const Tensors& x) { return m.call(x); }, inputs, options);
}

/// Returns the sentence with which the export of a function is refused.
std::string refusal(const FunctionModule::F& f, const Tensors& inputs, const interop::OnnxExportOptions& options = {}) {
  FunctionModule m(f);
  try {
    exported(m, inputs, options);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("the graph of a small network") {
  nn::Sequential net(nn::Flatten(), nn::Linear(6, 4), nn::ReLU(), nn::Dropout(), nn::Linear(4, 2, {.bias = false}));
  const interop::OnnxModel model(exported(net, {randn({1, 2, 3})}), "net.onnx");
  CHECK(model.to_text() == R"(Sequential (opset 17): (float32[batch, 2, 3] input) => (float32[batch, 2] output)
  float32 (4, 6) 1.weight
  float32 (4,) 1.bias
  float32 (2, 4) 4.weight
  constant_1 = Constant<value=int64(2,)>()
  reshape_1 = Reshape(input, constant_1)
  gemm_1 = Gemm<transB=1>(reshape_1, 1.weight, 1.bias)
  relu_1 = Relu(gemm_1)
  output = Gemm<transB=1>(relu_1, 4.weight)
)");
}

TEST_CASE("sizes that depend on the batch size are computed from the input's shape") {
  FunctionModule m([](const Tensors& x) -> Tensors { return {zeros({x[0].size(0), 2 * x[0].size(0) + 1}) + x[0]}; });
  const interop::OnnxModel model(exported(m, {randn({1, 1})}), "m.onnx");
  CHECK(model.to_text() == R"(FunctionModule (opset 17): (float32[batch, 1] input) => (float32[batch, 2*batch+1] output)
  shape_1 = Shape(input)
  constant_1 = Constant<value=int64(1,)>()
  gather_1 = Gather<axis=0>(shape_1, constant_1)
  constant_2 = Constant<value=int64(1,)>()
  mul_1 = Mul(gather_1, constant_2)
  constant_3 = Constant<value=int64(1,)>()
  add_1 = Add(mul_1, constant_3)
  concat_1 = Concat<axis=0>(gather_1, add_1)
  constantofshape_1 = ConstantOfShape<value=float32(1,)>(concat_1)
  output = Add(constantofshape_1, input)
)");
}

TEST_CASE("names, fixed batches and operator sets are options; modes of modules come back") {
  const test::TempDir folder;
  nn::Sequential net(nn::Linear(3, 2), nn::GELU(), nn::BatchNorm1d(2));
  net.eval();
  net[1].train();
  interop::export_onnx(net, {randn({4, 3})}, folder.path / "net.onnx",
                       {.input_names = {"x"}, .output_names = {"y"}, .dynamic_batch = false, .opset = 20});
  CHECK(!net.is_training());
  CHECK(net[1].is_training());
  CHECK(!net[2].is_training());
  interop::OnnxModel model = interop::load_onnx(folder.path / "net.onnx");
  CHECK(model.input_names() == std::vector<std::string>{"x"});
  CHECK(model.output_names() == std::vector<std::string>{"y"});
  CHECK(model.to_text().find("(opset 20): (float32[4, 3] x) => (float32[4, 2] y)") != std::string::npos);
  CHECK(model.to_text().find("gelu_1 = Gelu(gemm_1)") != std::string::npos);
  const Tensor x = randn({4, 3});
  no_grad guard;
  CHECK(test::largest_difference(model({x})[0], net.eval()(x)) <= 1e-6);
}

TEST_CASE("parameters of the imported network have the exported names, and can be trained") {
  nn::Sequential net(nn::Linear(3, 8), nn::Tanh(), nn::BatchNorm1d(8), nn::Linear(8, 1));
  interop::OnnxModel model(exported(net, {randn({1, 3})}), "net.onnx");
  std::vector<std::string> names, expected;
  for (const auto& [name, p] : model.named_parameters()) names.push_back(name);
  for (const auto& [name, p] : net.named_parameters()) expected.push_back(name);
  std::ranges::sort(names);
  std::ranges::sort(expected);
  CHECK(names == expected);
  std::vector<std::string> buffers;
  for (const auto& [name, b] : model.named_buffers()) buffers.push_back(name);
  CHECK(buffers == std::vector<std::string>{"2.running_mean", "2.running_var"});

  const Tensor x = randn({32, 3}), y = x.sum(1, true);
  optim::Adam adam(model.parameters(), {.lr = 0.03});
  double first = 0, last = 0;
  for (int i = 0; i < 60; ++i) {
    const Tensor loss = mse_loss(model({x})[0], y);
    (i == 0 ? first : last) = loss.item<double>();
    adam.zero_grad();
    loss.backward();
    adam.step();
  }
  CHECK(last < 0.1 * first);
}

TEST_CASE("networks in 16-bit floats, and weights that are computed from others") {
  for (const DType type : {kHalf, kBFloat16}) {
    nn::Sequential net(nn::Linear(4, 8), nn::GELU(), nn::LayerNorm(8), nn::Linear(8, 2));
    net.to(type);
    const Tensor x = randn({3, 4}).to(type);
    interop::OnnxModel model(exported(net, {x}), "net.onnx");
    const Tensor y = model({x})[0];
    CHECK(y.dtype() == type);
    // Operators round after each part of the activation.
    CHECK(test::largest_difference(y.to(kFloat32), net(x).to(kFloat32)) <= (type == kHalf ? 0.01 : 0.08));
  }
  nn::Linear layer(4, 3);
  nn::weight_norm(layer);
  interop::OnnxModel model(exported(layer, {randn({1, 4})}), "layer.onnx");
  std::vector<std::string> names;
  for (const auto& [name, p] : model.named_parameters()) names.push_back(name);
  CHECK(names.size() == 3);  // the bias, the lengths and the directions
  const Tensor x = randn({3, 4});
  CHECK(test::largest_difference(model({x})[0], layer(x)) <= 1e-6);
}

TEST_CASE("shared parameters and outputs that are inputs or constants") {
  nn::Linear tied(3, 3);
  FunctionModule m([&](const Tensors& x) -> Tensors {
    const Tensor y = tied(tied(x[0]));
    return {y, x[0], y, ones({2})};
  });
  const io::Bytes bytes = interop::encode_onnx(tied, [&](const Tensors& x) { return m(x); }, {randn({2, 3})});
  interop::OnnxModel model(bytes, "tied.onnx");
  CHECK(model.parameter_count() == 12);
  const Tensor x = randn({5, 3});
  const Tensors y = model({x});
  REQUIRE(y.size() == 4);
  CHECK(test::largest_difference(y[0], tied(tied(x))) <= 1e-6);
  CHECK(test::largest_difference(y[1], x) == 0);
  CHECK(test::largest_difference(y[2], y[0]) == 0);
  CHECK(test::largest_difference(y[3], ones({2})) == 0);
}

TEST_CASE("what cannot be traced is refused by name") {
  const Tensors x{randn({2, 4})};
  CHECK(
      refusal([](const Tensors& t) -> Tensors { return {lgamma(t[0])}; }, x) ==
      "[export_onnx] lgamma cannot be exported, since ONNX has no operator for it. Leave it out of the exported part.");
  CHECK(refusal([](const Tensors& t) -> Tensors { return {dropout(t[0], 0.5, true)}; }, x)
            .find("dropout cannot be exported, since ONNX has no operator for it") != std::string::npos);
  CHECK(refusal([](const Tensors& t) -> Tensors { return {t[0] + rand({4})}; }, x).find("cannot be exported") !=
        std::string::npos);
  CHECK(refusal([](const Tensors& t) -> Tensors { return {bitwise_and(t[0] > 0, true).to(kInt64) | 3}; }, x)
            .find("bitwise_or cannot be exported: bits of integers need .opset = 18") != std::string::npos);
  CHECK(refusal([](const Tensors& t) -> Tensors { return {cumprod(t[0], 1)}; }, x) ==
        "[export_onnx] the output reads the result of cumprod, which is not traced. Replace it by operations that ONNX "
        "has.");
  nn::BatchNorm1d norm(4);
  CHECK(refusal([&](const Tensors& t) -> Tensors { return {norm(t[0])}; }, x)
            .find("batch_norm cannot be exported: it uses the statistics of the batch; call eval() on the module") !=
        std::string::npos);
}

TEST_CASE("edits in place are exported, except through another view of the memory") {
  FunctionModule m([](const Tensors& t) -> Tensors {
    const Tensor y = t[0].clone();
    y.mul_(2).relu_();
    y(y > 1) = 0.5;
    return {y};
  });
  interop::OnnxModel model(exported(m, {randn({2, 4})}), "m.onnx");
  const Tensor x = randn({3, 4});
  CHECK(test::largest_difference(model({x})[0], m({x})[0]) <= 1e-6);

  CHECK(refusal(
            [](const Tensors& t) -> Tensors {
              const Tensor y = t[0].clone();
              y.select(1, 0).fill_(1);
              return {y * 2};
            },
            {randn({2, 4})}) ==
        "[export_onnx] mul reads a tensor of shape (2, 4) that was edited in place through another view of its memory, "
        "which ONNX cannot express. Use an operation that returns a new tensor.");
}

TEST_CASE("a forward pass that depends on sizes or values is refused") {
  const Tensors x{randn({2, 4})};
  CHECK(refusal([](const Tensors& t) -> Tensors { return {t[0].size(0) == 2 ? exp(t[0]) : sin(t[0])}; }, x) ==
        "[export_onnx] with batches of 2 and 3, and other values, forward calls exp in one and sin in the other as "
        "operation 1. Export with .dynamic_batch = false, or let forward not depend on sizes and values.");
  CHECK(refusal([](const Tensors& t) -> Tensors { return {cat(unbind(t[0], 0), 0)}; }, x)
            .find("forward calls split with other tensors as operation 1") != std::string::npos);
  CHECK(refusal([](const Tensors& t) -> Tensors { return {t[0] * (1.0 / static_cast<double>(t[0].size(0)))}; }, x)
            .find("forward calls mul with value 0.5 in one and 0.33") != std::string::npos);
  CHECK(refusal(
            [](const Tensors& t) -> Tensors {
              return {t[0].size(0) == 2 ? t[0] : t[0] * 1.0, t[0]};
            },
            x)
            .find("forward calls the end in one and mul in the other") != std::string::npos);
  int runs = 0;
  const Tensor a = ones({4}), b = ones({4}, kFloat64);
  CHECK(refusal([&](const Tensors& t) -> Tensors { return {t[0].size(0) == 2 ? t[0] + a : t[0] + t[0]}; }, x)
            .find("forward calls add with other tensors") != std::string::npos);
  CHECK(
      refusal([&](const Tensors& t) -> Tensors { return {t[0] + tensor(t[0].sum().item<float>())}; }, x) ==
      "[export_onnx] a tensor of shape () depends on the inputs, but no operation that is traced computed it. Compute "
      "it by operations on tensors.");
  CHECK(
      refusal([&](const Tensors& t) -> Tensors { return {t[0] + (++runs == 1 ? a : b)}; }, x)
          .find("[export_onnx] a tensor is float32 (4,) with a batch of 2, and float64 (4,) with one of 3. Export with "
                ".dynamic_batch = false.") != std::string::npos);
}

TEST_CASE("wrong arguments of an export are refused") {
  const auto same = [](const Tensors& t) -> Tensors { return t; };
  const Tensors x{randn({2, 4})};
  CHECK(refusal(same, x, {.opset = 16}) == "[export_onnx] opset 16 is not supported; give 17 to 20.");
  CHECK(refusal(same, {Tensor()}) == "[export_onnx] an example input is undefined; give a tensor for each argument.");
  CHECK(refusal(same, x, {.batch_axes = {2}}) ==
        "[export_onnx] the batch axes (2,) do not fit 1 inputs. Give one axis that has elements, or -1, for each.");
  CHECK(refusal(same, x, {.batch_axes = {0, 0}}).find("the batch axes (0, 0) do not fit 1 inputs") !=
        std::string::npos);
  CHECK(
      refusal(same, x, {.input_names = {"a", "b"}}) ==
      "[export_onnx] the network has 1 inputs, but the names given are \"a\", \"b\". Give each one a name of its own.");
  CHECK(refusal(same, {x[0], x[0]}, {.output_names = {"a", "a"}})
            .find("the network has 2 outputs, but the names given") != std::string::npos);
  CHECK(refusal(same, {view_as_complex(randn({2, 2}))}) ==
        "[onnx] complex64 tensors cannot be exported. Use view_as_real(x).");
  nn::Linear large(1, 1);
  const Parameter& big = large.register_parameter("big", zeros({1}).expand({int64_t{1} << 30}));
  try {
    interop::encode_onnx(large, [&](const Tensors& t) -> Tensors { return {t[0] + narrow(big, 0, 0, 1)}; },
                         {randn({2, 1})});
    FAIL("a file of 4 GiB was written");
  } catch (const ValueError& e) {
    CHECK(std::string(e.what()) ==
          "[onnx] the parameters have 4294967296 bytes, but an ONNX file holds less than 2 GiB. "
          "Export the network in parts, or in 16-bit floats.");
  }
}
