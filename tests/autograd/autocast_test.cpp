// Automatic mixed precision: the type each operation computes in, scopes, and the cache of weight casts.

#include <doctest/doctest.h>
#include <levin/autograd/autocast.h>
#include <levin/autograd/autograd.h>
#include <levin/autograd/ops.h>

#include <functional>
#include <string>
#include <vector>

#include "support/comparison.h"

using namespace levin;
using levin::test::approx;

namespace {

struct Row {
  const char* name;
  std::function<Tensor(const Tensor& x)> op;  ///< x is (4, 4), positive
};

const std::vector<Row>& lower_ops() {
  static const std::vector<Row> rows = {
      {"matmul", [](const Tensor& x) { return matmul(x, x); }},
      {"mm", [](const Tensor& x) { return mm(x, x); }},
      {"bmm", [](const Tensor& x) { return bmm(unsqueeze(x, 0), unsqueeze(x, 0)); }},
      {"addmm", [](const Tensor& x) { return addmm(x, x, x); }},
      {"linear", [](const Tensor& x) { return linear(x, x, select(x, 0, 0)); }},
      {"conv2d", [](const Tensor& x) { return conv2d(reshape(x, {1, 1, 4, 4}), reshape(x, {1, 1, 4, 4}), {}, {}); }},
      {"conv_transpose2d",
       [](const Tensor& x) { return conv_transpose2d(reshape(x, {1, 1, 4, 4}), reshape(x, {1, 1, 4, 4}), {}, {}); }},
      {"scaled_dot_product_attention",
       [](const Tensor& x) {
         const Tensor q = reshape(x, {1, 1, 4, 4});
         return scaled_dot_product_attention(q, q, q, {});
       }},
  };
  return rows;
}

const std::vector<Row>& single_ops() {
  static const Tensor labels = tensor({0, 1, 2, 3}).to(kInt64);
  static const std::vector<Row> rows = {
      {"pow", [](const Tensor& x) { return pow(x, 2.0); }},
      {"pow of tensors", [](const Tensor& x) { return pow(x, x); }},
      {"rdiv", [](const Tensor& x) { return 1.0 / x; }},
      {"tan", [](const Tensor& x) { return tan(x); }},
      {"exp", [](const Tensor& x) { return exp(x); }},
      {"expm1", [](const Tensor& x) { return expm1(x); }},
      {"log", [](const Tensor& x) { return log(x); }},
      {"log2", [](const Tensor& x) { return log2(x); }},
      {"log10", [](const Tensor& x) { return log10(x); }},
      {"log1p", [](const Tensor& x) { return log1p(x); }},
      {"reciprocal", [](const Tensor& x) { return reciprocal(x); }},
      {"rsqrt", [](const Tensor& x) { return rsqrt(x); }},
      {"cumsum", [](const Tensor& x) { return cumsum(x, 0); }},
      {"cumprod", [](const Tensor& x) { return cumprod(x, 0); }},
      {"prod", [](const Tensor& x) { return prod(x); }},
      {"sum", [](const Tensor& x) { return sum(x); }},
      {"norm", [](const Tensor& x) { return norm(x); }},
      {"softmax", [](const Tensor& x) { return softmax(x, 1); }},
      {"log_softmax", [](const Tensor& x) { return log_softmax(x, 1); }},
      {"softplus", [](const Tensor& x) { return softplus(x); }},
      {"layer_norm", [](const Tensor& x) { return layer_norm(x, {4}, {}, {}); }},
      {"cross_entropy", [](const Tensor& x) { return cross_entropy(x, labels); }},
      {"nll_loss", [](const Tensor& x) { return nll_loss(x, labels); }},
      {"mse_loss", [](const Tensor& x) { return mse_loss(x, x); }},
      {"l1_loss", [](const Tensor& x) { return l1_loss(x, x); }},
      {"bce_with_logits", [](const Tensor& x) { return bce_with_logits(x, x); }},
      {"bce_with_logits of a number", [](const Tensor& x) { return bce_with_logits(x, 1.0); }},
  };
  return rows;
}

const std::vector<Row>& unlisted_ops() {
  static const std::vector<Row> rows = {
      {"add", [](const Tensor& x) { return x + x; }},          {"mul", [](const Tensor& x) { return x * x; }},
      {"relu", [](const Tensor& x) { return relu(x); }},       {"tanh", [](const Tensor& x) { return tanh(x); }},
      {"mean", [](const Tensor& x) { return mean(x); }},       {"amax", [](const Tensor& x) { return amax(x); }},
      {"sqrt", [](const Tensor& x) { return sqrt(x); }},       {"gelu", [](const Tensor& x) { return gelu(x); }},
      {"flatten", [](const Tensor& x) { return flatten(x); }},
  };
  return rows;
}

Tensor input(DType t) { return (rand({4, 4}) + 0.5).to(t); }

}  // namespace

