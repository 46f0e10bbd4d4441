#include <levin/autograd/ops.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <sstream>
#include <thread>

using namespace levin;

namespace {

struct Net : nn::Module {
  nn::Linear& fc1 = add<nn::Linear>("fc1", 4, 3);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 3, 2, {.bias = false});
  Tensor forward(const Tensor& x) override { return fc2(relu(fc1(x))); }
};

struct Deep : nn::Module {
  explicit Deep(int blocks) {
    for (int i = 0; i < blocks; ++i) list.append();
  }
  nn::ModuleList<Net>& list = add<nn::ModuleList<Net>>("list");
  nn::BatchNorm2d& norm = add<nn::BatchNorm2d>("norm", 2);
  Tensor scale = register_parameter("scale", ones({2}));
  Tensor cache = register_buffer("cache", zeros({1}), /*persistent=*/false);
};

template <class List>
std::string names(const List& list) {
  std::string text;
  for (const auto& entry : list) text += entry.first + " ";
  return text;
}

std::string thrown(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing";
}

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("names match PyTorch's, in the order of registration") {
  Deep deep(2);
  CHECK(names(deep.named_parameters()) ==
        "scale list.0.fc1.weight list.0.fc1.bias list.0.fc2.weight list.1.fc1.weight list.1.fc1.bias list.1.fc2.weight "
        "norm.weight norm.bias ");
  CHECK(names(deep.named_buffers()) == "cache norm.running_mean norm.running_var norm.num_batches_tracked ");
  CHECK(names(deep.named_children()) == "list norm ");
  CHECK(names(deep.named_parameters(false)) == "scale ");
  CHECK(names(deep.named_modules()) == " list list.0 list.0.fc1 list.0.fc2 list.1 list.1.fc1 list.1.fc2 norm ");
  CHECK(deep.parameters()[1].name == "list.0.fc1.weight");
  CHECK(deep.parameters()[1].is_same(deep.list[0].fc1.weight));
  CHECK(deep.parameter_count() == 2 + 2 * (12 + 3 + 6) + 4);
  CHECK(&deep.get_submodule("list.1.fc2") == &deep.list[1].fc2);
  CHECK(mentions(thrown([&] { deep.get_submodule("fc9"); }), "no module \"fc9\". It has: list, list.0, list.0.fc1"));
}

TEST_CASE("duplicate, empty and dotted names are refused") {
  struct Bad : nn::Module {};
  Bad bad;
  bad.register_parameter("w", ones({1}));
  CHECK(mentions(thrown([&] { bad.register_buffer("w", ones({1})); }), "[Bad] the name \"w\" is taken"));
  CHECK(mentions(thrown([&] { bad.add<nn::ReLU>("a.b"); }), "\"a.b\" is no name"));
  CHECK(mentions(thrown([&] { bad.add<nn::ReLU>(""); }), "is no name"));
  CHECK(mentions(thrown([&] { bad(ones({1})); }), "[Bad] has no forward of one tensor"));
}

TEST_CASE("a shared parameter is listed once and saved under both names") {
  struct Tied : nn::Module {
    nn::Linear& head = add<nn::Linear>("head", 3, 3, {.bias = false});
    Tensor again = register_parameter("again", head.weight);
  };
  Tied tied;
  CHECK(names(tied.named_parameters()) == "again ");
  CHECK(names(tied.state_dict()) == "again head.weight ");
}

TEST_CASE("moving a module keeps its members' references valid") {
  Net first;
  const Tensor weight = first.fc1.weight, x = randn({5, 4});
  const Tensor y = first(x);
  Net second = std::move(first);
  CHECK(second.fc1.weight.is_same(weight));
  CHECK(&second.fc1 == second.named_children()[0].second);
  CHECK(second(x).to_vector<float>() == y.to_vector<float>());
  static_assert(!std::is_copy_constructible_v<Net> && !std::is_move_assignable_v<Net>);
}

