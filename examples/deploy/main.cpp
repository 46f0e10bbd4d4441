// Trains a classifier, or takes a trained one, and writes the files that another program needs to run it, with float32
// and with int8 weights, and as ONNX: ./run deploy --help. examples/classifier is that other program.
#include <levin/interop/onnx.h>
#include <levin/interop/safetensors.h>
#include <levin/trainer/checkpoint/checkpoint.h>

#include <fmt/format.h>

#include "mnist/lit_mnist.h"

using namespace levin;

namespace {

int run(int argc, char** argv) {
  std::filesystem::path from = "runs/mnist/best", out = "runs/deploy", data = data::kFashionMnistDir;
  TrainerConfig config{.max_epochs = 3, .default_root_dir = "runs/deploy/training", .seed = 1};
  CommandLine line("Trains LeNet on Fashion-MNIST and writes it for deployment.");
  line.add("from", from, "Checkpoint of ./run mnist; a network is trained where there is none");
  line.add("out", out, "Folder for the files");
  line.add("data", data, "Folder of the IDX files, plain or .gz");
  line.add_trainer(config);
  if (!line.parse(argc, argv)) return 0;

  LitMnist model("lenet", 4e-3);
  if (std::filesystem::exists(from)) {
    fmt::print("weights: {}\n", from.string());
    model.net.load_state_dict(read_checkpoint(from).model.sub("net."));
  } else {
    Trainer(config).fit(model, data::fashion_mnist({.batch_size = 64, .seed = 1, .dir = data}));
  }

  std::filesystem::create_directories(out);
  const auto floats = out / "model.safetensors", bytes = out / "model.int8.safetensors";
  interop::save_safetensors(floats, model.net.state_dict());
  interop::export_onnx(model.net, {zeros({2, 1, 28, 28})}, out / "model.onnx");
  nn::quantize_(model.net);
  interop::save_safetensors(bytes, model.net.state_dict());
  const auto size = [](const std::filesystem::path& file) { return std::filesystem::file_size(file); };
  fmt::print("{}: {} bytes\n{}: {} bytes\n", floats.string(), size(floats), bytes.string(), size(bytes));
  fmt::print("result: float32_bytes={} int8_bytes={}\n", size(floats), size(bytes));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
