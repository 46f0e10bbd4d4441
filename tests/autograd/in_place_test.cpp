#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>

#include <cmath>
#include <functional>
#include <vector>

using namespace levin;

namespace {
Tensor leaf(std::initializer_list<double> values) { return tensor<double>(values).requires_grad_(); }
std::vector<double> grad_of(const Tensor& t) { return t.grad().to_vector<double>(); }

/// Checks that y, computed from the leaf x, has the first and second gradients of `wanted`, computed from the leaf z.
void check_gradients(const Tensor& y, const Tensor& x, const Tensor& wanted, const Tensor& z) {
  const Tensor first = grad({sum(y * y * y)}, {x}, {.create_graph = true})[0];
  const Tensor wanted_first = grad({sum(wanted * wanted * wanted)}, {z}, {.create_graph = true})[0];
  CHECK(equal(first, wanted_first));
  CHECK(equal(grad({sum(first * first)}, {x})[0], grad({sum(wanted_first * wanted_first)}, {z})[0]));
}
}  // namespace

TEST_CASE("an in-place edit is recorded") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const Tensor y = x * 2.0;
  y.mul_(w);
  y.add_(1.0);
  CHECK(y.to_vector<double>() == std::vector<double>{7, 17});
  sum(y * y).backward();  // y = 2xw + 1; d = 2y * 2w, 2y * 2x
  CHECK(grad_of(x) == std::vector<double>{84, 272});
  CHECK(grad_of(w) == std::vector<double>{28, 136});
}

TEST_CASE("a leaf that requires grad refuses edits outside no_grad") {
  const Tensor x = leaf({1});
  CHECK_THROWS_WITH_AS(x.add_(1.0), doctest::Contains("no_grad"), GradError);
  CHECK_THROWS_WITH_AS(x.view({1, 1}).add_(1.0), doctest::Contains("view of a leaf"), GradError);
  no_grad guard;
  x.add_(1.0);
  CHECK(x.item<double>() == 2.0);
}

TEST_CASE("writing a tensor of the graph into a plain tensor makes it part of the graph") {
  const Tensor buffer = zeros({2}, {.dtype = kFloat64}), x = leaf({1, 2});
  buffer.copy_(x * 3.0);
  CHECK(buffer.requires_grad());
  sum(buffer).backward();
  CHECK(grad_of(x) == std::vector<double>{3, 3});
}

TEST_CASE("overwriting a saved value is caught with versions and the operation's name") {
  const Tensor x = leaf({1, 2});
  const Tensor a = x * 1.0, y = a * a;
  a.add_(1.0);
  CHECK_THROWS_WITH_AS(sum(y).backward(), doctest::Contains("[mul] a tensor of shape (2,)"), GradError);
  const Tensor e = exp(x);
  e.mul_(2.0);
  CHECK_THROWS_WITH_AS(sum(e).backward(), doctest::Contains("[exp]"), GradError);
}

TEST_CASE("an edit through a view reaches the base's history") {
  const Tensor x = leaf({1, 2, 3, 4}), w = leaf({10, 20});
  const Tensor base = x * 1.0;
  const Tensor head = base(Slice(0, 2));
  head.mul_(w);
  CHECK(base.to_vector<double>() == std::vector<double>{10, 40, 3, 4});
  sum(base * base).backward();
  CHECK(grad_of(x) == std::vector<double>{200, 1600, 6, 8});
  CHECK(grad_of(w) == std::vector<double>{20, 160});
}

TEST_CASE("another view of an edited base uses the new history") {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor base = x * 1.0;
  const Tensor square_view = base.view({2, 2}), row = base.narrow(0, 0, 2);
  row.mul_(5.0);
  sum(square_view.t()(0) * tensor<double>({1.0, 2.0})).backward();  // elements 0 and 2
  CHECK(grad_of(x) == std::vector<double>{5, 0, 2, 0});
}

TEST_CASE("the gradients of views reflect an edit of the base") {
  const Tensor x = leaf({1, 2});
  const Tensor base = x * 1.0, v = base.unsqueeze(0);
  base.mul_(3.0);
  CHECK(v.to_vector<double>() == std::vector<double>{3, 6});
  sum(v).backward();
  CHECK(grad_of(x) == std::vector<double>{3, 3});
}

