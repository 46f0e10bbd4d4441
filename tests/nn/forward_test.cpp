// Modules whose forward has other arguments and results than one tensor: calls, hooks, clones, containers.
#include <levin/autograd/ops.h>
#include <levin/nn/forward_result.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>

using namespace levin;

namespace {

using Tensors = std::vector<Tensor>;

struct Denoiser : nn::Layer<Denoiser> {
  nn::Linear& in = add<nn::Linear>("in", 3, 4);
  nn::Linear& time = add<nn::Linear>("time", 1, 4);
  Tensor forward(const Tensor& x, const Tensor& t) { return tanh(in(x) + time(t)); }
};

struct AttentionOptions {
  Tensor attn_mask{};
  double scale = 1;
};
struct Attention : nn::Layer<Attention> {
  Tensor forward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o = {}) {
    Tensor scores = matmul(q, k.transpose(0, 1)) * o.scale;
    if (o.attn_mask.defined()) scores = scores + o.attn_mask;
    return matmul(softmax(scores, 1), v);
  }
};

/// As PyTorch's LSTM: (output, (h, c)) of a sequence and an optional state.
struct Recurrent : nn::Layer<Recurrent> {
  using State = std::pair<Tensor, Tensor>;
  Recurrent(int64_t inputs, int64_t width)
      : size(inputs),
        x_to_h(add<nn::Linear>("x_to_h", inputs, width)),
        h_to_h(add<nn::Linear>("h_to_h", width, width)) {}
  const int64_t size;
  nn::Linear &x_to_h, &h_to_h;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(size, x_to_h.out_features);
  }
  std::pair<Tensor, State> forward(const Tensor& x, const std::optional<State>& state = {}) {
    State s = state.value_or(State{zeros({x_to_h.out_features}), zeros({x_to_h.out_features})});
    Tensors outputs;
    for (int64_t i = 0; i < x.size(0); ++i) {
      s.second = s.second + x_to_h(x.select(0, i));
      s.first = tanh(s.second + h_to_h(s.first));
      outputs.push_back(s.first);
    }
    return {stack(outputs, 0), s};
  }
};

/// Several results of one tensor.
struct Encoder : nn::Layer<Encoder> {
  nn::Linear& mean = add<nn::Linear>("mean", 3, 2);
  nn::Linear& log_variance = add<nn::Linear>("log_variance", 3, 2);
  std::pair<Tensor, Tensor> forward(Tensor x) { return {mean(x), log_variance(x)}; }
};
struct Decoder : nn::Layer<Decoder> {
  nn::Linear& out = add<nn::Linear>("out", 2, 3);
  Tensor forward(const Tensor& mean, const Tensor& log_variance) { return out(mean + exp(log_variance)); }
};

struct Gaussian {
  Tensor mean, variance;
  auto fields() { return std::tie(mean, variance); }
};
struct Head : nn::Layer<Head> {
  Gaussian forward(const std::vector<Tensor>& parts, int repeat) {
    return {parts[0] * static_cast<double>(repeat), parts[1] + parts[2]};
  }
};

struct Sum : nn::Layer<Sum> {
  template <class... T>
  Tensor forward(const T&... x) {
    return (x + ...);
  }
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

std::vector<double> values(const Tensor& t) { return t.detach().to_vector<double>(); }

}  // namespace

TEST_CASE("forward: a module is called with the arguments of its forward and returns its result") {
  manual_seed(1);
  Denoiser net;
  const Tensor x = randn({2, 3}), t = rand({2, 1});
  CHECK(values(net(x, t)) == values(net.forward(x, t)));

  Attention attention;
  const Tensor q = randn({2, 3}), m = from_data<float>({0, -1e9f, 0, 0}, {2, 2});
  CHECK(values(attention(q, q, q)) == values(attention.forward(q, q, q)));
  CHECK(values(attention(q, q, q, {.attn_mask = m})) == values(attention.forward(q, q, q, {.attn_mask = m})));
  CHECK(values(attention(q, q, q, {.attn_mask = m})) != values(attention(q, q, q)));

  Recurrent lstm(3, 4);
  const auto [output, state] = lstm(randn({5, 3}));
  CHECK(output.sizes() == Shape{5, 4});
  CHECK(values(state.first) == values(output.select(0, 4)));
  const auto [again, last] = lstm(randn({2, 3}), {{state.first, state.second}});
  CHECK(again.sizes() == Shape{2, 4});

  Encoder encoder;
  const auto [mean, log_variance] = encoder(x);
  CHECK(values(mean) == values(encoder.mean(x)));
  Head head;
  CHECK(values(head({ones({1}), ones({1}), ones({1})}, 3).mean) == std::vector<double>{3});
  static_assert(std::is_same_v<decltype(head(Tensors{}, 1)), Gaussian>);
  static_assert(!std::is_invocable_v<Denoiser&, const Tensor&>);
}

