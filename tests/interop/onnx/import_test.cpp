// Graphs of other exporters: operators and forms of operators that Levin's own export does not write, with values
// computed by hand or by the operation that they stand for, and all that loading refuses.
#include <levin/autograd/ops.h>
#include <levin/interop/onnx.h>

#include <doctest/doctest.h>

#include "interop/src/onnx/model.h"
#include "support/comparison.h"

using namespace levin;
using interop::onnx::Attribute;

namespace {

using Tensors = std::vector<Tensor>;
using Attributes = std::vector<Attribute>;

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// A graph of one node, all of whose inputs are inputs of the graph.
interop::onnx::Model model_of(const std::string& op, const Tensors& inputs, const Attributes& attributes,
                              std::size_t outputs, std::int64_t opset) {
  interop::onnx::Model m;
  m.opset = opset;
  interop::onnx::Node n{op, "", "the_node", {}, {}, attributes};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    n.inputs.push_back(inputs[i].defined() ? "x" + std::to_string(i) : "");
    if (inputs[i].defined()) m.graph.inputs.push_back({"x" + std::to_string(i), inputs[i].dtype(), {}});
  }
  for (std::size_t i = 0; i < outputs; ++i) {
    n.outputs.push_back("y" + std::to_string(i));
    m.graph.outputs.push_back({"y" + std::to_string(i), kFloat32, {}});
  }
  m.graph.nodes.push_back(n);
  return m;
}

Tensors run(const std::string& op, const Tensors& inputs, const Attributes& attributes = {}, std::size_t outputs = 1,
            std::int64_t opset = 17) {
  interop::OnnxModel model(bytes_of(encode(model_of(op, inputs, attributes, outputs, opset))), "test.onnx");
  Tensors given = inputs;
  std::erase_if(given, [](const Tensor& t) { return !t.defined(); });
  return model(given);
}

Attribute texts(const std::string& name, const std::vector<std::string>& values) {
  Attribute a(name, std::vector<std::int64_t>{});
  a.type = Attribute::Type::texts;
  a.texts = values;
  return a;
}

