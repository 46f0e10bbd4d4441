#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>

using namespace levin;

namespace {
Tensor leaf(double v) { return full({1}, v, {.dtype = kFloat64}).requires_grad_(); }
}  // namespace

TEST_CASE("a tensor hook sees and replaces the gradient") {
  const Tensor x = leaf(3);
  const Tensor y = x * 2.0;
  double seen = 0;
  HookHandle handle = y.register_hook([&](const Tensor& g) {
    seen = g.item<double>();
    return g * 10.0;
  });
  sum(y * y).backward({}, {.retain_graph = true});
  CHECK(seen == 12.0);
  CHECK(x.grad().item<double>() == 240.0);
  handle.remove();
  handle.remove();
  x.set_grad({});
  sum(y * y).backward();
  CHECK(x.grad().item<double>() == 24.0);
}

TEST_CASE("a hook on a leaf sees the complete sum once") {
  const Tensor x = leaf(1);
  int calls = 0;
  x.register_hook([&](const Tensor& g) {
    ++calls;
    CHECK(g.item<double>() == 5.0);
    return Tensor();
  });
  sum(x * 2.0 + x * 3.0).backward();
  CHECK(calls == 1);
}

TEST_CASE("a post-accumulation hook may consume the gradient") {
  const Tensor x = leaf(1), w = leaf(2);
  std::vector<std::string> order;
  x.register_post_accumulate_grad_hook([&](const Tensor& t) {
    CHECK(t.is_same(x));
    order.push_back("x " + std::to_string(static_cast<int>(t.grad().item<double>())));
    t.set_grad({});
  });
  w.register_post_accumulate_grad_hook([&](const Tensor&) { order.push_back("w"); });
  sum(x * w).backward();
  CHECK(!x.grad().defined());
  CHECK(w.grad().item<double>() == 1.0);
  CHECK(order.size() == 2);
}

TEST_CASE("accumulation hooks run during backward, not after it") {
  // The last layer's weight is ready before the first layer's operation has run.
  const Tensor first = leaf(1), last = leaf(1);
  std::vector<std::string> order;
  last.register_post_accumulate_grad_hook([&](const Tensor&) { order.push_back("last"); });
  const Tensor hidden = first * 2.0;
  hidden.register_hook([&](const Tensor&) {
    order.push_back("hidden");
    return Tensor();
  });
  sum(hidden * last).backward();
  CHECK(order == std::vector<std::string>{"last", "hidden"});
}

TEST_CASE("a callback queued by a hook runs once, after all gradients of the outermost backward") {
  const Tensor x = leaf(3), y = leaf(4);
  std::vector<std::string> events;
  const auto note = [&](const char* name) { return [&, name] { events.push_back(name); }; };
  x.register_post_accumulate_grad_hook([&](const Tensor&) {
    events.push_back("x");
    on_backward_end(note("end"), note("failed"));
  });
  y.register_post_accumulate_grad_hook([&](const Tensor&) { events.push_back("y"); });
  const Tensor z = sum(y * 2.0 + x);
  Tensor inner = leaf(1);
  inner.register_post_accumulate_grad_hook([&](const Tensor&) { on_backward_end(note("inner end"), note("failed")); });
  z.register_hook([&](const Tensor&) -> Tensor {
    const enable_grad guard;
    sum(inner * 2.0).backward();
    events.push_back("nested pass over");
    return {};
  });
  z.backward();
  CHECK(events == std::vector<std::string>{"nested pass over", "x", "y", "inner end", "end"});
  CHECK(inner.grad().item<double>() == 2);
  CHECK_THROWS_AS(on_backward_end([] {}, [] {}), GradError);
}

TEST_CASE("an exception in backward calls the queued failure callbacks") {
  const Tensor x = leaf(3);
  int ended = 0, failed = 0;
  x.register_post_accumulate_grad_hook([&](const Tensor&) {
    on_backward_end([&] { ++ended; }, [&] { ++failed; });
    throw ValueError("from a hook");
  });
  CHECK_THROWS_AS(sum(x * 2.0).backward(), ValueError);
  CHECK(ended == 0);
  CHECK(failed == 1);
  CHECK_THROWS_AS(on_backward_end([] {}, [] {}), GradError);
}

TEST_CASE("hooks of nodes run before and after the node") {
  const Tensor x = leaf(2);
  const Tensor y = x * x;
  const NodePtr node = grad_fn(y);
  CHECK(std::string(node->name()) == "mul");
  node->register_prehook([](std::vector<Tensor>& grads) { grads[0] = grads[0] * 2.0; });
  HookHandle after = node->register_posthook([](std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
    CHECK(outputs[0].item<double>() == 2.0);
    inputs[0] = zeros_like(inputs[0]);
  });
  sum(y).backward({}, {.retain_graph = true});
  CHECK(x.grad().item<double>() == 4.0);
  after.remove();
  x.set_grad({});
  sum(y).backward();
  CHECK(x.grad().item<double>() == 8.0);
}

TEST_CASE("hooks are refused on tensors without a gradient") {
  const Tensor plain = ones({1}), x = leaf(1);
  CHECK_THROWS_AS(plain.register_hook([](const Tensor& g) { return g; }), GradError);
  CHECK_THROWS_AS((x * 1.0).register_post_accumulate_grad_hook([](const Tensor&) {}), GradError);
  CHECK_THROWS_AS(plain.retain_grad(), GradError);
}

TEST_CASE("a hook that holds its own tensor runs, and releases it when it is removed") {
  const std::int64_t before = Storage::live_count();
  {
    Tensor x = leaf(3), y = x * 2.0;
    int calls = 0;
    HookHandle handle = y.register_hook([&calls, y](const Tensor& g) {
      ++calls;
      return g * y.detach();
    });
    y.backward();
    CHECK(calls == 1);
    CHECK(x.grad().item<double>() == 12.0);
    handle.remove();
  }
  CHECK(Storage::live_count() == before);
}

TEST_CASE("a post-hook of an activation sees the incoming gradient, which could be written over") {
  const Tensor x = tensor<double>({-1, 2}).requires_grad_(), y = relu(x * 1.0);
  std::vector<double> incoming, outgoing;
  HookHandle handle =
      grad_fn(y)->register_posthook([&](std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
        outgoing = inputs[0].to_vector<double>();
        incoming = outputs[0].to_vector<double>();
      });
  sum(y * tensor<double>({3, 5})).backward();
  CHECK(incoming == std::vector<double>{3, 5});
  CHECK(outgoing == std::vector<double>{0, 5});
}