TEST_CASE("clone is deep, keeps the module's type, and draws no random numbers") {
  Net net;
  net.fc1.weight.requires_grad_(false);
  net.eval();
  const GeneratorState before = default_generator().state();
  Net copy = nn::clone(net);
  CHECK(default_generator().state() == before);
  const Tensor x = randn({2, 4});
  CHECK(copy(x).to_vector<float>() == net(x).to_vector<float>());
  CHECK(!copy.fc1.weight.shares_storage(net.fc1.weight));
  CHECK(!copy.fc1.weight.requires_grad());
  CHECK(copy.fc1.bias.requires_grad());
  CHECK(!copy.fc2.is_training());
  copy.fc2.weight.requires_grad_(false);
  copy.fc2.weight.fill_(0);
  CHECK(copy(x).to_vector<float>() != net(x).to_vector<float>());

  nn::Linear layer = nn::clone(net.fc1);  // no default constructor: layers know their arguments
  CHECK(layer.weight.to_vector<float>() == net.fc1.weight.to_vector<float>());

  Deep deep(3);
  Deep other = nn::clone(deep, 3);
  CHECK(other.list.size() == 3);
  CHECK(other.list[2].fc1.bias.to_vector<float>() == deep.list[2].fc1.bias.to_vector<float>());
  CHECK(mentions(thrown([&] { nn::clone(deep, 2); }), "gave another structure"));
  CHECK(mentions(thrown([&] { nn::clone(deep); }), "a Deep needs its constructor's arguments"));
  nn::Module& base = net;
  CHECK(mentions(thrown([&] { nn::clone(base); }), "the module is a Net, known here by a base class"));

  nn::Sequential net2(nn::Conv2d(1, 2, 3, {.padding = 1}), nn::BatchNorm2d(2), nn::ReLU(),
                      nn::Sequential(nn::Flatten(), nn::Linear(8, 2)));
  nn::Sequential copy2 = nn::clone(net2);
  CHECK(names(copy2.state_dict()) == names(net2.state_dict()));
  const Tensor image = randn({1, 1, 2, 2});
  copy2.eval(), net2.eval();
  CHECK(copy2(image).to_vector<float>() == net2(image).to_vector<float>());
}

TEST_CASE("modules created and cloned on several threads divide one stream of random numbers") {
  constexpr int threads = 3, each = 200;
  const auto make = [] { return nn::Linear(4, 3, {.bias = false}); };
  const auto values = [](const nn::Linear& layer) { return layer.weight.detach().to_vector<float>(); };
  const GeneratorState kept = default_generator().state();
  manual_seed(8);
  std::vector<std::vector<float>> together, alone;
  for (int i = 0; i < threads * each; ++i) alone.push_back(values(make()));
  manual_seed(8);
  std::mutex mutex;
  {
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; ++t) {
      all.emplace_back([&] {
        for (int i = 0; i < each; ++i) {
          const nn::Linear layer = make(), copy = nn::clone(layer);
          const std::lock_guard lock(mutex);
          together.push_back(values(copy));
        }
      });
    }
  }
  default_generator().set_state(kept);
  std::ranges::sort(alone);
  std::ranges::sort(together);
  CHECK(together == alone);
}

TEST_CASE("a clone has its original's dtype") {
  Net net;
  net.to(DType::f64);
  CHECK(nn::clone(net).fc1.weight.dtype() == DType::f64);
}

TEST_CASE("train, eval, apply, requires_grad_ reach every module") {
  Deep deep(1);
  CHECK(deep.is_training());
  deep.eval();
  for (const auto& entry : deep.named_modules()) CHECK(!entry.second->is_training());
  deep.train();
  CHECK(deep.list[0].fc1.is_training());
  std::string order;
  deep.apply([&](nn::Module& m) { order += m.type_name() + " "; });
  CHECK(order == "Linear Linear Net ModuleList BatchNorm2d Deep ");
  deep.requires_grad_(false);
  for (const auto& entry : deep.named_parameters()) CHECK(!entry.second.requires_grad());
}

TEST_CASE("to changes tensors in place") {
  Net net;
  const Tensor weight = net.fc1.weight;  // a handle as an optimizer holds it
  const Tensor x = randn({2, 4});
  net(x).sum().backward();
  const auto grad = weight.grad().to_vector<float>();
  net.to(DType::f64);
  CHECK(weight.dtype() == DType::f64);
  CHECK(weight.requires_grad());
  CHECK(weight.grad().dtype() == DType::f64);
  CHECK(weight.grad().to_vector<float>() == grad);
  net.zero_grad();
  CHECK(!weight.grad().defined());
  net(x.to(DType::f64)).sum().backward();
  CHECK(weight.grad().dtype() == DType::f64);
  net.zero_grad(false);
  CHECK(weight.grad().to_vector<double>() == std::vector<double>(12, 0.0));
  Deep deep(1);
  deep.to(DType::f64);
  CHECK(deep.norm.running_mean.dtype() == DType::f64);
  CHECK(deep.norm.num_batches_tracked.dtype() == DType::i64);
  CHECK(mentions(thrown([&] { net.to(DType::i64); }), "[to] parameters are floating, not int64"));
  CHECK(net.device() == kCpu);
}

