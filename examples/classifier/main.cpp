// Runs the files that examples/deploy wrote, without Trainer, optimizer or gradient: in float32, with int8 weights, and
// from ONNX, which needs no code of the network. Prints the accuracy on the test set and the time of an image in
// the fastest of 41 rounds: classifier [FOLDER [DATA]]
#include <levin/data/mnist.h>
#include <levin/interop/onnx.h>
#include <levin/interop/safetensors.h>
#include <levin/nn/nn.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "deploy/lenet.h"

using namespace levin;

namespace {

/// A network as it runs, and what was measured of it.
struct Variant {
  std::string name;
  std::string file;
  std::shared_ptr<nn::Module> net;
  double accuracy = 0;
  std::vector<double> alone{}, of_64{};  // microseconds per image, of each round

  Tensor operator()(const Tensor& images) const { return net->call({images})[0]; }
};

/// Fills LeNet with the weights of a file, which are int8 where there is a mode.
Variant weights(const std::string& name, const std::string& file, std::optional<nn::QuantizeMode> mode = std::nullopt) {
  const auto net = std::make_shared<nn::Sequential>(lenet());
  if (mode) nn::quantize_(*net, {.mode = *mode});
  net->load_state_dict(interop::load_safetensors(file).tensors);
  net->eval();
  return {name, file, net};
}

/// Microseconds per image for `calls` batches of the images.
double time_of(const Variant& net, const Tensor& images, int64_t batch, int64_t calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < calls; ++i) net(images.narrow(0, i * batch % (images.size(0) - batch + 1), batch));
  const std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - start;
  return passed.count() / static_cast<double>(calls * batch);
}

int run(const std::filesystem::path& folder, const std::string& data) {
  const no_grad guard;
  const data::FashionMnist test("test", data);
  const Tensor images = test.all()[0], labels = test.all()[1];  // (10000, 1, 28, 28), (10000)

  using nn::QuantizeMode;
  std::vector<Variant> variants = {
      weights("float32", folder / "model.safetensors"),
      weights("weight_only_int8", folder / "model.int8.safetensors", QuantizeMode::weight_only_int8),
      weights("dynamic_int8", folder / "model.int8.safetensors", QuantizeMode::dynamic_int8),
      {"onnx", folder / "model.onnx", std::make_shared<interop::OnnxModel>(interop::load_onnx(folder / "model.onnx"))}};
  for (Variant& v : variants) {
    int64_t right = 0;
    for (int64_t i = 0; i < images.size(0); i += 500)
      right += eq(argmax(v(images.narrow(0, i, 500)), 1), labels.narrow(0, i, 500)).sum().item<int64_t>();
    v.accuracy = static_cast<double>(right) / static_cast<double>(images.size(0));
  }
  for (int round = 0; round < 41; ++round)  // alternating, so that another load of the machine is the same for all
    for (Variant& v : variants) {
      v.alone.push_back(time_of(v, images, 1, 40));
      v.of_64.push_back(time_of(v, images, 64, 2));
    }

  fmt::print("{:<18}{:>10}{:>12}{:>16}{:>18}\n", "weights", "bytes", "accuracy", "us, one image", "us, batch of 64");
  for (const Variant& v : variants)
    fmt::print("{:<18}{:>10}{:>12.4f}{:>16.1f}{:>18.1f}\n", v.name, std::filesystem::file_size(v.file), v.accuracy,
               *std::ranges::min_element(v.alone), *std::ranges::min_element(v.of_64));
  fmt::print("result: float32_accuracy={:.4f} weight_only_accuracy={:.4f} dynamic_accuracy={:.4f} onnx_accuracy={:.4f}",
             variants[0].accuracy, variants[1].accuracy, variants[2].accuracy, variants[3].accuracy);
  fmt::print("\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "runs/deploy", argc > 2 ? argv[2] : data::kFashionMnistDir);
  } catch (const Error& e) {
    fmt::print(stderr, "error: {}\n", e.what());
    return 1;
  }
}