TEST_CASE("forward: overloads and templates are called too") {
  struct Either : nn::Layer<Either> {
    Tensor forward(const Tensor& x) override { return x; }
    Tensor forward(const Tensor& x, const Tensor& y) { return x + y; }
  };
  Either either;
  nn::Module& base = either;
  const Tensor one = ones({1});
  CHECK(either(one).item<float>() == 1);
  CHECK(base(one).item<float>() == 1);
  CHECK(either(one, one).item<float>() == 2);
  Sum sum;
  int calls = 0;
  sum.register_forward_hook([&](nn::Module&, const Tensors& in, const Tensors&) {
    ++calls;
    CHECK(in.size() == 3);
  });
  CHECK(sum(one, one, one).item<float>() == 3);
  CHECK(calls == 1);
}

TEST_CASE("forward hooks see all tensors of the arguments and of the result, and replace them") {
  Denoiser net;
  const Tensor x = randn({2, 3}), t = rand({2, 1});
  {
    auto before = net.register_forward_pre_hook([&](nn::Module& m, const Tensors& inputs) {
      CHECK(&m == &net);
      REQUIRE(inputs.size() == 2);
      CHECK(inputs[1].is_same(t));
      return Tensors{inputs[0], zeros({2, 1})};
    });
    auto after = net.register_forward_hook([&](nn::Module&, const Tensors& inputs, const Tensors& outputs) {
      CHECK(values(inputs[1]) == std::vector<double>(2, 0));
      return outputs[0] + 3.0;
    });
    CHECK(values(net(x, t)) == values(net.forward(x, zeros({2, 1})) + 3.0));
    before.remove();
    CHECK(message_of<ValueError>([&] {
            auto wrong = net.register_forward_pre_hook([&](nn::Module&, const Tensors&) { return x; });
            net(x, t);
          }) == "[Denoiser] a forward pre-hook returned 1 tensor to replace 2. Return as many, or nothing.");
  }

  Recurrent lstm(3, 4);
  int seen = 0;
  lstm.register_forward_hook([&](nn::Module&, const Tensors& inputs, const Tensors& outputs) {
    CHECK(inputs.size() == (seen++ == 0 ? 1 : 3));
    REQUIRE(outputs.size() == 3);
    return Tensors{Tensor(), ones({4}), Tensor()};  // replaces h only
  });
  const Tensor sequence = randn({5, 3});
  const auto [output, state] = lstm(sequence);
  CHECK(values(output) == values(lstm.forward(sequence).first));
  CHECK(values(state.first) == std::vector<double>(4, 1));
  lstm(sequence, state);
  CHECK(seen == 2);

  Head head;
  head.register_forward_hook([&](nn::Module&, const Tensors& inputs, const Tensors& outputs) {
    CHECK(inputs.size() == 3);
    CHECK(outputs.size() == 2);
    return Tensors{zeros({1}), Tensor()};
  });
  const Gaussian g = head({ones({1}), ones({1}), ones({1})}, 3);
  CHECK(g.mean.item<float>() == 0);
  CHECK(g.variance.item<float>() == 2);
}

TEST_CASE("a forward pre-hook may return a result of several tensors") {
  Encoder net;
  auto hook = net.register_forward_pre_hook([](nn::Module&, const Tensors& in) -> void {
    throw nn::ForwardResult{{in[0] * 2.0, in[0] * 3.0}};
  });
  const auto [a, b] = net(ones({1}));
  CHECK(a.item<float>() == 2);
  CHECK(b.item<float>() == 3);
  hook.remove();
  net.register_forward_pre_hook([](nn::Module&, const Tensors& in) -> void { throw nn::ForwardResult{in}; });
  CHECK(message_of<ValueError>([&] { net(ones({1})); }) ==
        "[Encoder] a forward pre-hook provided 1 tensor as the result, and forward returns another number of them.");
}

TEST_CASE("backward hooks get the gradients of all inputs and outputs at once and may replace those of the inputs") {
  Encoder encoder;
  Decoder decoder;
  const Tensor a = randn({2, 2}).requires_grad_(), b = randn({2, 2}).requires_grad_(), x = randn({2, 3});
  int calls = 0;
  decoder.register_full_backward_hook([&](nn::Module&, const Tensors& grad_inputs, const Tensors& grad_outputs) {
    ++calls;
    REQUIRE(grad_inputs.size() == 2);
    REQUIRE(grad_outputs.size() == 1);
    CHECK(values(grad_outputs[0]) == std::vector<double>(6, 1));
    CHECK(values(grad_inputs[0]) == values(matmul(grad_outputs[0], decoder.out.weight.detach())));
    return Tensors{Tensor(), zeros_like(grad_inputs[1])};
  });
  decoder(a, b).sum().backward();
  CHECK(calls == 1);
  CHECK(values(b.grad()) == std::vector<double>(4, 0));
  CHECK(values(a.grad()) != std::vector<double>(4, 0));

  // One of two outputs is not used, and no input requires a gradient.
  encoder.register_full_backward_hook([&](nn::Module&, const Tensors& grad_inputs, const Tensors& grad_outputs) {
    ++calls;
    CHECK(grad_inputs.size() == 1);
    CHECK_FALSE(grad_inputs[0].defined());
    REQUIRE(grad_outputs.size() == 2);
    CHECK(grad_outputs[0].defined());
    CHECK_FALSE(grad_outputs[1].defined());
  });
  encoder(x).first.sum().backward();
  CHECK(calls == 2);
  // An input that does not influence the loss has no gradient.
  struct First : nn::Layer<First> {
    Tensor forward(const Tensor& p, const Tensor&) { return p * 2.0; }
  };
  First first;
  first.register_full_backward_hook([&](nn::Module&, const Tensors& grad_inputs, const Tensors&) {
    ++calls;
    CHECK(grad_inputs[0].defined());
    CHECK_FALSE(grad_inputs[1].defined());
  });
  first(a, b).sum().backward();
  CHECK(calls == 3);
}

