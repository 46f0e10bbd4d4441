// Steps of row-wise gradients: SGD and Adagrad as with dense ones, SparseAdam as PyTorch's; all others refuse by name.

#include "support/comparison.h"
#include "support/stored_values.h"
#include "support/tolerance.h"

#include <levin/autograd/autograd.h>
#include <levin/core/allocator.h>
#include <levin/nn/nn.h>
#include <levin/optim/optim.h>

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <memory>

using namespace levin;
using namespace levin::test;

namespace {

using Make = std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)>;

template <class O>
Make make(typename O::Options options) {
  return [options](const std::vector<Tensor>& params) { return std::make_unique<O>(params, options); };
}

/// The rows that step number `step` looks up: row 0 is padding, and row 11 is never used.
Tensor rows_of_step(int step) {
  return tensor<int64_t>({1, step * 5 % 11, 3, (step * 7 + 2) % 11, 1, 0}).reshape({2, 3});
}

void backward(const Tensor& weight, int step, bool sparse) {
  const Tensor y = embedding(weight, rows_of_step(step), 0, sparse);
  const Tensor w = formula(18, 200 + step).to(weight.dtype()).reshape({2, 3, 3});
  (sum(y * w) + sum(square(y))).backward();
}

Tensor start(DType dtype = kDouble) { return formula(36, 1).to(dtype).reshape({12, 3}).requires_grad_(); }

}  // namespace

TEST_CASE("SGD and Adagrad step rows to the bits of dense steps, and leave the others alone") {
  const std::vector<std::pair<const char*, Make>> kinds = {
      {"SGD", make<optim::SGD>({.lr = 0.1})},
      {"SGD, maximize", make<optim::SGD>({.lr = 0.1, .maximize = true})},
      {"SGD, momentum", make<optim::SGD>({.lr = 0.1, .momentum = 0.9, .dampening = 0.2})},
      {"SGD, Nesterov", make<optim::SGD>({.lr = 0.1, .momentum = 0.9, .nesterov = true})},
      {"Adagrad", make<optim::Adagrad>({.lr = 0.1})},
      {"Adagrad, decay",
       make<optim::Adagrad>({.lr = 0.1, .lr_decay = 0.3, .initial_accumulator_value = 0.5, .maximize = true})}};
  for (const auto& [name, make_optimizer] : kinds)
    for (const DType dtype : {kDouble, kFloat, kBFloat16}) {
      const Tensor sparse = start(dtype), dense = start(dtype), before = start(dtype).detach();
      const auto of_rows = make_optimizer({sparse}), of_all = make_optimizer({dense});
      for (int step = 0; step < 6; ++step) {
        backward(sparse, step, true);
        backward(dense, step, false);
        for (const auto* o : {&of_rows, &of_all}) {
          (*o)->step();
          (*o)->zero_grad(step % 2 == 0);
        }
        CHECK(!row_grad(sparse));
      }
      CHECK_MESSAGE(sparse.to_vector<double>() == dense.to_vector<double>(), name, ", ", name_of(dtype));
      CHECK(sparse.to_vector<double>() != before.to_vector<double>());
      CHECK(sparse.detach().select(0, 11).to_vector<double>() == before.select(0, 11).to_vector<double>());
      const StateDict a = of_rows->state_dict(), b = of_all->state_dict();
      REQUIRE(a.size() == b.size());
      for (const auto& [key, value] : a)
        CHECK_MESSAGE(value.to_vector<double>() == b.at(key).to_vector<double>(), name, ", ", key);
    }
}

TEST_CASE("steps of row-wise gradients are PyTorch's") {
  const StoredValues stored = read_stored_values("optimizers.txt");
  const std::vector<std::pair<std::string, Make>> kinds = {
      {"rows_sgd", make<optim::SGD>({.lr = 0.1})},
      {"rows_sgd_momentum", make<optim::SGD>({.lr = 0.1, .momentum = 0.9})},
      {"rows_adagrad", make<optim::Adagrad>({.lr = 0.1, .lr_decay = 0.2, .initial_accumulator_value = 0.1})},
      {"rows_sparse_adam", make<optim::SparseAdam>({.lr = 0.1, .betas = {0.8, 0.95}, .eps = 1e-3})},
      {"rows_sparse_adam_maximize", make<optim::SparseAdam>({.lr = 0.05, .maximize = true})}};
  for (const auto& [name, make_optimizer] : kinds) {
    const Tensor w = start();
    const auto optimizer = make_optimizer({w});
    for (int step = 0; step < 6; ++step) {
      backward(w, step, true);
      optimizer->step();
      optimizer->zero_grad();
      const std::string wrong =
          compare(w.detach(), stored.at(name + "/step" + std::to_string(step)), {.ulps = 8, .scale = 1}, 10);
      CHECK_MESSAGE(wrong.empty(), name, ", ", step, ": ", wrong);
    }
  }
}