TEST_CASE("writing into slices of zeros gives a differentiable tensor") {
  const Tensor a = leaf({1, 2}), b = leaf({3});
  const Tensor whole = zeros({4}, {.dtype = kFloat64});
  whole(Slice(0, 2)).copy_(a);
  whole(Slice(2, 3)).copy_(b * 2.0);
  sum(whole * tensor<double>({1.0, 10.0, 100.0, 1000.0})).backward();
  CHECK(grad_of(a) == std::vector<double>{1, 10});
  CHECK(grad_of(b) == std::vector<double>{200});
}

TEST_CASE("views made under no_grad cannot be edited while recording") {
  const Tensor x = leaf({1, 2});
  const Tensor base = x * 1.0;
  Tensor v;
  {
    no_grad guard;
    v = base.view({2, 1});
  }
  CHECK_THROWS_WITH_AS(v.mul_(2.0), doctest::Contains("no_grad"), GradError);
}

TEST_CASE("expanded tensors refuse edits") {
  const Tensor x = zeros({1, 3}).expand({4, 3});
  CHECK_THROWS_WITH_AS(x.add_(1.0f), doctest::Contains("clone"), ShapeError);
}

TEST_CASE("versions count edits of the shared storage") {
  const Tensor x = zeros({4});
  const Tensor v = x.view({2, 2}), d = x.detach();
  const auto before = x.version();
  v.add_(1.0f);
  d.mul_(2.0f);
  CHECK(x.version() == before + 2);
  CHECK(x.to_vector<float>() == std::vector<float>{2, 2, 2, 2});
}

TEST_CASE("second derivatives go through an edited view") {
  const auto f = [](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    const Tensor base = in[0] * in[0];
    base(Slice(1, 3)).mul_(in[1]);
    return {base * base};
  };
  const std::vector<Tensor> in{leaf({0.5, -1, 2, 1.5}), leaf({0.3, -0.7})};
  CHECK(gradcheck(f, in) == "");
  CHECK(gradgradcheck(f, in) == "");
}

TEST_CASE("copy_ of the whole tensor cuts its history, and the source gets the gradient") {
  for (const DType type : {kFloat64, kFloat32, kHalf, kInt64, kBool})
    for (const Shape& sizes : {Shape{3}, Shape{1}, Shape{}}) {
      CAPTURE(name_of(type));
      CAPTURE(to_string(sizes));
      const Tensor x = leaf({1, 2, 3}), constant = ones(sizes, {.dtype = type});
      const Tensor y = x * 3.0;
      y.copy_(constant);
      CHECK(y.requires_grad());
      sum(y * y).backward();
      CHECK(grad_of(x) == std::vector<double>{0, 0, 0});
      if (!constant.is_floating()) continue;
      const Tensor z = x * 3.0;
      constant.requires_grad_();
      z.copy_(constant);
      x.set_grad({});
      sum(z * 2.0).backward();
      CHECK(grad_of(x) == std::vector<double>{0, 0, 0});
      CHECK(constant.grad().dtype() == type);
      CHECK(constant.grad().sizes() == sizes);
      CHECK(constant.grad().sum().item<double>() == 6.0);
    }
}

TEST_CASE("copy_ of a base cuts the history of its views, and copy_ through a view that of its base") {
  const Tensor x = leaf({1, 2, 3, 4}), w = leaf({5, 6, 7, 8});
  const Tensor base = x * 3.0, view = base.view({2, 2}), column = view.t()(0);
  base.copy_(w);
  sum(view * view).backward();
  CHECK(grad_of(x) == std::vector<double>{0, 0, 0, 0});
  CHECK(grad_of(w) == std::vector<double>{10, 12, 14, 16});
  x.set_grad({});
  w.set_grad({});
  sum(column).backward();
  CHECK(grad_of(x) == std::vector<double>{0, 0, 0, 0});
  CHECK(grad_of(w) == std::vector<double>{1, 0, 1, 0});

  const Tensor other = x * 3.0;
  other.view({2, 2}).t().copy_(tensor<double>({1.0, 2.0}));
  sum(other * other).backward();
  CHECK(other.to_vector<double>() == std::vector<double>{1, 1, 2, 2});
  CHECK(grad_of(x) == std::vector<double>{0, 0, 0, 0});
}

