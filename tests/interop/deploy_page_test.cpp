// docs/deploy.md shows a program; here it is compiled and run.
#include "support/files.h"

#include <levin/autograd/ops.h>
#include <levin/interop/safetensors.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>

#include <filesystem>

using namespace levin;

// clang-format off
namespace deploy_page {

// begin of the page's program
void deploy(nn::Module& trained, const std::string& file) {
  nn::quantize_(trained, {.mode = nn::QuantizeMode::weight_only_int8});  // in place
  interop::save_safetensors(file, trained.state_dict());
}

Tensor classify(const Tensor& images, const std::string& file) {
  nn::Sequential net(nn::Conv2d(1, 8, 3), nn::ReLU(), nn::Flatten(), nn::Linear(8 * 36, 10));
  nn::quantize_(net, {.mode = nn::QuantizeMode::weight_only_int8});      // the structure that the file belongs to
  net.load_state_dict(interop::load_safetensors(file).tensors);
  net.eval();
  const no_grad guard;                                                   // records nothing for gradients
  return argmax(net(images), 1);
}
// end of the page's program

}  // namespace deploy_page
// clang-format on

TEST_CASE("the program on the page about deployment compiles and works as described") {
  const std::string shown = test::program_of_page("docs/deploy.md");
  CHECK(shown.size() > 600);
  CHECK(shown == test::marked_program("tests/interop/deploy_page_test.cpp"));

  manual_seed(5);
  nn::Sequential net(nn::Conv2d(1, 8, 3), nn::ReLU(), nn::Flatten(), nn::Linear(8 * 36, 10));
  const Tensor images = randn({40, 1, 8, 8});
  const std::size_t floats = interop::encode_safetensors(net.state_dict()).size();
  const Tensor expected = argmax(net(images), 1);
  const auto file = std::filesystem::temp_directory_path() / "levin_deploy_page.safetensors";
  deploy_page::deploy(net, file);
  const auto bytes = std::filesystem::file_size(file);
  CHECK(bytes * 100 < floats * 40);  // of so small a net the header is a large part
  const Tensor classes = deploy_page::classify(images, file);
  CHECK(equal(classes, argmax(net(images), 1)));
  CHECK(eq(classes, expected).sum().item<int64_t>() >= 38);
  std::filesystem::remove(file);
}

TEST_CASE("int8 weights and scales in a file keep their bits and types") {
  nn::Linear layer(64, 32);
  nn::quantize_(layer);
  const auto read = interop::decode_safetensors(interop::encode_safetensors(layer.state_dict()), "file").tensors;
  CHECK(read.find("weight")->dtype() == kInt8);
  CHECK(equal(*read.find("weight"), layer.weight));
  CHECK(read.find("weight_scale")->dtype() == kFloat32);
  CHECK(read.find("weight_scale")->sizes() == Shape{32, 1});
  CHECK(equal(*read.find("weight_scale"), layer.int8.scale));
}