TEST_CASE("optimizers that cannot apply a row-wise gradient name it and change nothing") {
  const std::vector<std::pair<std::string, Make>> kinds = {
      {"Adadelta", make<optim::Adadelta>({})}, {"Adam", make<optim::Adam>({})},   {"AdamW", make<optim::AdamW>({})},
      {"Adamax", make<optim::Adamax>({})},     {"ASGD", make<optim::ASGD>({})},   {"LAMB", make<optim::LAMB>({})},
      {"Lion", make<optim::Lion>({})},         {"Muon", make<optim::Muon>({})},   {"NAdam", make<optim::NAdam>({})},
      {"QAdam", make<optim::QAdam>({})},       {"RAdam", make<optim::RAdam>({})}, {"RMSprop", make<optim::RMSprop>({})},
      {"Rprop", make<optim::Rprop>({})}};
  for (const auto& [name, make_optimizer] : kinds) {
    const Tensor first = ones({2, 2}).requires_grad_(), w = start();
    const auto optimizer = make_optimizer({first, w});
    first.set_grad(ones({2, 2}));
    backward(w, 0, true);
    const std::string expected = "[" + name + "] the gradient of \"1\" is row-wise (sparse = true), which " + name +
                                 " cannot apply. Use SGD, Adagrad or SparseAdam for it, or sparse = false.";
    CHECK_THROWS_WITH_AS(optimizer->step(), expected.c_str(), ValueError);
    CHECK(first.to_vector<float>() == std::vector<float>(4, 1.0f));
    optimizer->zero_grad();
    CHECK(!row_grad(w));
    CHECK(!first.grad().defined());
  }
  const Tensor w = start();
  optim::LBFGS lbfgs(std::vector<Tensor>{w});
  CHECK_THROWS_WITH_AS(lbfgs.step([&] {
    lbfgs.zero_grad();
    const Tensor loss = sum(square(embedding(w, rows_of_step(0), 0, true)));
    loss.backward();
    return loss;
  }),
                       doctest::Contains("[LBFGS] the gradient of \"0\" is row-wise"), GradError);
}

TEST_CASE("weight decay of rows, and a dense gradient for SparseAdam, are refused") {
  const Tensor w = start();
  backward(w, 0, true);
  optim::SGD sgd(std::vector<Tensor>{w}, {.weight_decay = 0.5});
  CHECK_THROWS_WITH_AS(sgd.step(), doctest::Contains("[SGD] weight_decay 0.5 would change all rows of \"0\""),
                       ValueError);
  optim::Adagrad adagrad(std::vector<Tensor>{w}, {.weight_decay = 0.5});
  CHECK_THROWS_WITH_AS(adagrad.step(), doctest::Contains("[Adagrad] weight_decay 0.5 would change all rows of \"0\""),
                       ValueError);
  w.set_grad({});
  backward(w, 0, false);
  optim::SparseAdam adam(std::vector<Tensor>{w}, {});
  CHECK_THROWS_WITH_AS(adam.step(), doctest::Contains("[SparseAdam] the gradient of \"0\" is dense"), ValueError);
  CHECK_THROWS_WITH_AS(optim::SparseAdam(std::vector<Tensor>{w}, {.betas = {1.0, 0.9}}),
                       doctest::Contains("beta1 is 1"), ValueError);
}

TEST_CASE("clipping scales rows as it scales the dense gradient") {
  const Tensor sparse = start(), dense = start();
  for (const double limit : {0.1, 1e9}) {
    for (const Tensor& t : {sparse, dense}) t.set_grad({});
    backward(sparse, 0, true);
    backward(dense, 0, false);
    const double of_rows = optim::clip_grad_norm_(std::vector<Tensor>{sparse}, limit).item<double>();
    const double of_all = optim::clip_grad_norm_(std::vector<Tensor>{dense}, limit).item<double>();
    CHECK(of_rows == approx(of_all, {.relative = 1e-14}));
    optim::clip_grad_value_(std::vector<Tensor>{sparse}, 0.02);
    optim::clip_grad_value_(std::vector<Tensor>{dense}, 0.02);
    densify_grad(sparse);
    CHECK(compare(sparse.grad(), dense.grad(), {.ulps = 8}, 4) == "");
  }
}