TEST_CASE("tensor/to_same_device_is_noop") {
  const Tensor x = randn({2, 3});
  CHECK(x.to(kCpu).shares_storage(x));
  CHECK(x.to(kCpu).is_same(x));
  CHECK(x.cpu().is_same(x));
  CHECK(x.to(DType::f32).is_same(x));
  Net net;
  const Tensor weight = net.fc1.weight;
  const void* const memory = weight.raw_data();
  const auto version = weight.version();
  net.to(kCpu);
  CHECK(net.fc1.weight.is_same(weight));
  CHECK(weight.raw_data() == memory);
  CHECK(weight.version() == version);
}

TEST_CASE("nn/buffer_properties") {
  struct Counting : nn::Module {
    Tensor scale = register_parameter("scale", ones({2}));
    Tensor kept = register_buffer("kept", full({2}, 2.f));
    Tensor scratch = register_buffer("scratch", full({2}, 3.f), /*persistent=*/false);
    Tensor forward(const Tensor& x) override { return x * scale * kept * scratch; }
  };
  Counting net;
  // It moves with the module; existing handles see that.
  const Tensor kept = net.kept, scratch = net.scratch;
  net.to(DType::f64);
  CHECK(kept.dtype() == DType::f64);
  CHECK(scratch.dtype() == DType::f64);
  CHECK(names(net.named_buffers()) == "kept scratch ");
  // It is saved unless it is not persistent.
  CHECK(names(net.state_dict()) == "scale kept ");
  Counting other;
  other.to(DType::f64);
  other.kept.fill_(7);
  CHECK(net.load_state_dict(other.state_dict()).missing.empty());
  CHECK(kept.to_vector<double>() == std::vector<double>{7, 7});
  CHECK(scratch.to_vector<double>() == std::vector<double>{3, 3});
  // It is not a parameter and gets no gradient.
  CHECK(names(net.named_parameters()) == "scale ");
  net(ones({2}, {.dtype = DType::f64})).sum().backward();
  CHECK_FALSE(kept.requires_grad());
  CHECK_FALSE(kept.grad().defined());
  CHECK(net.scale.grad().to_vector<double>() == std::vector<double>{21, 21});
}

TEST_CASE("load_state_dict is all or nothing and lists every difference") {
  Deep from(1), to(1);
  from.norm.num_batches_tracked.fill_(7);
  CHECK(from.state_dict().contains("norm.running_var"));
  CHECK(!from.state_dict().contains("cache"));
  to.load_state_dict(from.state_dict());
  CHECK(to.list[0].fc1.weight.to_vector<float>() == from.list[0].fc1.weight.to_vector<float>());
  CHECK(!to.list[0].fc1.weight.shares_storage(from.list[0].fc1.weight));
  CHECK(to.norm.num_batches_tracked.item<int64_t>() == 7);
  CHECK(to.list[0].fc1.weight.requires_grad());

  StateDict state;
  for (const auto& [name, value] : from.state_dict())
    if (name != "scale") state.set(name, value.clone());
  state.set("extra", ones({1}));
  state.set("norm.weight", ones({3}));
  state.set("norm.bias", ones({2}, {.dtype = DType::i64}));
  state.set("norm.running_mean", full({2}, 9.f));
  const std::string text = thrown([&] { to.load_state_dict(state); });
  CHECK(text ==
        "[load_state_dict] this state is not one of a Deep: \"norm.weight\" has shape (2,) here and (3,) there; "
        "\"norm.bias\" is float32 here and int64 there; missing: \"scale\"; unexpected: \"extra\". Nothing was "
        "loaded.");
  CHECK(to.norm.running_mean.to_vector<float>() == std::vector<float>{0, 0});

  state.set("norm.weight", full({2}, 5.f));
  state.set("norm.bias", ones({2}, {.dtype = DType::f64}));
  const nn::LoadReport report = to.load_state_dict(state, {.strict = false});
  CHECK(report.missing == std::vector<std::string>{"scale"});
  CHECK(report.unexpected == std::vector<std::string>{"extra"});
  CHECK(to.norm.weight.to_vector<float>() == std::vector<float>{5, 5});
  CHECK(to.norm.bias.to_vector<float>() == std::vector<float>{1, 1});
  CHECK(report.converted == std::vector<std::string>{"norm.bias"});
}

