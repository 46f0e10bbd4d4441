#include "programs/programs.h"

#include "support/files.h"
#include "support/paths.h"

using namespace levin;

namespace {

nn::Sequential make_net() {
  return nn::Sequential(nn::Conv2d(1, 4, 3, {.padding = 1}), nn::BatchNorm2d(4), nn::ReLU(), nn::Flatten(),
                        nn::Linear(4 * 36, 3));
}

}  // namespace

TEST_CASE("a network of PyTorch's safetensors file computes PyTorch's output, and its copy the same bits") {
  auto [tensors, metadata] = interop::load_safetensors(test::source_dir() / "tests/programs/exchange.safetensors");
  CHECK(metadata.at("made_by") == "PyTorch");
  auto x = tensors.at("input"), expected = tensors.at("output");
  auto net = make_net();
  net.load_state_dict(tensors.sub("net."));
  net.eval();
  no_grad guard;
  auto y = net(x);
  CHECK((y - expected).abs().max().item<double>() < 1e-6);

  test::TempDir dir;
  interop::save_safetensors(dir.path / "net.safetensors", net.state_dict());
  auto copy = make_net();
  copy.load_state_dict(interop::load_safetensors(dir.path / "net.safetensors").tensors);
  copy.eval();
  CHECK(all(copy(x) == y).item<bool>());
}