TEST_CASE("GradScaler unscales rows, and skips the step if one is not finite") {
  for (const Make& make_optimizer : {make<optim::Adagrad>({.lr = 0.1}), make<optim::SparseAdam>({.lr = 0.1})}) {
    const Tensor scaled = start(kFloat), plain = start(kFloat);
    const auto a = make_optimizer({scaled}), b = make_optimizer({plain});
    GradScaler scaler({.init_scale = 1024.0});
    for (int step = 0; step < 4; ++step) {
      const Tensor y = embedding(scaled, rows_of_step(step), 0, true);
      const Tensor factor = step == 2 ? full({}, std::numeric_limits<double>::infinity()) : ones({});
      scaler.scale(sum(square(y)) * factor).backward();
      scaler.step(*a);
      scaler.update();
      a->zero_grad();
      if (step == 2) continue;
      sum(square(embedding(plain, rows_of_step(step), 0, true))).backward();
      b->step();
      b->zero_grad();
    }
    CHECK(scaled.to_vector<float>() == plain.to_vector<float>());
    CHECK(scaler.get_scale() == 512.0);
  }
}

TEST_CASE("Adagrad and SparseAdam of rows resume to the same bits") {
  for (const Make& make_optimizer : {make<optim::Adagrad>({.lr = 0.1, .lr_decay = 0.1}), make<optim::SparseAdam>({})}) {
    const Tensor whole = start(), parted = start();
    const auto one = make_optimizer({whole});
    auto two = make_optimizer({parted});
    for (int step = 0; step < 6; ++step) {
      if (step == 3) {
        auto fresh = make_optimizer({parted});
        fresh->load_state_dict(two->state_dict());
        two = std::move(fresh);
      }
      for (const auto& [w, o] : {std::pair(whole, one.get()), std::pair(parted, two.get())}) {
        backward(w, step, true);
        o->step();
        o->zero_grad();
      }
    }
    CHECK(whole.to_vector<double>() == parted.to_vector<double>());
  }
}

TEST_CASE("a step of a large table allocates memory of the rows in use") {
  const Tensor w = zeros({1'000'000, 16}).requires_grad_(), index = randint(0, 1'000'000, {64, 32});
  for (const Make& make_optimizer :
       {make<optim::SGD>({.lr = 0.1}), make<optim::Adagrad>({.lr = 0.1}), make<optim::SparseAdam>({})}) {
    const auto optimizer = make_optimizer({w});
    const auto step = [&] {
      (sum(square(embedding(w, index, 0, true))) + sum(embedding(w, index, 0, true))).backward();
      optim::clip_grad_norm_(std::vector<Tensor>{w}, 1.0);
      optimizer->step();
      optimizer->zero_grad();
    };
    step();  // creates the state
    cpu_allocator::reset_peak();
    const auto before = cpu_allocator::stats().allocated;
    step();
    CHECK(cpu_allocator::stats().peak_allocated - before <
          30 * 64 * 32 * 16 * 4);  // the table is 64 MB, the rows 131 kB
  }
}

TEST_CASE("Embedding and EmbeddingBag pass sparse on, and a module's conversion keeps the rows") {
  manual_seed(81);
  nn::Embedding embedding(10, 3, {.padding_idx = 2, .sparse = true});
  CHECK(embedding.extra_repr() == "10, 3, padding_idx=2, sparse=True");
  const nn::Embedding copy = nn::clone(embedding);
  CHECK(copy.options.sparse);
  const Tensor index = tensor<int64_t>({1, 2, 7, 1});
  sum(square(embedding(index))).backward();
  REQUIRE(row_grad(embedding.weight));
  CHECK(row_grad(embedding.weight)->indices.to_vector<int64_t>() == std::vector<int64_t>{1, 7});
  const auto rows = row_grad(embedding.weight)->rows.to_vector<double>();
  embedding.to(kDouble);
  CHECK(row_grad(embedding.weight)->rows.dtype() == kDouble);
  CHECK(row_grad(embedding.weight)->rows.to_vector<double>() == rows);
  for (const bool none : {true, false}) {
    sum(square(embedding(index))).backward();
    embedding.zero_grad(none);
    CHECK(!row_grad(embedding.weight));
  }
  for (const nn::BagMode mode : {nn::BagMode::sum, nn::BagMode::mean, nn::BagMode::max}) {
    nn::EmbeddingBag sparse(10, 3, {.mode = mode, .padding_idx = 2, .sparse = true}),
        dense(10, 3, {.mode = mode, .padding_idx = 2});
    dense.load_state_dict(sparse.state_dict());
    sum(square(sparse.forward(index.reshape({2, 2})))).backward();
    sum(square(dense.forward(index.reshape({2, 2})))).backward();
    CHECK(row_grad(sparse.weight));
    densify_grad(sparse.weight);
    CHECK(sparse.weight.grad().to_vector<float>() == dense.weight.grad().to_vector<float>());
  }
  CHECK(nn::EmbeddingBag(4, 2, {.sparse = true}).extra_repr() == "4, 2, mode=mean, sparse=True");
}
