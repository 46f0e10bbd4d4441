#include <levin/trainer/callbacks/model_summary.h>

#include "trainer/toy.h"

#include <string>

using namespace levin;
using namespace levin::test;

namespace {

struct Branches : nn::Layer<Branches> {
  nn::Linear& used = add<nn::Linear>("used", 3, 4);
  nn::Linear& unused = add<nn::Linear>("unused", 3, 4);
  std::pair<Tensor, Tensor> forward(const Tensor& a, const Tensor& b) { return {used(a), used(b)}; }
};

}  // namespace

TEST_CASE("a summary with an input shows shapes, operations and bytes of each module") {
  nn::Sequential net(nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 10));
  net[0].eval();
  const Tensor x = ones({64, 784});
  const std::string text = summary(net, x);
  CAPTURE(text);
  // The first product alone takes 2 x 64 x 784 x 512 operations.
  CHECK(contains(text, "  0                      Linear               (64, 512)                 401,920"));
  CHECK(contains(text, "51.38 M"));
  CHECK(contains(text, "(64, 10)"));
  CHECK(contains(text, "407,050 parameters, 407,050 of them trainable, 1.6 MB"));
  CHECK(!net[0].is_training());
  CHECK(net.is_training());
  CHECK(net[2].is_training());
}

TEST_CASE("a summary of several inputs sums the calls of a module, and names those that are not called") {
  Branches net;
  const std::string text = summary(net, {ones({2, 3}), ones({5, 3})});
  CAPTURE(text);
  CHECK(contains(text, "(2, 4) (5, 4)"));
  CHECK(contains(text, "not called"));
  CHECK(contains(message_of<ValueError>([&] { summary(net, ones({2, 3})); }), "Branches"));
  CHECK_NOTHROW(net(ones({2, 3}), ones({5, 3})));  // the hooks are gone
}