TEST_CASE("filling in place with random values cuts the history; leaves that require grad refuse it outside no_grad") {
  const Tensor x = leaf({1, 2, 3, 4});
  for (const bool normal : {true, false}) {
    const Tensor y = x * 3.0, strided = (x * 3.0).view({2, 2}).t();
    for (const Tensor& t : {y, strided}) {
      normal ? normal_(t, 100.0, 1.0) : uniform_(t, 90.0, 110.0);
      CHECK((t > 80.0).all().item<bool>());
      x.set_grad({});
      sum(t * t).backward();
      CHECK(grad_of(x) == std::vector<double>{0, 0, 0, 0});
    }
    CHECK_THROWS_WITH_AS(normal ? normal_(x) : uniform_(x), doctest::Contains("no_grad"), GradError);
  }
}

TEST_CASE("an edit through a view of a base that is not contiguous is recorded") {
  const auto f = [](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    Tensor base;
    {
      no_grad guard;  // so that the base is not itself a view
      base = zeros({4, 3}, {.dtype = kFloat64}).t().narrow(0, 0, 2);
    }
    base.copy_(in[0] * in[0]);
    base.narrow(1, 1, 2).mul_(in[1]);
    return {base * base};
  };
  const std::vector<Tensor> in{leaf({0.5, -1, 2, 1.5, 0.25, -0.75, 1.25, 3}).detach().view({2, 4}).requires_grad_(),
                               leaf({0.3, -0.7})};
  CHECK(gradcheck(f, in) == "");
  CHECK(gradgradcheck(f, in) == "");

  Tensor shared;
  {
    no_grad guard;
    shared = zeros({1, 3}, {.dtype = kFloat64}).expand({2, 3});
  }
  CHECK_THROWS_WITH_AS(shared(0).copy_(leaf({1, 2, 3})), doctest::Contains("share memory"), GradError);
}

TEST_CASE("an empty view of an expanded tensor has a gradient when its base is edited") {
  const Tensor x = ones({2}).requires_grad_(), base = clone(x);
  const Tensor empty_view = base.slice(0, Slice(0, 0)).expand({3, 0});
  base.mul_(2);
  const Tensor g = grad({base, empty_view}, {x}, {}, {ones({2}), ones({3, 0})})[0];
  CHECK(g.to_vector<float>() == std::vector<float>{2, 2});
}

namespace {

/// An in-place member and the function whose result it writes.
struct InPlace {
  const char* name;
  std::function<void(const Tensor& x, const Tensor& y)> edit;
  std::function<Tensor(const Tensor& x, const Tensor& y)> function;
  bool differentiable = true;
};

std::vector<InPlace> in_place_members() {
  const Tensor rows = tensor<int64_t>({2, 0});
  const Tensor places = tensor({{0, 1, 0}, {2, 2, 1}, {1, 0, 2}});
#define LEVIN_PAIR(name, ...) \
#name, [=](const Tensor& x, const Tensor& y) { (void)y; x.name##_(__VA_ARGS__); },                \
      [=](const Tensor& x, const Tensor& y) { (void)y; return levin::name(x __VA_OPT__(, ) __VA_ARGS__); }
  return {{LEVIN_PAIR(pow, y)},
          {LEVIN_PAIR(pow, 2.5)},
          {LEVIN_PAIR(remainder, 0.3)},
          {LEVIN_PAIR(fmod, 0.3)},
          {LEVIN_PAIR(floor_divide, 0.3), false},
          {LEVIN_PAIR(clamp_min, 0.6)},
          {LEVIN_PAIR(clamp_max, y)},
          {LEVIN_PAIR(atan2, y)},
          {LEVIN_PAIR(copysign, y)},
          {LEVIN_PAIR(hypot, y)},
          {LEVIN_PAIR(logical_and, y), false},
          {LEVIN_PAIR(logical_not), false},
          {LEVIN_PAIR(nan_to_num, 1.0)},
          {LEVIN_PAIR(lerp, y, 0.3)},
          {LEVIN_PAIR(lerp, y, y)},
          {LEVIN_PAIR(addcmul, y, y, 0.5)},
          {LEVIN_PAIR(addcdiv, y, y, 2)},
          {LEVIN_PAIR(addmm, y, y, 0.5, 2)},
          {LEVIN_PAIR(cumsum, 0)},
          {LEVIN_PAIR(cumprod, 1)},
          {LEVIN_PAIR(tril, -1)},
          {LEVIN_PAIR(triu)},
          {LEVIN_PAIR(scatter, 0, places, y)},
          {LEVIN_PAIR(scatter, 1, places, 7)},
          {LEVIN_PAIR(scatter_add, 1, places, y)},
          {LEVIN_PAIR(scatter_reduce, 0, places, y, ScatterReduce::prod)},
          {LEVIN_PAIR(index_add, 1, rows, y.narrow(1, 0, 2))},
          {LEVIN_PAIR(index_copy, 0, rows, y.narrow(0, 1, 2))},
          {LEVIN_PAIR(index_fill, 0, rows, -1)},
          {LEVIN_PAIR(masked_scatter, places > 0, y)}};
#undef LEVIN_PAIR
}

}  // namespace

