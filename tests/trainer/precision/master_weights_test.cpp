// 16-o2: the types of weights, the optimizer and clipping under master weights, and checkpoints.
#include <levin/autograd/autocast.h>
#include <levin/optim/clip.h>
#include <levin/optim/grad_scaler.h>
#include <levin/trainer/checkpoint/checkpoint.h>
#include <levin/trainer/master_weights.h>

#include "support/comparison.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

struct SmallNet : LevinModule {
  nn::Conv2d& conv = add<nn::Conv2d>("conv", 1, 4, 3);
  nn::BatchNorm2d& bn = add<nn::BatchNorm2d>("bn", 4);
  nn::Linear& fc = add<nn::Linear>("fc", 16, 3);
  nn::LayerNorm& norm = add<nn::LayerNorm>("norm", 3);
  Tensor shift = register_buffer("shift", full({16}, 0.1));
  DType seen = kInt8;

  Tensor forward(const Tensor& x) override { return norm(fc(flatten(relu(bn(conv(x))), 1) + shift)); }
  StepOutput training_step(const Batch& b, int) override {
    seen = b[0].dtype();
    return cross_entropy((*this)(b[0]), b[1]);
  }
  Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.05, .momentum = 0.9}); }
};

data::TensorDataset images() {
  Generator rng(3);
  return data::TensorDataset({randn({8, 1, 4, 4}, {.generator = &rng}), randint(0, 3, {8}, {.generator = &rng})});
}

StateDict copy_of(const StateDict& state) {
  StateDict copy;
  for (const auto& [name, t] : state) copy.set(name, t.clone());
  return copy;
}

bool same_values(const Tensor& a, const Tensor& b) { return a.dtype() == b.dtype() && eq(a, b).all().item<bool>(); }

}  // namespace

TEST_CASE("amp/o2_param_dtypes: normalisation stays float32 to the bit, all else is float16, masters are float32") {
  manual_seed(1);
  SmallNet net;
  const StateDict before = copy_of(net.state_dict());
  optim::SGD opt(net.parameters());
  MasterWeights masters(net);
  masters.attach(opt);
  for (const auto& [name, t] : net.state_dict()) {
    INFO(name);
    const bool spared = name.starts_with("bn.") || name.starts_with("norm.");
    if (!t.is_floating()) continue;
    CHECK(t.dtype() == (spared ? kFloat32 : kHalf));
    CHECK(same_values(t, before.at(name).to(t.dtype())));
  }
  for (const Parameter& p : opt.parameters()) {
    CHECK(p.dtype() == kFloat32);
    CHECK(same_values(p, before.at(p.name)));
  }
  // A float32 net takes what is saved as it is.
  SmallNet single;
  const StateDict saved = masters.state_dict(net);
  CHECK_NOTHROW(single.load_state_dict(saved));
  CHECK(same_values(single.fc.weight, before.at("fc.weight")));
  CHECK_FALSE(same_values(single.fc.weight, net.fc.weight.to(kFloat32)));
}

TEST_CASE("clipping sees unscaled float32 gradients, the half model the rounded masters") {
  manual_seed(1);
  SmallNet net;
  MasterWeights masters(net);
  optim::SGD opt(net.parameters(), {.lr = 0.1});
  masters.attach(opt);
  GradScaler scaler({.init_scale = 1024.0});  // the default overflows here at first
  const Batch all = images().get_batch(std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}, Generator(0));
  for (int i = 0; i < 3; ++i) {
    opt.zero_grad();
    masters.zero_grad();
    Tensor loss;
    {
      const autocast on(kHalf);
      loss = cross_entropy(net(all[0].to(kHalf)), all[1]);
    }
    CHECK(loss.dtype() == kFloat32);
    scaler.scale(loss).backward();
    CHECK(net.fc.weight.grad().dtype() == kHalf);
    masters.take_gradients();
    scaler.unscale_(opt);
    for (const Parameter& p : opt.parameters()) CHECK(p.grad().dtype() == kFloat32);
    const double norm = optim::clip_grad_norm_(opt.parameters(), 1.0).item<double>();
    CHECK(norm > 0.1);
    CHECK(norm < 100);
    scaler.step(opt);
    scaler.update();
    masters.give_weights();
    for (const Parameter& p : opt.parameters())
      if (p.name == "fc.weight") CHECK(same_values(net.fc.weight, p.to(kHalf)));
  }
  CHECK(scaler.get_growth_tracker() == 3);
}

