// Trains a classifier, or takes a trained one, and writes the files that another program needs to run it, with float32
// and with int8 weights, and as ONNX: ./run deploy --help. examples/classifier is that other program.
#include <levin/interop/onnx.h>
#include <levin/interop/safetensors.h>
#include <levin/trainer/checkpoint/checkpoint.h>

#include <fmt/format.h>

#include <filesystem>

#include "mnist/lit_mnist.h"

using namespace levin;

namespace {

int run(int argc, char** argv) {
  std::string from = "runs/mnist/best", out = "runs/deploy", data = data::kFashionMnistDir;
  TrainerConfig config{.max_epochs = 3, .default_root_dir = "runs/deploy/training", .seed = 1};
  CommandLine line("Trains LeNet on Fashion-MNIST and writes it for deployment.");
  line.add_path("from", from, "Checkpoint of ./run mnist; a network is trained where there is none");
  line.add_path("out", out, "Folder for the files");
  line.add_path("data", data, "Folder of the IDX files, plain or .gz");
  line.add_trainer(config);
  if (!line.parse(argc, argv)) return 0;

  LitMnist model("lenet", 4e-3);
  if (std::filesystem::exists(from)) {
    fmt::print("weights: {}\n", from);
    model.net.load_state_dict(read_checkpoint(from).model.sub("net."));
  } else {
    Trainer(config).fit(model, data::fashion_mnist({.batch_size = 64, .seed = 1, .dir = data}));
  }

  const std::filesystem::path folder = out;
  std::filesystem::create_directories(folder);
  const std::string floats = folder / "model.safetensors", bytes = folder / "model.int8.safetensors";
  interop::save_safetensors(floats, model.net.state_dict());
  interop::export_onnx(model.net, {zeros({2, 1, 28, 28})}, folder / "model.onnx");
  nn::quantize_(model.net);
  interop::save_safetensors(bytes, model.net.state_dict());
  const auto size = [](const std::string& file) { return std::filesystem::file_size(file); };
  fmt::print("{}: {} bytes\n{}: {} bytes\n", floats, size(floats), bytes, size(bytes));
  fmt::print("result: float32_bytes={} int8_bytes={}\n", size(floats), size(bytes));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