TEST_CASE("each in-place member writes its function's result, and has its gradients") {
  for (const InPlace& m : in_place_members()) {
    CAPTURE(m.name);
    Generator g(3);
    const Tensor start = rand({3, 3}, {.dtype = kFloat64, .generator = &g}) + 0.2,
                 other = rand({3, 3}, {.dtype = kFloat64, .generator = &g}) + 0.5;
    const Tensor expected = m.function(start, other);
    const Tensor x = start.clone(), memory = zeros({3, 6}, kFloat64), strided = memory.slice(1, Slice(0, 6, 2));
    m.edit(x, other);
    CHECK(equal(x, expected.to(kFloat64)));
    strided.copy_(start);
    m.edit(strided, other);
    CHECK(equal(strided, expected.to(kFloat64)));
    CHECK(equal(memory.slice(1, Slice(1, 6, 2)), zeros({3, 3}, kFloat64)));
    const auto in_place = [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
      const Tensor y = in[0] * 1.0;
      m.edit(y, in[1]);
      return {y};
    };
    if (m.differentiable)
      CHECK(gradcheck(in_place, {start.clone().requires_grad_(), other.clone().requires_grad_()}) == "");
  }
}

TEST_CASE("random numbers in place") {
  Generator a(4), b(4);
  const Tensor x = zeros({1000});
  CHECK(equal(zeros({1000}).exponential_(2.0, &a), exponential_(x, 2.0, &b)));
  CHECK(std::abs(x.mean().item<double>() - 0.5) < 0.06);
  zeros({1000}).copy_(x.bernoulli_(0.3));
  CHECK(std::abs(x.mean().item<double>() - 0.3) < 0.06);
  x.bernoulli_(ones({1000}));
  CHECK(x.mean().item<double>() == 1);
  const Tensor whole = zeros({500}, kInt32);
  whole.random_(-2, 3);
  CHECK(whole.min().item<int>() == -2);
  CHECK(whole.max().item<int>() == 2);
  CHECK(x.new_full({2, 3}, 4).sum().item<float>() == 24);
  CHECK(whole.new_zeros({2}).dtype() == kInt32);
  CHECK(whole.new_ones({2}).sum().item<int>() == 2);
  CHECK(whole.new_empty({2, 0}).sizes() == Shape{2, 0});
  CHECK(ones({2, 3, 4}).mT().sizes() == Shape{2, 4, 3});
}

