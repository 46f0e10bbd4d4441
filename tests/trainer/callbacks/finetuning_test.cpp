// A frozen backbone, its later group, and rates by hand.
#include "support/comparison.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

struct Backbone : nn::Module {
  nn::Linear& fc = add<nn::Linear>("fc", 6, 8);
  nn::BatchNorm2d& norm = add<nn::BatchNorm2d>("norm", 8);
  Tensor forward(const Tensor& x) override { return relu(norm(fc(x).reshape({x.sizes()[0], 8, 1, 1})).flatten(1)); }
};

struct Transfer : LevinModule {
  Backbone& backbone = add<Backbone>("backbone");
  nn::Linear& head = add<nn::Linear>("head", 8, 3);
  std::vector<std::vector<double>> rates;  // of each epoch's groups
  std::vector<std::vector<std::vector<float>>> backbones;

  Tensor forward(const Tensor& x) override { return head(backbone(x)); }
  StepOutput training_step(const Batch& b, int) override { return cross_entropy((*this)(b[0]), b[1]); }
  Optimizers configure_optimizers() override {
    std::vector<Parameter> given;
    for (const Parameter& p : parameters())
      if (p.name.starts_with("head.")) given.push_back(p);
    return Optimizers(optim::Adam(given, {.lr = 0.01}));
  }
  void on_train_epoch_end() override { backbones.push_back(values_of(backbone)); }
};

struct Result {
  std::vector<std::vector<double>> rates;
  std::vector<std::vector<std::vector<float>>> backbones;
};

Result fit(BackboneFinetuningOptions options, std::int64_t epochs = 5) {
  manual_seed(1);
  Transfer model;
  data::DataLoader train(toy_points(16), {.batch_size = 4});
  auto config = quiet({.max_epochs = epochs});
  Result r;
  config.callbacks = {BackboneFinetuning(options), LambdaCallback({.on_train_epoch_start = [&](RunContext& run) {
                        auto& epoch = r.rates.emplace_back();
                        for (const auto& group : run.optimizers->optimizer().param_groups())
                          epoch.push_back(group["lr"]);
                      }})};
  Trainer(config).fit(model, train);
  r.backbones = model.backbones;
  return r;
}

}  // namespace

TEST_CASE("callbacks/backbone_finetuning: frozen to the bit, then trained at a tenth, twice as fast each epoch") {
  const Result r = fit({.unfreeze_backbone_at_epoch = 2, .train_bn = false});
  REQUIRE(r.backbones.size() == 5);
  CHECK(r.backbones[0] == r.backbones[1]);
  CHECK(r.backbones[1] != r.backbones[2]);
  CHECK(r.backbones[2] != r.backbones[3]);
  CHECK(r.rates[1] == std::vector<double>{0.01});
  CHECK(r.rates[2] == std::vector<double>{0.01, 0.001});
  CHECK(r.rates[3] == std::vector<double>{0.01, 0.002});
  CHECK(r.rates[4] == std::vector<double>{0.01, 0.004});
}

TEST_CASE("callbacks/backbone_finetuning_options: BatchNorm, rates of one's own, alignment") {
  const Result norms = fit({.unfreeze_backbone_at_epoch = 2});
  CHECK(norms.backbones[0][0] == norms.backbones[1][0]);                // fc.weight
  CHECK(norms.backbones[0].end()[-3] != norms.backbones[1].end()[-3]);  // norm.running_mean
  const auto by_ten = [](std::int64_t) { return 10.0; };
  const Result aligned =
      fit({.unfreeze_backbone_at_epoch = 1, .lambda_func = by_ten, .backbone_initial_ratio_lr = 0.5});
  CHECK(aligned.rates[1] == std::vector<double>{0.01, 0.005});
  CHECK(aligned.rates[3] == std::vector<double>{0.01, 0.01});
  const Result free = fit(
      {.unfreeze_backbone_at_epoch = 1, .lambda_func = by_ten, .backbone_initial_lr = 0.003, .should_align = false});
  CHECK(free.rates[1] == std::vector<double>{0.01, 0.003});
  CHECK(free.rates[2] == std::vector<double>{0.01, 0.03});
  CHECK(fit({.unfreeze_backbone_at_epoch = 9}).rates[4] == std::vector<double>{0.01});
  CHECK_THROWS_AS(BackboneFinetuning({.unfreeze_backbone_at_epoch = -1}), UsageError);
  CHECK_THROWS_AS(BackboneFinetuning({.backbone_initial_ratio_lr = 0}), UsageError);
  CHECK_THROWS_AS(BackboneFinetuning({.backbone_initial_lr = -1}), UsageError);
  CHECK(contains(message_of<ValueError>([] { fit({.backbone = "back"}); }), "backbone"));
}

TEST_CASE("callbacks/base_finetuning: the helpers") {
  Transfer model;
  BaseFinetuning::freeze(model.backbone);
  CHECK_FALSE(model.backbone.fc.weight.requires_grad());
  CHECK(model.backbone.norm.weight.requires_grad());
  CHECK(model.backbone.norm.is_training());
  BaseFinetuning::freeze(model.backbone, /*train_bn=*/false);
  CHECK_FALSE(model.backbone.norm.weight.requires_grad());
  CHECK_FALSE(model.backbone.norm.is_training());
  CHECK(BaseFinetuning::trainable_parameters(model, model).size() == 2);
  optim::SGD sgd(BaseFinetuning::trainable_parameters(model, model), {.lr = 1.0});
  BaseFinetuning::unfreeze_and_add_param_group(model, model.backbone, sgd);
  REQUIRE(sgd.param_groups().size() == 2);
  CHECK(sgd.param_groups()[1]["lr"] == approx(0.1, {.relative = 1e-12}));
  CHECK(sgd.param_groups()[1].params.size() == 4);
  CHECK(sgd.param_groups()[1].params[0].name == "backbone.fc.weight");
  BaseFinetuning::unfreeze_and_add_param_group(model, model.backbone, sgd);  // nothing is left
  CHECK(sgd.param_groups().size() == 2);
  Transfer other;
  optim::SGD few(other.head.parameters(), {.lr = 1.0});
  BaseFinetuning::unfreeze_and_add_param_group(other, other.backbone, few, 0.5, 10.0, /*train_bn=*/false);
  CHECK(few.param_groups()[1]["lr"] == 0.5);
  CHECK(few.param_groups()[1].params.size() == 2);
}

TEST_CASE("callbacks/backbone_finetuning_masters: a group that comes later has float32 masters too") {
  manual_seed(1);
  Transfer model;
  data::DataLoader train(toy_points(16), {.batch_size = 4});
  auto config = quiet({.max_epochs = 3, .precision = "16-o2"});
  std::vector<DType> types;
  config.callbacks = {BackboneFinetuning({.unfreeze_backbone_at_epoch = 1}),
                      LambdaCallback({.on_train_epoch_end = [&](RunContext& run) {
                        for (const auto& group : run.optimizers->optimizer().param_groups())
                          types.push_back(group.params[0].dtype());
                      }})};
  Trainer(config).fit(model, train);
  CHECK(types == std::vector<DType>{kFloat32, kFloat32, kFloat32, kFloat32, kFloat32});
  CHECK(model.backbones[0][0] != model.backbones[1][0]);
  CHECK(model.backbone.fc.weight.dtype() == kHalf);
}