TEST_CASE("load_state_dict converts between floating types and reports the names") {
  for (const DType there : {DType::f64, DType::f32, DType::f16, DType::bf16})
    for (const DType here : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      nn::BatchNorm2d from(2), to(2);
      from.weight.detach().copy_(tensor({0.5, -2.0}));  // exact in every type
      from.num_batches_tracked.fill_(3);
      from.to(there);
      to.to(here);
      const nn::LoadReport report = to.load_state_dict(from.state_dict());
      const std::vector<std::string> all{"weight", "bias", "running_mean", "running_var"};
      CHECK(report.converted == (here == there ? std::vector<std::string>{} : all));
      CHECK(to.weight.dtype() == here);
      CHECK(to.weight.to_vector<double>() == std::vector<double>{0.5, -2});
      CHECK(to.num_batches_tracked.item<int64_t>() == 3);
    }
  nn::BatchNorm2d norm(2);
  StateDict counts = norm.state_dict();
  counts.set("num_batches_tracked", zeros({}));
  CHECK(mentions(thrown([&] { norm.load_state_dict(counts); }),
                 "\"num_batches_tracked\" is int64 here and float32 there"));
}

TEST_CASE("a tree is printed as in PyTorch, with parameter counts") {
  nn::Sequential net(nn::Conv2d(1, 16, 5, {.padding = 2}), nn::ReLU(), nn::MaxPool2d(2),
                     nn::Sequential(nn::Flatten(), nn::Linear(3136, 10)), nn::Dropout(0.25));
  std::ostringstream out;
  out << net;
  CHECK(out.str() == "Sequential(  # 31,786\n"
                     "  (0): Conv2d(1, 16, kernel_size=(5, 5), stride=(1, 1), padding=(2, 2))  # 416\n"
                     "  (1): ReLU()\n"
                     "  (2): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)\n"
                     "  (3): Sequential(  # 31,370\n"
                     "    (0): Flatten(start_dim=1, end_dim=-1)\n"
                     "    (1): Linear(in_features=3136, out_features=10, bias=True)  # 31,370\n"
                     "  )\n"
                     "  (4): Dropout(p=0.25)\n"
                     ")");
}

TEST_CASE("100,000 nested modules: names, state, modes and destruction need no deep stack") {
  struct Nest : nn::Module {
    void take(std::unique_ptr<Module> inner) { adopt("n", std::move(inner)); }
  };
  constexpr std::size_t kDeep = 100000;
  std::unique_ptr<nn::Module> outer = std::make_unique<nn::Linear>(1, 1);
  for (std::size_t i = 0; i < kDeep; ++i) {
    auto next = std::make_unique<Nest>();
    next->take(std::move(outer));
    outer = std::move(next);
  }
  const StateDict state = outer->state_dict();
  REQUIRE(state.size() == 2);
  CHECK(state.begin()->first.size() == 2 * kDeep + std::string("weight").size());
  CHECK(outer->load_state_dict(state).missing.empty());
  CHECK(outer->parameter_count() == 2);
  int seen = 0;
  outer->eval().apply([&](nn::Module& m) { seen += m.is_training() ? 0 : 1; });
  CHECK(seen == static_cast<int>(kDeep) + 1);
  outer.reset();
}

TEST_CASE("a module's destructor can still use its children") {
  static std::string tape;
  tape.clear();
  struct Leaf : nn::Module {
    char name = '?';
    ~Leaf() override { tape += name; }
  };
  struct Parent : nn::Module {
    Leaf& a = add<Leaf>("a");
    Leaf& b = add<Leaf>("b");
    explicit Parent(char x, char y) { a.name = x, b.name = y; }
    ~Parent() override { tape += std::string("(") + a.name + b.name + ")"; }
  };
  struct Top : nn::Module {
    Parent& first = add<Parent>("first", '1', '2');
    Parent& second = add<Parent>("second", '3', '4');
    ~Top() override { tape += "top"; }
  };
  { const Top top; }
  CHECK(tape == "top(34)43(12)21");
}

TEST_CASE("a conversion also converts the gradient") {
  nn::Linear layer(2, 1, {.bias = false});
  layer.weight.set_grad(from_data<float>({0.5f, -3.f}, {1, 2}));
  layer.to(kFloat64);
  REQUIRE(layer.weight.grad().defined());
  CHECK(layer.weight.grad().dtype() == kFloat64);
  CHECK(layer.weight.grad().to_vector<double>() == std::vector<double>{0.5, -3});
}