/// Returns the sentence with which a model is refused when it is loaded or run.
std::string refusal(const interop::onnx::Model& m, const Tensors& inputs = {}) {
  try {
    interop::OnnxModel model(bytes_of(encode(m)), "test.onnx");
    model(inputs);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

std::string refusal(const std::string& op, const Tensors& inputs, const Attributes& attributes = {},
                    std::size_t outputs = 1) {
  Tensors given = inputs;
  std::erase_if(given, [](const Tensor& t) { return !t.defined(); });
  return refusal(model_of(op, inputs, attributes, outputs, 17), given);
}

void same(const Tensor& actual, const Tensor& expected, double tolerance = 1e-6) {
  CHECK(actual.dtype() == expected.dtype());
  CHECK(test::largest_difference(actual, expected) <= tolerance);
}

Tensor f(std::initializer_list<float> v) { return from_data(std::vector<float>(v), {static_cast<int64_t>(v.size())}); }
Tensor i(std::initializer_list<int64_t> v) {
  return from_data(std::vector<int64_t>(v), {static_cast<int64_t>(v.size())});
}
std::vector<std::int64_t> list(std::initializer_list<std::int64_t> v) { return v; }

}  // namespace

TEST_CASE("elementwise operators of other exporters") {
  const Tensor x = f({-2, -0.5, 0.5, 2}), whole = i({-7, 7, 5});
  same(run("Div", {whole, i({2, 2, -2})})[0], i({-3, 3, -2}));  // towards zero
  same(run("Mod", {whole, i({3, -3, 3})})[0], i({2, -2, 2}));
  same(run("Mod", {f({-7, 7}), f({3, -3})}, {{"fmod", 1}})[0], f({-1, 1}));
  same(run("Sum", {x, x, x})[0], 3 * x);
  same(run("Mean", {x, 3 * x})[0], 2 * x);
  same(run("Max", {x, f({0, 0, 0, 0}), f({1, -1, -1, 3})})[0], f({1, 0, 0.5, 3}));
  same(run("Min", {x, f({0, 0, 0, 0})})[0], f({-2, -0.5, 0, 0}));
  same(run("Clip", {x, tensor(-1.f), tensor(1.f)})[0], f({-1, -0.5, 0.5, 1}));
  same(run("Clip", {x}, {{"min", 0.0}}, 1, 10)[0], f({0, 0, 0.5, 2}));
  same(run("CastLike", {x, whole})[0], i({-2, 0, 0, 2}));
  same(run("Celu", {x}, {{"alpha", 2.0}})[0], celu(x, 2));
  same(run("ThresholdedRelu", {x}, {{"alpha", 1.0}})[0], f({0, 0, 0, 2}));
  same(run("Shrink", {x}, {{"lambd", 1.0}, {"bias", 0.5}})[0], f({-1.5, 0, 0, 1.5}));
  same(run("Selu", {x}, {{"alpha", 2.0}, {"gamma", 3.0}})[0], 3 * elu(x, 2));
  same(run("Gelu", {x}, {{"approximate", "tanh"}}, 1, 20)[0], gelu(x, Approximate::tanh));
  same(run("Mish", {x}, {}, 1, 18)[0], mish(x));
  same(run("IsInf", {f({-INFINITY, 0, INFINITY})}, {{"detect_negative", 0}})[0].to(kInt64), i({0, 0, 1}));
  same(run("Pow", {i({2, 3}), f({3, 2})})[0], i({8, 9}));
  same(run("BitwiseNot", {whole}, {}, 1, 18)[0], i({6, -8, -6}));
}

TEST_CASE("shape operators of other exporters") {
  const Tensor x = arange(24).to(kFloat32).view({2, 3, 4});
  same(run("Shape", {x}, {{"start", 1}, {"end", -1}})[0], i({3}));
  same(run("Size", {x})[0], tensor(int64_t{24}));
  same(run("Reshape", {x, i({0, -1})})[0], x.view({2, 12}));
  same(run("Reshape", {zeros({0, 3}), i({3, 0})}, {{"allowzero", 1}})[0].sum(), tensor(0.f));
  same(run("Flatten", {x}, {{"axis", -1}})[0], x.view({6, 4}));
  same(run("Squeeze", {x.view({2, 1, 12, 1})})[0], x.view({2, 12}));
  same(run("Squeeze", {x.view({2, 1, 12, 1})}, {{"axes", list({1})}}, 1, 11)[0], x.view({2, 12, 1}));
  same(run("Unsqueeze", {x, i({-1, 0})})[0], x.view({1, 2, 3, 4, 1}));
  same(run("Transpose", {x})[0], x.permute({2, 1, 0}));
  same(run("Expand", {x.narrow(1, 0, 1), i({3, 1})})[0], x.narrow(1, 0, 1).expand({2, 3, 4}));
  same(run("Tile", {f({1, 2}), i({2})})[0], f({1, 2, 1, 2}));
  const Tensors parts = run("Split", {f({1, 2, 3, 4, 5})}, {}, 2);
  same(parts[0], f({1, 2, 3}));
  same(parts[1], f({4, 5}));
  same(run("Slice", {f({0, 1, 2, 3, 4}), i({-1}), i({INT64_MIN}), i({0}), i({-2})})[0], f({4, 2, 0}));
  same(run("Slice", {x, i({1}), i({INT64_MAX}), i({2}), i({2})})[0], x(Ellipsis, Slice(1, nil, 2)));
  same(run("Slice", {f({0, 1, 2})}, {{"starts", list({1})}, {"ends", list({9})}}, 1, 9)[0], f({1, 2}));
  same(run("Pad", {f({1, 2}), i({1, 2}), tensor(7.f)})[0], f({7, 1, 2, 7, 7}));
  same(run("Pad", {x, i({1, 1}), Tensor(), i({-1})}, {{"mode", "wrap"}}, 1, 19)[0], pad(x, {1, 1}, PadMode::circular));
  same(run("EyeLike", {zeros({2, 3})}, {{"k", 1}})[0], tensor({{0.f, 1.f, 0.f}, {0.f, 0.f, 1.f}}));
  const Tensor image = randn({2, 8, 2, 3});
  same(run("DepthToSpace", {image}, {{"blocksize", 2}, {"mode", "CRD"}})[0], pixel_shuffle(image, 2));
  const Tensor deep = run("DepthToSpace", {image}, {{"blocksize", 2}})[0];
  CHECK(deep.sizes() == Shape{2, 2, 4, 6});
  CHECK(deep(0, 0, 0, 1).item<float>() == image(0, 2, 0, 0).item<float>());
  same(run("SpaceToDepth", {deep}, {{"blocksize", 2}})[0], image);
  const Tensors dropped = run("Dropout", {x}, {}, 2);
  same(dropped[0], x);
  CHECK(all(dropped[1]).item<bool>());
  same(run("Constant", {}, {{"value_float", 1.5}})[0], tensor(1.5f));
  same(run("Constant", {}, {{"value_int", 3}})[0], tensor(int64_t{3}));
  same(run("Constant", {}, {{"value_ints", list({3, 4})}})[0], i({3, 4}));
  same(run("ConstantOfShape", {i({2})})[0], f({0, 0}));
}

TEST_CASE("reductions and indexing of other exporters") {
  const Tensor x = f({1, 5, 3, 5, 2, 0}).view({2, 3});
  same(run("ReduceSum", {x}, {{"noop_with_empty_axes", 1}})[0], x);
  same(run("ReduceMax", {x, i({1})}, {{"keepdims", 0}}, 1, 18)[0], f({5, 5}));
  same(run("ReduceSumSquare", {x}, {{"axes", list({1})}, {"keepdims", 0}})[0], f({35, 29}));
  same(run("ReduceLogSum", {x}, {{"axes", list({-1})}, {"keepdims", 0}})[0], log(x.sum(1)));
  same(run("ReduceLogSumExp", {x}, {{"axes", list({1})}, {"keepdims", 0}})[0], logsumexp(x, 1));
  same(run("ReduceMean", {i({1, 2, 6})}, {{"keepdims", 0}})[0], tensor(int64_t{3}));
  same(run("ArgMax", {x.view({6})}, {{"select_last_index", 1}, {"keepdims", 0}})[0], tensor(int64_t{3}));
  same(run("Hardmax", {x})[0], tensor({{0.f, 1.f, 0.f}, {1.f, 0.f, 0.f}}));
  same(run("CumSum", {f({1, 2, 3}), tensor(int64_t{0})}, {{"exclusive", 1}, {"reverse", 1}})[0], f({5, 3, 0}));
  same(run("Einsum", {x, x}, {{"equation", "ij,kj->ik"}})[0], matmul(x, x.t()));
  same(run("LpNormalization", {x}, {{"p", 1}})[0], x / x.sum(1, true));
  same(run("Gemm", {x, x, f({1, 2})}, {{"transB", 1}, {"alpha", 2.0}, {"beta", 3.0}})[0],
       2 * matmul(x, x.t()) + 3 * f({1, 2}));
  same(run("Gemm", {x, x}, {{"transA", 1}})[0], matmul(x.t(), x));
  same(run("Gather", {x, i({-1})}, {{"axis", 1}})[0], f({3, 0}).view({2, 1}));
  same(run("Gather", {i({4, 5, 6}), tensor(int64_t{1})})[0], tensor(int64_t{5}));
  same(run("GatherND", {x, i({0, 1, 1, -1}).view({2, 2})})[0], f({5, 0}));
  same(run("GatherND", {x, i({1}).view({1, 1})})[0], x.narrow(0, 1, 1));
  same(run("ScatterND", {f({1, 2, 3}), i({2, 0}).view({2, 1}), f({8, 9})})[0], f({9, 2, 8}));
  same(run("ScatterND", {f({1, 2, 3}), i({2, 2}).view({2, 1}), f({8, 9})}, {{"reduction", "add"}})[0], f({1, 2, 20}));
  for (const auto& [name, expected] : {std::pair{"mul", 24.f}, {"max", 8.f}, {"min", 3.f}})
    same(run("ScatterElements", {f({1, 3}), i({-1}), f({8})}, {{"reduction", name}})[0], f({1, expected}));
  same(run("OneHot", {i({1, -1, 5}), tensor(int64_t{3}), f({2, 7})})[0], f({2, 7, 2, 2, 2, 7, 2, 2, 2}).view({3, 3}));
  same(run("NonZero", {x})[0], i({0, 0, 0, 1, 1, 0, 1, 2, 0, 1}).view({2, 5}));
  same(run("ReverseSequence", {x.t(), i({2, 3})})[0], f({5, 0, 1, 2, 3, 5}).view({3, 2}));
}

TEST_CASE("windows with other paddings") {
  const Tensor x = randn({1, 2, 5, 5}), w = randn({3, 2, 2, 2});
  same(run("Conv", {x, w}, {{"auto_pad", "SAME_UPPER"}})[0], conv2d(pad(x, {0, 1, 0, 1}), w), 1e-5);
  same(run("Conv", {x, w}, {{"auto_pad", "SAME_LOWER"}})[0], conv2d(pad(x, {1, 0, 1, 0}), w), 1e-5);
  same(run("Conv", {x, w}, {{"auto_pad", "VALID"}})[0], conv2d(x, w), 1e-5);
  same(run("MaxPool", {x}, {{"kernel_shape", list({2, 2})}, {"pads", list({0, 1, 1, 0})}})[0],
       max_pool2d(pad(x, {1, 0, 0, 1}, -INFINITY), 2, {.stride = 1}));
  const Tensor shares = avg_pool2d(pad(ones({1, 2, 5, 5}), {0, 1, 0, 1}), 2, {.stride = 1});
  same(run("AveragePool", {x}, {{"kernel_shape", list({2, 2})}, {"pads", list({0, 0, 1, 1})}})[0],
       avg_pool2d(pad(x, {0, 1, 0, 1}), 2, {.stride = 1}) / shares, 1e-5);
  const Tensor v = randn({2, 3, 2, 2});
  same(run("ConvTranspose", {x, v}, {{"pads", list({0, 0, 1, 1})}})[0],
       conv_transpose2d(x, v)(Ellipsis, Slice(nil, -1), Slice(nil, -1)), 1e-5);
  same(run("GlobalMaxPool", {x})[0], amax(x, {2, 3}, true));
  same(run("GlobalAveragePool", {x})[0], mean(x, {2, 3}, true));
  const Tensor scale = f({2, 3}), bias = f({0, 1}), y = randn({2, 4, 3});
  same(run("GroupNormalization", {y, scale, bias}, {{"num_groups", 2}}, 1, 18)[0],
       group_norm(y, 2, f({2, 2, 3, 3}), f({0, 0, 1, 1})), 1e-5);
  same(run("Resize", {x, Tensor(), f({1, 1, 2, 2})},
           {{"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "floor"}})[0],
       interpolate(x, {.scale_factor = {2}}));
}

TEST_CASE("both directions of an LSTM with lengths in one node") {
  const int64_t hidden = 3;
  const Tensor x = randn({4, 2, 2}), w = randn({2, 4 * hidden, 2}), r = randn({2, 4 * hidden, hidden}),
               lengths = i({4, 2}).to(kInt32);
  const Tensors y =
      run("LSTM", {x, w, r, Tensor(), lengths}, {{"hidden_size", hidden}, {"direction", "bidirectional"}}, 3);
  CHECK(y[0].sizes() == Shape{4, 2, 2, hidden});
  CHECK(y[2].sizes() == Shape{2, 2, hidden});
  CHECK(test::largest_difference(y[0](Slice(2, nil), Slice(), 1), zeros({2, 2, hidden})) == 0);
  same(y[1](0, 1), y[0](1, 0, 1));  // the last state forwards of the shorter sample
  same(y[1](1), y[0](0, 1));        // the last state backwards is that of the first step
  // One step by hand: gates are input, output, forget and cell.
  const Tensors g = chunk(matmul(x(0, 0), w(0).t()), 4);
  same(y[0](0, 0, 0), sigmoid(g[1]) * tanh(sigmoid(g[0]) * tanh(g[3])), 1e-5);
  const Tensors relu_rnn =
      run("RNN", {x, w.narrow(1, 0, hidden).narrow(0, 0, 1), r.narrow(1, 0, hidden).narrow(0, 0, 1)},
          {{"hidden_size", hidden}, texts("activations", {"Relu"})}, 2);
  same(relu_rnn[0](0, 0), relu(matmul(x(0), w(0).narrow(0, 0, hidden).t())), 1e-5);
}

TEST_CASE("operators that are not supported are all named when the file is loaded") {
  interop::onnx::Model m = model_of("Relu", {f({1})}, {}, 1, 17);
  m.graph.nodes.push_back({"Loop", "", "a", {}, {}, {}});
  m.graph.nodes.push_back({"FusedConv", "com.microsoft", "b", {}, {}, {}});
  m.graph.nodes.push_back({"Resize", "", "c", {}, {}, {{"mode", "crop"}}});
  m.graph.nodes.push_back({"GRU", "", "d", {}, {}, {}});
  const std::string text = refusal(m);
  CHECK(text ==
        "[load_onnx] test.onnx needs operators that are not supported: GRU with linear_before_reset 0, Loop, "
        "Resize with its mode, com.microsoft.FusedConv. Export the network without them.");
  CHECK(refusal(model_of("Softmax", {f({1})}, {}, 1, 11)).find("Softmax of operator set 11") != std::string::npos);
  for (const auto& [op, attributes, reason] : std::vector<std::tuple<std::string, Attributes, std::string>>{
           {"LSTM", {{"layout", 1}}, "LSTM with layout 1"},
           {"LSTM", {{"clip", 1.0}}, "LSTM with clip and input_forget"},
           {"LSTM", {texts("activations", {"Relu", "Tanh", "Tanh"})}, "LSTM with its activations"},
           {"ConvTranspose", {{"output_shape", list({3, 3})}}, "ConvTranspose with output_shape"},
           {"ConvTranspose", {{"auto_pad", "SAME_UPPER"}}, "ConvTranspose with auto_pad"},
           {"Resize", {{"mode", "linear"}, {"antialias", 1}}, "Resize with antialias"},
           {"Resize", {}, "Resize with nearest_mode or coordinate_transformation_mode"},
           {"GridSample", {{"mode", "bicubic"}}, "GridSample with its mode"}})
    CHECK(refusal(op, {f({1})}, attributes).find(reason) != std::string::npos);
  CHECK(refusal("MaxPool", {f({1})}, {}, 2).find("MaxPool with the output Indices") != std::string::npos);
}

TEST_CASE("graphs that make no sense are refused when the file is loaded") {
  const auto refused = [](const std::function<void(interop::onnx::Model&)>& edit) {
    interop::onnx::Model m = model_of("Relu", {f({1})}, {}, 1, 17);
    edit(m);
    return refusal(m, {f({1})});
  };
  CHECK(refused([](auto& m) { m.graph.nodes[0].inputs = {"z"}; }) ==
        "[load_onnx] test.onnx is no valid graph: node \"the_node\" reads \"z\", which is not computed before. Use "
        "another "
        "copy of the file.");
  CHECK(refused([](auto& m) { m.graph.outputs[0].name = "z"; }).find("the graph reads \"z\"") != std::string::npos);
  CHECK(refused([](auto& m) { m.graph.nodes.push_back(m.graph.nodes[0]); }).find("\"y0\" is computed twice") !=
        std::string::npos);
  CHECK(refused([](auto& m) { m.graph.initializers = {{"a.b", f({1})}, {"a_b", f({1})}}; }) == "accepted");
  CHECK(refused([](auto& m) {
          m.graph.initializers = {{".a", f({1})}, {"_a", f({1})}};
        }).find("two initializers have the name \"_a\"") != std::string::npos);
  CHECK(refused([](auto& m) {
          m.graph.initializers = {{"a", f({1})}, {"a.b", f({1})}};
        }).find("\"a\" is a parameter and a module") != std::string::npos);
  CHECK(refused([](auto& m) { m.opset = 0; }) ==
        "[load_onnx] test.onnx is damaged: it has no graph or no operator set. Use another copy of the file.");
}

TEST_CASE("nodes that cannot run say why") {
  const Tensor x = randn({2, 3});
  CHECK(refusal("Concat", {x}, {{"axis", 5}}).find("in the_node (Concat): [cat]") == 0);
  CHECK(refusal("Reshape", {x}) ==
        "in the_node (Reshape): [OnnxModel] node \"the_node\" (Reshape) cannot run: it has no "
        "input 1. Check the inputs of the network.");
  const auto says = [&](const std::string& op, const Tensors& inputs, const Attributes& attributes, const char* why,
                        std::size_t outputs = 1) {
    CHECK_MESSAGE(refusal(op, inputs, attributes, outputs).find(why) != std::string::npos,
                  refusal(op, inputs, attributes, outputs));
  };
  says("Relu", {x}, {}, "output 1 is not supported", 2);
  says("Cast", {x}, {{"to", 8}}, "the type number 8 is not one of Levin's");
  says("TopK", {x, i({1, 2})}, {}, "input 1 has 2 numbers instead of one", 2);
  says("Conv", {randn({1, 1, 4, 4}), randn({1, 1, 2, 2})}, {{"strides", list({1})}},
       "strides has 1 numbers instead of 2");
  says("Conv", {x, randn({1, 1, 2, 2})}, {}, "a window over 2 axes does not fit an input of shape (2, 3)");
  says("Conv", {randn({1, 1, 4}), randn({1, 1, 2})}, {{"pads", list({-1, 0})}}, "a padding is negative");
  says("ConvTranspose", {x, randn({1, 1, 2, 2})}, {}, "the window does not fit the input");
  says("AveragePool", {randn({1, 1, 4})}, {{"kernel_shape", list({2})}, {"dilations", list({2})}},
       "dilations are not 1");
  says("BatchNormalization", {x, x, x, x, x}, {{"training_mode", 1}}, "training_mode is 1");
  says("LRN", {x}, {{"size", 2}}, "its window is even");
  says("LSTM", {x, x, x}, {}, "X, W and R need three dimensions", 3);
  says("LSTM", {randn({1, 1, 1}), randn({1, 3, 1}), randn({1, 4, 1})}, {}, "W, R and B differ in the number of gates",
       3);
  says("Reshape", {x, i({1, 1, 1, 1, 1, 1, 1, 1, 6})}, {}, "9 dimensions are more than 8");
  says("Reshape", {x, i({6, 1, 0})}, {}, "a size to be copied is not there");
  says("Flatten", {x}, {{"axis", 3}}, "axis 3 of (2, 3)");
  says("Split", {x, i({1})}, {}, "1 sizes for 2 parts", 2);
  says("Split", {x, i({3, -1})}, {}, "a part has a negative size", 2);
  says("Slice", {x, i({0}), i({1}), i({0}), i({0})}, {}, "a step is 0");
  says("Slice", {x, i({0}), i({1, 1})}, {}, "starts, ends, axes and steps differ in length");
  says("Pad", {x, i({1})}, {}, "1 pads for 2 axes");
  says("Pad", {x, i({1, 1, 1, 1})}, {{"mode", "fold"}}, "the mode is \"fold\"");
  says("Pad", {randn({1, 1, 1, 1, 1}), i({1, 0, 0, 0, 0, 0, 0, 0, 0, 0})}, {}, "more than four axes are padded");
  says("Constant", {}, {{"value_string", "a"}}, "it has no value that Levin reads");
  says("ConstantOfShape", {i({2})}, {{"value", f({1, 2})}}, "its value is not one number");
  says("EyeLike", {f({1})}, {}, "the input is no matrix");
  says("DepthToSpace", {x}, {{"blocksize", 2}}, "the channels do not divide into blocks");
  says("SpaceToDepth", {x}, {{"blocksize", 2}}, "the image does not divide into blocks");
  says("GatherND", {x, i({0, 0, 0})}, {}, "tuples of 3 index (2, 3)");
  says("GatherND", {x, i({0})}, {{"batch_dims", 1}}, "batch_dims is not 0");
  says("ScatterElements", {x, i({0, 0}).view({1, 2}), x.narrow(0, 0, 1).narrow(1, 0, 2)}, {{"reduction", "xor"}},
       "the reduction is \"xor\"");
  says("OneHot", {i({0}), tensor(int64_t{2}), f({1})}, {}, "values are not two numbers");
  says("ReverseSequence", {x, i({1})}, {}, "the lengths do not fit the batch");
  says("ReverseSequence", {x, i({1, 1, 9})}, {}, "length 9 is not within 2 steps");
  says("Resize", {x, Tensor(), Tensor(), i({2, 3})}, {{"mode", "linear"}}, "it resizes other axes");
  says("Resize", {x, Tensor(), f({1, 1, 1})}, {{"mode", "linear"}}, "it has more scales than axes");
  says("ReduceSum", {x, i({0, 0, 0, 0, 0, 0, 0, 0, 0})}, {}, "it has more axes than a tensor");
  interop::OnnxModel model(bytes_of(encode(model_of("Relu", {x}, {}, 1, 17))), "test.onnx");
  CHECK_THROWS_WITH_AS(model({x, x}), "[OnnxModel] 2 inputs are given, but the network takes 1: x0.", ValueError);
}