TEST_CASE("amp/o2_master_weights_update_tiny_lr: steps too small for float16 add up in the masters") {
  const no_grad guard;
  nn::Linear net(1, 1, {.bias = false});
  net.weight.fill_(1.0);
  MasterWeights masters(net);
  optim::SGD opt(net.parameters(), {.lr = 1e-4});
  masters.attach(opt);
  for (int i = 0; i < 10; ++i) {
    net.weight.set_grad(ones({1, 1}, {.dtype = kHalf}));
    masters.take_gradients();
    CHECK_FALSE(net.weight.grad().defined());
    opt.step();
    masters.give_weights();
    if (i == 0) CHECK(net.weight.item<float>() == 1.0f);  // half of float16's spacing there is 2.4e-4
  }
  CHECK(masters.state_dict(net).at("weight").item<float>() == approx(0.999, {.relative = 1e-6}));
  CHECK(net.weight.item<float>() == approx(0.999, {.relative = 2.5e-4}));
  CHECK(net.weight.item<float>() != 1.0f);
}

TEST_CASE("a changed weight is used; a second setup keeps the masters") {
  manual_seed(1);
  nn::Linear net(3, 2);
  MasterWeights masters(net);
  const StateDict before = copy_of(masters.state_dict(net));
  masters.setup(net);
  CHECK(same_values(masters.state_dict(net).at("weight"), before.at("weight")));
  {
    const no_grad guard;
    net.bias.fill_(0.5);
  }
  optim::SGD opt(net.parameters());
  masters.attach(opt);
  CHECK(same_values(opt.parameters()[0], before.at("weight")));
  CHECK(opt.parameters()[1].to_vector<float>() == std::vector<float>{0.5f, 0.5f});
}

TEST_CASE("a checkpoint of 16-o2 is a float32 model; testing does not lose the masters") {
  const TempDir folder;
  manual_seed(1);
  SmallNet net;
  data::DataLoader loader(images(), {.batch_size = 4});
  auto config = quiet({.max_epochs = 2, .precision = "16-o2"});
  config.callbacks = {ModelCheckpoint({.dirpath = folder.path})};
  Trainer trainer(config);
  trainer.fit(net, loader);
  CHECK(net.seen == kHalf);
  CHECK(net.conv.weight.dtype() == kHalf);
  const Checkpoint saved = read_checkpoint(folder.path / "last");
  for (const auto& [name, t] : saved.model)
    if (t.is_floating()) CHECK_MESSAGE(t.dtype() == kFloat32, name);
  CHECK(same_values(saved.model.at("fc.weight").to(kHalf), net.fc.weight.detach()));
  CHECK_FALSE(same_values(saved.model.at("fc.weight"), net.fc.weight.detach().to(kFloat32)));
  const auto tested = [&](const std::string& precision) {
    struct Tested : SmallNet {
      void test_step(const Batch& b, int) override { log("loss", cross_entropy((*this)(b[0]), b[1])); }
    } other;
    Trainer tester(quiet({.precision = precision}));
    return tester
        .test(other, {.test = std::make_shared<data::DataLoader>(images(), data::DataLoaderOptions{})},
              (folder.path / "last").string())[0]
        .at("loss");
  };
  CHECK(tested("16-o2") == approx(tested("32-true"), {.relative = 0.01}));
}
