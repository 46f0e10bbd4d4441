#include <levin/autograd/ops.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>

using namespace levin;

namespace {

struct Heads : nn::Module {
  nn::ModuleDict<nn::Linear>& heads = add<nn::ModuleDict<nn::Linear>>("heads");
  nn::ParameterList& scales = add<nn::ParameterList>("scales");

  Heads() {
    heads.append("classes", 3, 4);
    heads.append("boxes", 3, 2);
    scales.append(ones({2}));
    scales.append(zeros({3}));
  }
  Tensor forward(const Tensor& x) override { return heads["boxes"](x) * scales[0]; }
};

}  // namespace

TEST_CASE("ModuleDict and ParameterList name their members as PyTorch does, and are cloned") {
  Heads net;
  std::vector<std::string> names;
  for (const auto& [name, p] : net.named_parameters()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"heads.classes.weight", "heads.classes.bias", "heads.boxes.weight",
                                          "heads.boxes.bias", "scales.0", "scales.1"});
  CHECK(net.heads.size() == 2);
  CHECK(net.heads.contains("boxes"));
  CHECK_FALSE(net.heads.contains("masks"));
  CHECK_THROWS_WITH_AS(net.heads["masks"], doctest::Contains("classes"), ValueError);
  CHECK_THROWS_WITH_AS(net.scales[2], doctest::Contains("[ParameterList] index 2 is outside of 2 parameters"),
                       IndexError);
  const Tensor x = randn({2, 3});
  Heads copy = nn::clone(net);
  CHECK(equal(copy(x), net(x)));
  CHECK_FALSE(copy.scales[0].shares_storage(net.scales[0]));
  net(x).sum().backward();
  CHECK(net.scales[0].grad().defined());
}

TEST_CASE("layers of two words do in a Sequential what their functions do") {
  nn::Sequential net(nn::Conv1d(2, 4, 3, {.padding = 1}), nn::GroupNorm(2, 4), nn::SiLU(), nn::MaxPool1d(2),
                     nn::FeatureDropout(0.5), nn::AdaptiveAvgPool1d(3), nn::Flatten(), nn::Linear(12, 6),
                     nn::Unflatten(1, {2, 3}), nn::Softmax(-1));
  net.eval();
  const Tensor y = net(randn({5, 2, 8}));
  CHECK(y.sizes() == Shape{5, 2, 3});
  CHECK(allclose(y.sum(-1), ones({5, 2})));
  const auto copy = nn::clone(net);
  CHECK(copy.size() == net.size());
}

TEST_CASE("printed layers name their arguments as PyTorch does") {
  CHECK(nn::Conv1d(2, 4, 3, {.padding = 1}).extra_repr() == "2, 4, kernel_size=(3,), stride=(1,), padding=(1,)");
  CHECK(nn::GroupNorm(2, 4).extra_repr() == "2, 4, eps=1e-05, affine=True");
  CHECK(nn::MaxPool3d(2).extra_repr() == "kernel_size=2, stride=2, padding=0");
  CHECK(nn::AdaptiveAvgPool2d({2, 3}).extra_repr() == "output_size=(2, 3)");
  CHECK(nn::LSTM(3, 4, {.num_layers = 2, .bidirectional = true}).extra_repr() ==
        "3, 4, num_layers=2, bidirectional=True");
  CHECK(nn::Hardtanh().extra_repr() == "min_val=-1, max_val=1");
  CHECK(nn::Upsample({.scale_factor = {2}, .mode = ResizeMode::linear}).extra_repr() == "scale_factor=2, mode=linear");
  CHECK(nn::EmbeddingBag(5, 3).extra_repr() == "5, 3, mode=mean");
  CHECK(nn::Bilinear(1, 2, 3).extra_repr() == "in1_features=1, in2_features=2, out_features=3, bias=True");
}

TEST_CASE("losses of three tensors and others as modules equal their functions") {
  const Tensor a = randn({4, 3}), b = randn({4, 3}), c = randn({4, 3}), sign = tensor({1.0, -1.0, 1.0, -1.0});
  CHECK(equal(nn::TripletMarginLoss({.margin = 0.5})(a, b, c), triplet_margin_loss(a, b, c, {.margin = 0.5})));
  CHECK(equal(nn::CosineEmbeddingLoss(0.2)(a, b, sign), cosine_embedding_loss(a, b, sign, 0.2)));
  CHECK(equal(nn::HuberLoss(Reduction::sum, 0.3)(a, b), huber_loss(a, b, Reduction::sum, 0.3)));
  CHECK(equal(nn::GaussianNLLLoss()(a, b, exp(c)), gaussian_nll_loss(a, b, exp(c))));
  CHECK(equal(nn::BCELoss({.weight = ones({3}) * 2})(sigmoid(a), sigmoid(b)),
              binary_cross_entropy(sigmoid(a), sigmoid(b), ones({3}) * 2)));
  CHECK(equal(nn::CosineSimilarity({.dim = 0})(a, b), cosine_similarity(a, b, 0)));
  CHECK(equal(nn::PairwiseDistance({.p = 1})(a, b), pairwise_distance(a, b, 1)));
  nn::CTCLoss ctc({.blank = 2});
  const Tensor x = log_softmax(randn({5, 1, 3}), 2), targets = tensor<int64_t>({0, 1}).reshape({1, 2});
  CHECK(equal(ctc(x, targets, {5}, {2}), ctc_loss(x, targets, {5}, {2}, {.blank = 2})));
}

