// Trains a network whose halves lie on different devices, in a plain loop: ./run model_parallel --help
#include <fmt/format.h>

#include <chrono>

#include "autoencoder.h"

using namespace levin;

namespace {

struct Options {
  std::string encoder = "cpu", decoder = "cpu";
  std::int64_t steps = 900, batch_size = 128, seed = 1, threads = 0;
  double lr = 2e-3;
  std::string data = data::kFashionMnistDir;
};

bool parse(int argc, char** argv, Options& o) {
  CommandLine line("Trains an autoencoder on Fashion-MNIST, with the encoder on one device, the decoder on another.");
  line.add("encoder", o.encoder, "Device of the encoder; several, separated by commas, split its batch");
  line.add("decoder", o.decoder, "Device of the decoder; several, separated by commas, split its batch");
  line.add("steps", o.steps, "Training steps", 1);
  line.add("batch-size", o.batch_size, "Images per step", 1);
  line.add("lr", o.lr, "Learning rate");
  line.add("seed", o.seed, "Seed of the weights and the order");
  line.add("threads", o.threads, "Cores to use; 0 for all");
  line.add_path("data", o.data, "Folder of the IDX files, plain or .gz");
  if (!line.parse(argc, argv)) return false;
  if (!(o.lr > 0)) throw UsageError(fmt::format("--lr {}: give a number above 0.", o.lr));
  return true;
}

/// Parses "cpu" or several devices separated by commas.
std::vector<Device> devices(const char* option, const std::string& text) {
  std::vector<Device> list;
  for (std::size_t at = 0; at <= text.size(); at = std::min(text.find(',', at), text.size()) + 1) {
    try {
      list.push_back(parse_device(text.substr(at, text.find(',', at) - at)));
      require_device(list.back());
    } catch (const DeviceError& e) {
      throw UsageError(fmt::format("{} {}: {}", option, text, e.what()));
    }
  }
  return list;
}

/// Returns the mean squared error per pixel in [0, 1] over the test images.
double error_of(Autoencoder& net, const Tensor& images) {
  const no_grad guard;
  double sum = 0;
  const auto parts = split(images, 500);
  for (const Tensor& x : parts) sum += square(net(x) - x.to(net.decoder.device())).mean().item<double>();
  return sum / static_cast<double>(parts.size());
}

int run(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) return 0;
  const auto of_encoder = devices("--encoder", o.encoder), of_decoder = devices("--decoder", o.decoder);
  if (o.threads > 0) set_num_threads(static_cast<int>(o.threads));
  manual_seed(static_cast<std::uint64_t>(o.seed));

  Autoencoder net;
  net.place(of_encoder, of_decoder);
  optim::AdamW opt(net.parameters(), {.lr = o.lr});
  const auto pixels = [](const Tensor& x) { return x * 0.3530 + 0.2860; };    // undoes the dataset's normalisation
  const auto [test, test_labels] = data::FashionMnist("test", o.data).all();
  const Tensor unseen = pixels(test);  // (10000, 1, 28, 28)
  data::DataLoader loader(data::FashionMnist("train", o.data), {.batch_size = o.batch_size, .shuffle = true});

  const double before = error_of(net, unseen);
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t step = 0; step < o.steps;) {
    for (const auto& [images, labels] : loader) {
      const Tensor x = pixels(images);
      const Tensor loss = square(net(x) - x.to(net.decoder.device())).mean();
      opt.zero_grad();
      loss.backward();
      opt.step();
      if (++step % 100 == 0) fmt::print("step {}/{}  loss {:.4f}\n", step, o.steps, loss.item<double>());
      if (step == o.steps) break;
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("result: test_error={:.5f} before={:.5f} encoder={} decoder={} steps={} train_seconds={:.1f}\n",
             error_of(net, unseen), before, o.encoder, o.decoder, o.steps, seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