TEST_CASE("relu_, sigmoid_ and tanh_ are recorded without a copy") {
  struct Form {
    Tensor (*function)(Tensor);
    const Tensor& (Tensor::*in_place)() const;
  };
  for (const Form& f : {Form{&relu, &Tensor::relu_}, Form{&sigmoid, &Tensor::sigmoid_}, Form{&tanh, &Tensor::tanh_}}) {
    const Tensor x = leaf({-1.5, -0.25, 0.5, 2}), z = leaf({-1.5, -0.25, 0.5, 2});
    const Tensor y = x * 2.0, wanted = f.function(z * 2.0);
    const void* const memory = y.raw_data();
    (y.*f.in_place)();
    CHECK(y.raw_data() == memory);
    CHECK(equal(y, wanted));
    check_gradients(y, x, wanted, z);

    const Tensor edited = x * 2.0;
    (edited.*f.in_place)();
    edited.add_(1.0);  // overwrites the result, which the gradient needs
    CHECK_THROWS_AS(sum(edited).backward(), GradError);

    const Tensor viewed = x * 2.0, view = viewed[1], other = z * 2.0;
    (view.*f.in_place)();
    CHECK(viewed[1].item<double>() == view.item<double>());
    const Tensor mask = tensor<double>({0, 1, 0, 0});
    CHECK(equal(grad({sum(viewed * viewed)}, {x})[0],
                grad({sum(square(other * (1.0 - mask) + f.function(other) * mask))}, {z})[0]));
    const Tensor base = x * 2.0, later = base[1];
    (base.*f.in_place)();
    CHECK(equal(grad({later}, {x})[0], grad({f.function(z * 2.0)[1]}, {z})[0]));
    const Tensor saved = x * 2.0, product = saved * saved;
    (saved.*f.in_place)();
    CHECK_THROWS_AS(sum(product).backward(), GradError);
  }
}

TEST_CASE("relu, sigmoid and tanh write over a temporary that nobody else holds") {
  for (Tensor (*f)(Tensor) : {relu, sigmoid, tanh}) {
    const Tensor x = leaf({-1.5, -0.25, 0.5, 2}), z = leaf({-1.5, -0.25, 0.5, 2});
    Tensor y = x * 2.0;
    const void* const memory = y.raw_data();
    const Tensor wanted = f(z * 2.0), copied = f(y);
    CHECK(copied.raw_data() != memory);
    CHECK(equal(y, x * 2.0));
    const Tensor result = f(std::move(y));
    CHECK(result.raw_data() == memory);
    CHECK(equal(result, wanted));
    check_gradients(result, x, wanted, z);

    no_grad guard;
    Tensor constant = x * 2.0;
    const void* const unrecorded = constant.raw_data();
    CHECK(f(std::move(constant)).raw_data() == unrecorded);
  }
}

TEST_CASE("relu, sigmoid and tanh do not write over memory that someone else reads or that may not be edited") {
  for (Tensor (*f)(Tensor) : {relu, sigmoid, tanh}) {
    const Tensor x = leaf({-1.5, -0.25, 0.5, 2}), e = exp(x);
    CHECK(equal(grad({sum(f(exp(x)))}, {x})[0], grad({sum(f(e))}, {x})[0]));  // exp's gradient needs its result

    Tensor parameter = leaf({-1.5, 2});
    const void* const memory = parameter.raw_data();
    CHECK(f(std::move(parameter)).raw_data() != memory);

    Tensor hidden = x * 2.0;
    hidden.retain_grad();
    const void* const retained = hidden.raw_data();
    CHECK(f(std::move(hidden)).raw_data() != retained);

    std::vector<double> owned = {-1.5, 2};
    f(from_blob(owned.data(), {2}, {.dtype = kFloat64}));
    CHECK(owned == std::vector<double>{-1.5, 2});

    const Tensor whole = tensor<double>({-1.5, 2});
    f(whole[0]);
    f(whole.detach());
    CHECK(whole.to_vector<double>() == std::vector<double>{-1.5, 2});
    CHECK(equal(f(tensor<double>({-1.5}).expand({3})), f(full({3}, -1.5, kFloat64))));
    const Tensor rows = tensor<double>({-1.5, 3, 2, -4}).view({2, 2});
    CHECK(equal(f(tensor<double>({-1.5, 2, 3, -4}).view({2, 2}).t()), f(rows)));
    Tensor made;
    {
      inference_mode inference;
      made = tensor<double>({-1.5, 2});
    }
    const void* const inferred = made.raw_data();
    CHECK(f(std::move(made)).raw_data() != inferred);
  }
}