TEST_CASE("a module of several inputs is cloned, printed, and called through its base class") {
  Recurrent lstm(3, 4);
  Recurrent copy = nn::clone(lstm);
  const Tensor x = randn({5, 3});
  CHECK(values(copy(x).first) == values(lstm(x).first));
  struct Outer : nn::Module {
    Recurrent& inner = add<Recurrent>("inner", 3, 4);
    Tensor forward(const Tensor& in) override { return inner(in).first; }
  };
  Outer outer;
  Outer outer_copy = nn::clone(outer);
  CHECK(values(outer_copy(x)) == values(outer(x)));
  CHECK(to_string(lstm).starts_with("Recurrent(  # 36\n"));

  nn::Module& module = lstm;
  CHECK_FALSE(module.takes_one_tensor());
  const Tensors one = module.call({x}), three = module.call({x, ones({4}), ones({4})});
  CHECK(one.size() == 3);
  CHECK(values(one[0]) == values(lstm(x).first));
  CHECK(values(three[0]) == values(lstm(x, {{ones({4}), ones({4})}}).first));
  CHECK(message_of<ValueError>([&] { module(x); }) ==
        "[Recurrent] forward returns 3 tensors, and one is needed here. Call the module by its own class, or as "
        "module.call({x}).");
  CHECK(message_of<ValueError>([&] {
          module.call({x, x});
        }) ==
        "[Recurrent] forward cannot be called with 2 tensors: its parameters are others. Call the module by its own "
        "class, with all arguments.");
  nn::Linear linear(3, 4);
  CHECK(message_of<ValueError>([&] { linear.call({x, x}); }).starts_with("[Linear] forward cannot be called with 2"));
  CHECK(values(linear.call({x})[0]) == values(linear(x)));
}

TEST_CASE("Sequential passes several outputs on to a module that takes as many") {
  nn::Sequential net(nn::Linear(3, 3), Encoder(), Decoder(), nn::Linear(3, 2));
  const Tensor x = randn({4, 3});
  CHECK(net(x).sizes() == Shape{4, 2});
  nn::Sequential copy = nn::clone(net);
  CHECK(values(copy(x)) == values(net(x)));

  nn::Sequential cut(Encoder(), nn::Linear(2, 2));
  CHECK(message_of<ValueError>([&] { cut(x); }) ==
        "[Sequential] \"1\" (Linear) takes one tensor, and \"0\" (Encoder) before it returned 2. Put a module between "
        "them that selects or combines them.");
  nn::Sequential open(nn::Linear(3, 3), Encoder());
  CHECK(
      message_of<ValueError>([&] { open(x); }) ==
      "[Sequential] its last module, \"1\" (Encoder), returns 2 tensors, and a Sequential returns one. Append a module "
      "that selects or combines them.");
  nn::Sequential first(Decoder{});
  CHECK(message_of<ValueError>([&] {
          first(x);
        }).starts_with("in 0 (Decoder): [Decoder] forward cannot be called with 1 tensor:"));
}

TEST_CASE("functional_call takes the arguments of the module and returns its result") {
  Denoiser net;
  const Tensor x = randn({2, 3}), t = rand({2, 1}), w = zeros({4, 3}).requires_grad_();
  const Tensor y = nn::functional_call(net, {{"in.weight", w}}, x, t);
  CHECK(values(y) == values(tanh(net.in.bias + net.time(t))));
  y.sum().backward();
  CHECK(w.grad().defined());
  CHECK_FALSE(net.in.weight.grad().defined());
  Encoder encoder;
  const auto [mean, log_variance] = nn::functional_call(encoder, {{"mean.weight", zeros({2, 3})}}, x);
  CHECK(values(mean) == values(encoder.mean.bias.expand({2, 2})));
}

TEST_CASE("losses run their hooks") {
  nn::MSELoss loss;
  nn::Loss& base = loss;
  int calls = 0;
  loss.register_forward_hook([&](nn::Module&, const Tensors& inputs, const Tensors&) {
    ++calls;
    CHECK(inputs.size() == 2);
  });
  CHECK(loss(ones({2}), zeros({2})).item<float>() == 1);
  CHECK(base(ones({2}), zeros({2})).item<float>() == 1);
  CHECK(calls == 2);
}
