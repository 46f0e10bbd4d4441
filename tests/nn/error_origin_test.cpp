// An error that leaves a network says in which of its modules it arose.
#include <levin/autograd/ops.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>

using namespace levin;

namespace {

struct Block : nn::Module {
  explicit Block(int64_t inputs) : conv1(add<nn::Conv2d>("conv1", inputs, 8, 3)) {}
  nn::Conv2d& conv1;
  Tensor forward(const Tensor& x) override { return relu(conv1(x)); }
};

/// The convolution of its fourth layer expects 9 channels and gets 8.
struct Deep : nn::Module {
  nn::ModuleList<Block>& layers = add<nn::ModuleList<Block>>("layers");
  Deep() {
    for (const int64_t inputs : {3, 8, 8, 9}) layers.append(inputs);
  }
  Tensor forward(const Tensor& x) override {
    Tensor y = x;
    for (Block& layer : layers) y = layer(y);
    return y;
  }
};

struct TwoInputs : nn::Layer<TwoInputs> {
  Deep& inner = add<Deep>("inner");
  nn::Linear& gate = add<nn::Linear>("gate", 2, 1);
  Tensor forward(const Tensor& x, const Tensor& g) {
    const Tensor scale = gate(g);
    return scale * inner(x);
  }
};

struct Quota : ValueError {
  explicit Quota(int c) : ValueError("[quota] none is left."), code(c) {}
  int code;
};

/// Throws what it was told to.
struct Thrower : nn::Layer<Thrower> {
  std::function<void()> f;
  Tensor forward(const Tensor& x) override { return f ? f(), x : x; }
};
struct Around : nn::Module {
  Thrower& thrower = add<Thrower>("thrower");
  Tensor forward(const Tensor& x) override { return thrower(x) * 2.0; }
};

template <class E, class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing was thrown";
}

const std::string conv_message = "[conv2d] x has 8 channels; weight (8, 9, 3, 3) with 1 groups takes 9.";
Tensor image() { return ones({1, 3, 12, 12}); }

}  // namespace

TEST_CASE("an error in a network names the module by its path from the one that the program called, once") {
  Deep net;
  CHECK(message_of<ShapeError>([&] { net(image()); }) == "in layers.3.conv1 (Conv2d): " + conv_message);
  nn::Module& base = net;
  CHECK(message_of<ShapeError>([&] { base(image()); }) == "in layers.3.conv1 (Conv2d): " + conv_message);
  CHECK(message_of<ShapeError>([&] { base.call({image()}); }) == "in layers.3.conv1 (Conv2d): " + conv_message);
  CHECK(message_of<std::exception>([&] { net(image()); }) == "in layers.3.conv1 (Conv2d): " + conv_message);

  nn::Sequential sequential(nn::Identity{}, nn::Sequential(nn::Identity{}, Deep{}));
  CHECK(message_of<ShapeError>([&] { sequential(image()); }) == "in 1.1.layers.3.conv1 (Conv2d): " + conv_message);

  TwoInputs two;
  CHECK(message_of<ShapeError>([&] { two(image(), ones({2})); }) ==
        "in inner.layers.3.conv1 (Conv2d): " + conv_message);
  CHECK(message_of<ShapeError>([&] { two(image(), ones({3})); }).starts_with("in gate (Linear): [linear] "));
  try {
    two(image(), ones({2}));
  } catch (const Error& e) {
    REQUIRE(e.origin());
    CHECK(e.origin()->path == "inner.layers.3.conv1");
    CHECK(e.origin()->type == "Conv2d");
    const Error copy = e;
    CHECK(std::string(copy.what()) == e.what());
  }
}

TEST_CASE("an error of the called module itself is unchanged, and so is one that leaves no module") {
  Deep net;
  Block& last = net.layers[3];
  CHECK(message_of<ShapeError>([&] { last.conv1(ones({1, 8, 5, 5})); }) == conv_message);
  CHECK(message_of<ShapeError>([&] { last.conv1.forward(ones({1, 8, 5, 5})); }) == conv_message);
  CHECK(message_of<ShapeError>([&] { last(ones({1, 8, 5, 5})); }) == "in conv1 (Conv2d): " + conv_message);
  try {
    matmul(ones({2, 3}), ones({2, 3}));
  } catch (const Error& e) {
    CHECK_FALSE(e.origin());
  }
}

TEST_CASE("the exception remains the one thrown: subclasses, their members, and exceptions of other libraries") {
  Around net;
  const Tensor x = ones({1});
  net.thrower.f = [] { throw Quota(7); };
  try {
    net(x);
    FAIL("nothing was thrown");
  } catch (const Quota& e) {
    CHECK(e.code == 7);
    CHECK(std::string(e.what()) == "in thrower (Thrower): [quota] none is left.");
  }
  net.thrower.f = [] { throw std::runtime_error("[quota] none is left."); };
  CHECK(message_of<std::runtime_error>([&] { net(x); }) == "[quota] none is left.");
  net.thrower.f = {};
  CHECK(net(x).item<float>() == 2);
}

TEST_CASE("an error from a module that is no descendant names the module that called it") {
  Deep other;
  Around net;
  // The path is the one inside the other network, where it arose.
  net.thrower.f = [&] { other(image()); };
  CHECK(message_of<ShapeError>([&] { net(ones({1})); }) == "in layers.3.conv1 (Conv2d): " + conv_message);
  nn::Conv2d alone(9, 8, 3);
  net.thrower.f = [&] { alone(ones({1, 8, 5, 5})); };
  CHECK(message_of<ShapeError>([&] { net(ones({1})); }) == "in thrower (Thrower): " + conv_message);
}

TEST_CASE("errors and hooks: those of a hook name its module, and later calls and backward hooks are as before") {
  Around net;
  net.thrower.f = [] { throw Quota(1); };
  const Tensor x = ones({1}).requires_grad_();
  std::vector<std::string> calls;
  auto before = net.thrower.register_forward_pre_hook([&](nn::Module&, const auto&) { calls.push_back("before"); });
  net.thrower.register_full_backward_hook([&](nn::Module&, const auto& grad_inputs, const auto&) {
    calls.push_back("backward");
    CHECK(grad_inputs[0].template item<float>() == 2);
  });
  CHECK(message_of<Quota>([&] { net(x); }) == "in thrower (Thrower): [quota] none is left.");
  net.thrower.f = {};
  net(x).backward();
  CHECK(calls == std::vector<std::string>{"before", "before", "backward"});
  before.remove();

  {
    auto fails = net.thrower.register_forward_hook([](nn::Module&, const auto&, const auto&) { throw Quota(2); });
    CHECK(message_of<Quota>([&] { net(x); }) == "in thrower (Thrower): [quota] none is left.");
    fails.remove();
  }
  // Backward leaves no forward.
  auto fails = net.thrower.register_full_backward_hook([](nn::Module&, const auto&, const auto&) { throw Quota(3); });
  const Tensor y = net(x);
  CHECK(message_of<Quota>([&] { y.backward(); }) == "[quota] none is left.");
}