namespace {

/// Doubles its input; remembers where its result is, and keeps the result or a view of it if asked to.
struct Doubling : nn::Layer<Doubling> {
  enum class Keep { nothing, result, view };
  explicit Doubling(Keep keep_ = Keep::nothing) : keep(keep_) {}
  const Keep keep;
  const void* made = nullptr;
  Tensor kept;

  Tensor forward(const Tensor& x) override {
    const Tensor y = x * 2;
    made = y.raw_data();
    if (keep == Keep::result) kept = y;
    if (keep == Keep::view) kept = y[0];
    return y;
  }
};

/// Returns a new tensor whose elements share memory.
struct Expanding : nn::Layer<Expanding> {
  Tensor forward(const Tensor&) override { return tensor({-1.0f}).expand({2}); }
};

/// Returns a new leaf.
struct LeafMaking : nn::Layer<LeafMaking> {
  Tensor forward(const Tensor&) override { return tensor({-1.0f, 1.0f}).requires_grad_(); }
};

/// Wraps memory of its own.
struct Borrowing : nn::Layer<Borrowing> {
  float memory[2] = {-1, 1};
  Tensor forward(const Tensor&) override { return from_blob(memory, {2}, kFloat32); }
};

}  // namespace

TEST_CASE("Sequential: an activation writes into a result that nobody else holds") {
  const Tensor x = tensor({-1.0f, 0.5f, 2.0f});
  const auto run = [&](auto activation, Doubling::Keep keep) {
    nn::Sequential net(Doubling{keep}, std::move(activation));
    auto& first = static_cast<Doubling&>(net[0]);
    const Tensor wanted = net[1](x * 2), with_grad = x.clone().requires_grad_(), composed = x.clone().requires_grad_();
    const Tensor recorded = net(with_grad);
    const bool reused = recorded.raw_data() == first.made;
    CHECK(equal(recorded, wanted));
    recorded.sum().backward();
    net[1](composed * 2).sum().backward();
    CHECK(equal(with_grad.grad(), composed.grad()));
    no_grad guard;
    const Tensor y = net(x);
    CHECK(equal(y, wanted));
    CHECK(x.to_vector<float>() == std::vector<float>{-1.0f, 0.5f, 2.0f});
    if (keep != Doubling::Keep::nothing) CHECK(first.kept.view({-1})[0].item<float>() == -2.0f);
    CHECK((y.raw_data() == first.made) == reused);
    return reused;
  };
  using Keep = Doubling::Keep;
  CHECK(run(nn::ReLU(), Keep::nothing));
  CHECK(run(nn::Tanh(), Keep::nothing));
  CHECK(run(nn::Sigmoid(), Keep::nothing));
  CHECK_FALSE(run(nn::ReLU(), Keep::result));
  CHECK_FALSE(run(nn::ReLU(), Keep::view));
  CHECK_FALSE(run(nn::GELU(), Keep::nothing));
}

TEST_CASE("Sequential: an activation leaves the net's input, borrowed memory and what hooks saw as they are") {
  no_grad guard;
  const Tensor x = tensor({-1.0f, 1.0f});
  nn::Sequential first{nn::ReLU(), nn::ReLU()};
  CHECK(equal(first(x), tensor({0.0f, 1.0f})));
  CHECK(x[0].item<float>() == -1.0f);
  nn::Sequential around{nn::Identity(), nn::ReLU()};  // the intermediate result is x itself
  CHECK(equal(around(x), tensor({0.0f, 1.0f})));
  CHECK(x[0].item<float>() == -1.0f);
  nn::Sequential flat(nn::Flatten(0), nn::ReLU());  // or a view of it
  CHECK(equal(flat(x), tensor({0.0f, 1.0f})));
  CHECK(x[0].item<float>() == -1.0f);
  nn::Sequential borrowing(Borrowing{}, nn::ReLU());
  CHECK(equal(borrowing(x), tensor({0.0f, 1.0f})));
  CHECK(static_cast<Borrowing&>(borrowing[0]).memory[0] == -1.0f);
  nn::Sequential hooked(Doubling{}, nn::ReLU());
  Tensor seen;
  hooked[1].register_forward_hook(
      [&](nn::Module&, const std::vector<Tensor>& inputs, const std::vector<Tensor>&) { seen = inputs[0]; });
  CHECK(equal(hooked(x), tensor({0.0f, 2.0f})));
  CHECK(seen[0].item<float>() == -2.0f);
}

TEST_CASE("Sequential: an activation does not write into results that must not be edited in place") {
  const Tensor x = zeros({2});
  CHECK(equal(nn::Sequential(LeafMaking{}, nn::ReLU())(x), tensor({0.0f, 1.0f})));
  inference_mode guard;  // under which a view does not hold its base
  CHECK(equal(nn::Sequential(Expanding{}, nn::ReLU())(x), zeros({2})));
}