TEST_CASE("amp/dtype_of_each_op") {
  for (const DType chosen : {kHalf, kBFloat16}) {
    for (const DType given : {kFloat32, kHalf, kBFloat16}) {
      const Tensor x = input(given);
      const autocast on(chosen);
      for (const Row& r : lower_ops()) CHECK_MESSAGE(r.op(x).dtype() == chosen, r.name);
      for (const Row& r : single_ops()) CHECK_MESSAGE(r.op(x).dtype() == kFloat32, r.name);
      for (const Row& r : unlisted_ops()) CHECK_MESSAGE(r.op(x).dtype() == given, r.name);
    }
    const Tensor x = input(kFloat64);
    const autocast on(chosen);
    for (const auto* rows : {&lower_ops(), &single_ops(), &unlisted_ops()})
      for (const Row& r : *rows) CHECK_MESSAGE(r.op(x).dtype() == kFloat64, r.name);
  }
}

TEST_CASE("autocast: inputs of different types use the widest one") {
  const Tensor narrow = input(kHalf), wide = input(kFloat32), index = zeros({4, 4}, {.dtype = kInt64});
  const autocast on(kHalf);
  CHECK(addcmul(narrow, narrow, wide).dtype() == kFloat32);
  CHECK(addcdiv(narrow, narrow, wide).dtype() == kFloat32);
  CHECK(atan2(narrow, wide).dtype() == kFloat32);
  CHECK(scatter_add(narrow, 0, index, wide).dtype() == kFloat32);
  CHECK(atan2(narrow, narrow).dtype() == kHalf);
}

TEST_CASE("autocast: scopes nest, the innermost applies, and leaving one restores the previous") {
  const Tensor x = input(kFloat32);
  CHECK_FALSE(autocast_enabled());
  {
    const autocast outer(kHalf);
    CHECK(matmul(x, x).dtype() == kHalf);
    {
      const autocast off(kHalf, false);
      CHECK(matmul(x, x).dtype() == kFloat32);
      {
        const autocast inner(kBFloat16);
        CHECK(matmul(x, x).dtype() == kBFloat16);
      }
      CHECK(matmul(x, x).dtype() == kFloat32);
    }
    CHECK(matmul(x, x).dtype() == kHalf);
    CHECK(autocast_dtype() == kHalf);
  }
  CHECK_FALSE(autocast_enabled());
  CHECK(matmul(x, x).dtype() == kFloat32);
  CHECK_THROWS_WITH_AS(autocast{kInt32}, "[autocast] int32 is no type to cast to; use float16 or bfloat16.",
                       DTypeError);
}

TEST_CASE("autocast: gradients reach float32 leaves, and backward keeps forward's types inside or outside the scope") {
  const Tensor x = input(kFloat32), w = input(kFloat32).requires_grad_();
  const auto gradient = [&](bool inside) {
    w.set_grad({});
    if (inside) {
      const autocast on(kHalf);
      cross_entropy(matmul(x, w), zeros({4}, {.dtype = kInt64})).backward();
    } else {
      const Tensor loss = [&] {
        const autocast on(kHalf);
        return cross_entropy(matmul(x, w), zeros({4}, {.dtype = kInt64}));
      }();
      loss.backward();
    }
    CHECK(w.grad().dtype() == kFloat32);
    return w.grad().clone().to_vector<float>();
  };
  const auto outside = gradient(false);
  CHECK(gradient(true) == outside);
  w.set_grad({});
  cross_entropy(matmul(x, w), zeros({4}, {.dtype = kInt64})).backward();
  const auto plain = w.grad().to_vector<float>();
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(outside[i] == approx(plain[i], {.relative = 0.02}));
  CHECK(outside != plain);
}

TEST_CASE("autocast: a weight is cast once per scope, and again after an edit or in the next scope") {
  const Tensor x = input(kFloat32), w = input(kFloat32).requires_grad_();
  const auto cast_of_weight = [&] {  // the cast's node is the first input of matmul's node
    const Tensor y = matmul(x, w);
    return gradient_edge(y).node->edges[1].node;
  };
  const Node* first = nullptr;
  {
    const autocast on(kHalf);
    const auto one = cast_of_weight(), two = cast_of_weight();
    CHECK(one == two);
    first = one.get();
    {
      const no_grad guard;
      w.mul_(2.0);
    }
    CHECK(cast_of_weight().get() != first);
    CHECK(matmul(x, w).to(kFloat32).to_vector<float>()[0] ==
          approx(matmul(x.to(kHalf), w.detach().to(kHalf)).to(kFloat32).to_vector<float>()[0], {.relative = 1e-6}));
  }
  {
    const autocast on(kHalf, true, /*cache_enabled=*/false);
    CHECK(cast_of_weight() != cast_of_weight());
  }
}

TEST_CASE("autocast: a cast cached under no_grad does not detach the weight") {
  const Tensor x = input(kFloat32), w = input(kFloat32).requires_grad_();
  const autocast on(kHalf);
  {
    const no_grad guard;
    CHECK_FALSE(matmul(x, w).requires_grad());
  }
  const Tensor y = matmul(x, w);
  CHECK(y.requires_grad());
  sum(y).backward();
  CHECK(w.grad().defined());
}

TEST_CASE("autocast: in-place edits keep their type") {
  const Tensor x = input(kFloat32);
  const autocast on(kHalf);
  x.add_(matmul(x, x));
  CHECK(x.dtype() == kFloat32);
}
