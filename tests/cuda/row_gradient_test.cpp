// Row-wise gradients of embeddings on cuda: the same rows and steps as on the CPU.

#include "support/tolerance.h"

#include <levin/autograd/autograd.h>
#include <levin/optim/optim.h>

#include <doctest/doctest.h>

using namespace levin;

TEST_CASE("row-wise gradients on cuda have the rows and the steps of the CPU") {
  manual_seed(91);
  const Tensor start = randn({40, 5}), index = randint(0, 40, {6, 9}), g = randn({6, 9, 5});
  const auto trained = [&](Device device, bool adagrad) {
    const Tensor w = start.to(device).clone().requires_grad_();
    optim::SGD sgd(std::vector<Tensor>{w}, {.lr = 0.1});
    optim::Adagrad other(std::vector<Tensor>{w}, {.lr = 0.1});
    optim::Optimizer& optimizer = adagrad ? static_cast<optim::Optimizer&>(other) : sgd;
    for (int step = 0; step < 3; ++step) {
      embedding(w, (index + step).remainder(40).to(device), 3, true).backward(g.to(device));
      const auto rows = row_grad(w);
      REQUIRE(rows);
      CHECK(rows->rows.device() == device);
      optimizer.step();
      optimizer.zero_grad();
    }
    return w.detach().to(kCpu);
  };
  for (const bool adagrad : {false, true}) {
    const Tensor expected = trained(kCpu, adagrad);
    CHECK(test::compare(trained(cuda(0), adagrad), expected, {.ulps = 4, .scale = 1}, 4) == "");
    CHECK(expected.to_vector<float>() != start.to_vector<float>());
  }
}
