// Weights shared by two modules: `decoder.weight = encoder.weight`.
#include <levin/autograd/ops.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>

using namespace levin;

namespace {

struct Language : nn::Module {
  nn::Embedding& encoder = add<nn::Embedding>("encoder", 7, 4);
  nn::Linear& middle = add<nn::Linear>("middle", 4, 4);
  nn::Linear& decoder = add<nn::Linear>("decoder", 4, 7, {.bias = false});
  Tensor forward(const Tensor& x) override { return decoder(tanh(middle(encoder(x)))); }
};

struct Tied : Language {
  Tied() { decoder.weight = encoder.weight; }
};

std::vector<double> values(const Tensor& t) { return t.detach().to_vector<double>(); }
Tensor words() { return tensor({int64_t{1}, int64_t{5}, int64_t{0}}); }

}  // namespace

TEST_CASE("an assigned weight is one parameter of both modules, with the gradients of both uses") {
  Tied net;
  CHECK(net.decoder.weight.is_same(net.encoder.weight));
  CHECK(net.named_parameters().size() == 3);
  CHECK(net.named_parameters(true, false).size() == 4);
  CHECK(net.parameter_count() == 28 + 20);
  net(words()).sum().backward();
  const auto both = values(net.encoder.weight.grad());
  Language apart;
  apart.load_state_dict(net.state_dict());
  apart(words()).sum().backward();
  CHECK(both == values(apart.encoder.weight.grad() + apart.decoder.weight.grad()));
  // It follows conversions and moves of the module.
  net.to(kFloat64);
  CHECK(net.decoder.weight.dtype() == kFloat64);
  Tied moved = std::move(net);
  CHECK(moved.decoder.weight.is_same(moved.encoder.weight));
  CHECK(moved.named_parameters()[0].second.is_same(moved.decoder.weight));
}

TEST_CASE("an assigned weight replaces the module's own, also in state_dict and in calls") {
  nn::Linear a(3, 2), b(3, 2);
  const Tensor x = ones({1, 3});
  CHECK(values(a(x)) != values(b(x)));
  a.weight = b.weight;
  a.bias = b.bias;
  CHECK(values(a(x)) == values(b(x)));
  CHECK(a.state_dict().at("weight").shares_storage(b.weight));
  static_assert(!std::is_assignable_v<decltype((a.weight)), Tensor>);  // as in PyTorch, only a parameter
}

TEST_CASE("shared parameters: state dicts have both names, and one of them is enough to load") {
  Tied from;
  const StateDict both = from.state_dict();
  CHECK(both.contains("encoder.weight"));
  CHECK(both.contains("decoder.weight"));
  for (const char* dropped : {"", "encoder.weight", "decoder.weight"}) {
    CAPTURE(dropped);
    StateDict state;
    for (const auto& [name, value] : both)
      if (name != dropped) state.set(name, value.clone());
    Tied to;
    CHECK(to.load_state_dict(state).missing.empty());
    CHECK(values(to.decoder.weight) == values(from.encoder.weight));
    CHECK(to.decoder.weight.is_same(to.encoder.weight));
  }
  StateDict none;
  none.set("middle.weight", zeros({4, 4}));
  Tied to;
  CHECK(to.load_state_dict(none, {.strict = false}).missing ==
        std::vector<std::string>{"encoder.weight", "middle.bias", "decoder.weight"});
}

TEST_CASE("shared parameters: a clone shares its own copy, wherever they were tied") {
  Language net;
  net.decoder.weight = net.encoder.weight;  // not by the constructor, which a clone repeats
  Language copy = nn::clone(net);
  CHECK(copy.decoder.weight.is_same(copy.encoder.weight));
  CHECK_FALSE(copy.encoder.weight.shares_storage(net.encoder.weight));
  CHECK(values(copy(words())) == values(net(words())));
  copy(words()).sum().backward();
  CHECK(copy.encoder.weight.grad().is_same(copy.decoder.weight.grad()));

  Tied tied;
  Tied second = nn::clone(tied);
  CHECK(second.decoder.weight.is_same(second.encoder.weight));
  CHECK(values(second(words())) == values(tied(words())));
  // Parameters that are no longer shared are not shared in the clone.
  nn::Linear other(4, 7, {.bias = false});
  tied.decoder.weight = other.weight;
  Tied third = nn::clone(tied);
  CHECK_FALSE(third.decoder.weight.is_same(third.encoder.weight));
  CHECK(values(third(words())) == values(tied(words())));
}
