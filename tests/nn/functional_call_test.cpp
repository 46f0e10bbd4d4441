// functional_call runs a module with other tensors: values, gradients, and no lasting effect on the module.
#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>
#include <levin/nn/nn.h>

#include <stdexcept>

using namespace levin;

namespace {

struct Net : nn::Module {
  nn::Linear& fc1 = add<nn::Linear>("fc1", 3, 4);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 4, 2);
  Tensor forward(const Tensor& x) override { return fc2(tanh(fc1(x))); }
};

/// Returns copies of all values under their names, as leaves.
StateDict leaves_of(const nn::Module& module) {
  StateDict result;
  for (const auto& [name, t] : module.state_dict()) result.set(name, t.clone().requires_grad_(t.is_floating()));
  return result;
}

std::vector<double> values(const Tensor& t) { return t.detach().to_vector<double>(); }

}  // namespace

TEST_CASE("functional_call: the given tensors are used and get the gradients, the module is unchanged") {
  manual_seed(1);
  Net net, other;
  net.to(kFloat64), other.to(kFloat64);
  const Tensor x = randn({5, 3}, {.dtype = kFloat64});
  const auto before = values(net.fc1.weight);
  const StateDict given = leaves_of(other);
  const Tensor y = nn::functional_call(net, given, x);
  CHECK(values(y) == values(other(x)));
  CHECK(values(net.fc1.weight) == before);
  CHECK(net.fc1.weight.is_leaf());
  // Backward runs after the module has its own values again.
  square(y).sum().backward();
  square(other(x)).sum().backward();
  for (const auto& [name, p] : other.named_parameters()) {
    CAPTURE(name);
    CHECK(values(given.at(name).grad()) == values(p.grad()));
  }
  for (const auto& entry : net.named_parameters()) CHECK_FALSE(entry.second.grad().defined());
  // With only some given, the rest are the module's, which get their own gradients.
  const Tensor w = given.at("fc2.weight").detach().requires_grad_();
  nn::functional_call(net, {{"fc2.weight", w}}, x).sum().backward();
  CHECK(w.grad().defined());
  CHECK(net.fc1.weight.grad().defined());
  CHECK_FALSE(net.fc2.weight.grad().defined());
}

TEST_CASE("functional_call: second gradients, as in meta-learning") {
  manual_seed(2);
  Net net;
  net.to(kFloat64);
  const Tensor x = randn({4, 3}, {.dtype = kFloat64}), y = randn({4, 2}, {.dtype = kFloat64});
  const auto after_step = [&](const std::vector<Tensor>& w) {
    const Tensor loss = square(nn::functional_call(net, {{"fc1.weight", w[0]}}, x) - y).sum();
    const Tensor stepped = w[0] - 0.05 * grad({loss}, {w[0]}, {.create_graph = true})[0];
    return std::vector<Tensor>{square(nn::functional_call(net, {{"fc1.weight", stepped}}, x) - y).sum()};
  };
  CHECK(gradcheck(after_step, {net.fc1.weight.detach().clone().requires_grad_()}) == "");
}

TEST_CASE("functional_call: edits of buffers go to the given ones") {
  nn::BatchNorm2d norm(2);
  const Tensor mean = full({2}, 5.0), batches = tensor({int64_t{7}}).reshape({});
  nn::functional_call(norm, {{"running_mean", mean}, {"num_batches_tracked", batches}}, ones({3, 2, 2, 2}));
  CHECK(values(mean) == std::vector<double>(2, 0.9f * 5 + 0.1f));
  CHECK(batches.item<int64_t>() == 8);
  CHECK(values(norm.running_mean) == std::vector<double>(2, 0.0));
  CHECK(norm.num_batches_tracked.item<int64_t>() == 0);
  CHECK(values(norm.running_var) != std::vector<double>(2, 1.0));  // its own buffer, because none was given
}

TEST_CASE("functional_call: results that are parameters, exceptions, wrong names and shapes") {
  struct Table : nn::Module {
    Tensor table = register_parameter("table", zeros({2}));
    bool broken = false;
    Tensor forward(const Tensor&) override {
      if (broken) throw std::runtime_error("broken");
      return table;
    }
  };
  Table module;
  const Tensor given = ones({2}).requires_grad_();
  const Tensor y = nn::functional_call(module, {{"table", given}}, {});
  CHECK(values(y) == values(given));
  y.sum().backward();
  CHECK(values(given.grad()) == values(given));
  module.broken = true;
  CHECK_THROWS_WITH(nn::functional_call(module, {{"table", given}}, {}), "broken");
  CHECK(values(module.table) == std::vector<double>(2, 0.0));
  CHECK_THROWS_WITH_AS(nn::functional_call(module, {{"chair", given}}, {}),
                       "[functional_call] a Table has no parameter or buffer \"chair\".", StateError);
  CHECK_THROWS_WITH_AS(nn::functional_call(module, {{"table", ones({3})}}, {}),
                       "[functional_call] \"table\" has shape (2,), the tensor given for it (3,).", StateError);
  CHECK_THROWS_AS(nn::Substitution({module.table}, {}), ValueError);
  CHECK_THROWS_AS(nn::Substitution({module.table}, {Tensor()}), ValueError);
}
