// docs/onnx.md shows a program, which is compiled and run here, and lists layers, operations and operators.
#include "cases.h"

#include <levin/autograd/ops.h>
#include <levin/interop/onnx.h>
#include <levin/optim/optim.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "interop/src/onnx/interpreter.h"
#include "interop/src/onnx/lowering.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/text/pattern.h"

using namespace levin;

// clang-format off
namespace onnx_page {

// begin of the page's program
double exchange(nn::Module& net, const std::string& path) {
  const Tensor example = randn({1, 1, 28, 28});                  // one image
  interop::export_onnx(net, {example}, path, {.input_names = {"image"}, .output_names = {"logits"}});

  interop::OnnxModel model = interop::load_onnx(path);           // a nn::Module
  const Tensor images = randn({16, 1, 28, 28});                  // any number of images
  const Tensor logits = model({images})[0];                      // lists of tensors in and out
  fmt::print("{}", model.to_text());

  optim::SGD sgd(model.parameters(), {.lr = 0.01});              // its weights can be trained on
  cross_entropy(logits, randint(0, 10, {16})).backward();
  sgd.step();
  return (logits - net.eval()(images)).abs().max().item<double>();
}
// end of the page's program

}  // namespace onnx_page
// clang-format on

namespace {

std::string between(const std::string& text, const std::string& open, const std::string& close) {
  const std::size_t begin = text.find(open);
  REQUIRE(begin != std::string::npos);
  const std::size_t start = begin + open.size(), end = text.find(close, start);
  REQUIRE(end != std::string::npos);
  return text.substr(start, end - start);
}

std::string page() { return io::read_text(test::source_dir() / "docs/onnx.md"); }

/// The names in backquotes of a part of the page.
std::set<std::string> listed(const std::string& part) {
  const std::string text = between(page(), "<!-- " + part + " -->", "<!-- end -->");
  const test::Pattern name("`([^`]+)`");
  std::set<std::string> names;
  for (const auto& m : name.find_all(text)) names.insert(m[1]);
  return names;
}

/// The layers that the headers of nn declare; containers and losses are none.
std::set<std::string> declared_layers() {
  const test::Pattern declaration(
      R"((?:class (\w+) : public (?:Layer<\1|Conv<|ConvTranspose<|Upsample))|(?:\bLEVIN_(?:ACTIVATION|ACTIVATION_OF|)"
      R"(ACTIVATION_IN_PLACE|ACTIVATION_OF_TWO|POOL|LP_POOL|ADAPTIVE_POOL|NUMBER_LAYER|PAD|CONSTANT_PAD|MAX_UNPOOL|)"
      R"(INSTANCE_NORM)\((\w+)))");
  std::set<std::string> names;
  for (const char* header : {"activation", "convolution", "layers", "normalization", "pooling", "recurrent",
                             "transformer", "windows"}) {
    const std::string text = io::read_text(test::source_dir() / "nn/include/levin/nn" / (std::string(header) + ".h"));
    for (const auto& m : declaration.find_all(text)) names.insert(m[1].empty() ? m[2] : m[1]);
  }
  names.erase("Class");  // the macros' own parameter
  return names;
}

}  // namespace

TEST_CASE("the program of the page on ONNX runs") {
  const std::string source = io::read_text(test::source_dir() / "tests/interop/onnx/page_test.cpp");
  CHECK(between(page(), "```cpp\n", "```") ==
        between(source, "// begin of the page's program\n", "// end of the page's program"));
  const test::TempDir folder;
  nn::Sequential net(nn::Conv2d(1, 4, 5), nn::BatchNorm2d(4), nn::ReLU(), nn::MaxPool2d(4), nn::Flatten(),
                     nn::Linear(144, 10));
  CHECK(onnx_page::exchange(net, folder.path / "net.onnx") < 1e-5);
}

TEST_CASE("the page on ONNX lists all layers, and each has a case or is refused") {
  std::set<std::string> cases;
  for (const test::OnnxCase& c : test::onnx_layer_cases()) cases.insert(c.name.substr(0, c.name.find(' ')));
  CHECK_MESSAGE(listed("layers") == cases, fmt::format("the page needs `{}`", fmt::join(cases, "`, `")));
  const std::set<std::string> refused = listed("refused");
  cases.insert(refused.begin(), refused.end());
  const std::set<std::string> layers = declared_layers();
  CHECK(layers.size() > 100);
  for (const std::string& name : layers) CHECK_MESSAGE(cases.contains(name), name << " has no case");
  for (const std::string& name : cases) CHECK_MESSAGE(layers.contains(name), name << " is no layer of nn");
}

TEST_CASE("the page on ONNX lists all operations and operators") {
  using namespace interop::onnx;
  // Names that programs do not call.
  const std::set<std::string> internal{"identity", "copy_", "power_spectrum", "pad_mode", "recurrent", "triangle"};
  std::set<std::string> operations, operators;
  for (const auto rows : {elementwise_export_rows(), shape_export_rows(), reduction_export_rows(),
                          layer_export_rows(), index_export_rows()})
    for (const ExportRow& row : rows)
      if (!internal.contains(row.op)) CHECK_MESSAGE(operations.insert(row.op).second, row.op << " has two rows");
  for (const auto rows : {elementwise_import_rows(), shape_import_rows(), reduction_import_rows(),
                          layer_import_rows(), index_import_rows(), image_import_rows()})
    for (const ImportRow& row : rows)
      CHECK(operators.insert(row.since > 1 ? fmt::format("{} {}", row.op, row.since) : row.op).second);
  CHECK_MESSAGE(listed("operations") == operations, fmt::format("the page needs `{}`", fmt::join(operations, "`, `")));
  CHECK_MESSAGE(listed("operators") == operators, fmt::format("the page needs `{}`", fmt::join(operators, "`, `")));
}
