#include <levin/autograd/autocast.h>
#include <levin/optim/grad_scaler.h>
#include <levin/trainer/master_weights.h>
#include <levin/trainer/precision.h>

namespace levin {
namespace {

Batch converted(Batch batch, DType dtype) {
  for (Tensor& t : batch.tensors)
    if (t.is_floating() && t.dtype() != dtype) t = t.to(dtype);
  return batch;
}

/// Parameters, inputs and activations in one type.
class TruePrecision final : public PrecisionPlugin {
 public:
  TruePrecision(std::string name, DType dtype) : name_(std::move(name)), dtype_(dtype) {}
  std::string name() const override { return name_; }
  void setup(nn::Module& module) override { module.to(dtype_); }

  Batch convert(Batch batch) const override { return converted(std::move(batch), dtype_); }

  std::unique_ptr<Scope> step_scope() const override {
    if (default_dtype() == dtype_) return nullptr;
    return std::make_unique<DefaultType>(dtype_);
  }
  Tensor scale(const Tensor& loss) override { return loss; }
  Tensor unscale(const std::vector<Parameter>&) override { return {}; }
  void update(const Tensor&) override {}
  StateMap state() const override { return {}; }
  void load_state(const StateMap&) override {}

 private:
  struct DefaultType final : Scope {
    explicit DefaultType(DType dtype) : before(default_dtype()) { set_default_dtype(dtype); }
    ~DefaultType() override { set_default_dtype(before); }
    DType before;
  };
  std::string name_;
  DType dtype_;
};

/// Autocast to a 16-bit type, with gradients scaled by a GradScaler.
class ScaledPrecision : public PrecisionPlugin {
 public:
  ScaledPrecision(std::string name, DType dtype)
      : name_(std::move(name)), dtype_(dtype), scaler_({.enabled = dtype == kHalf}) {}
  std::string name() const override { return name_; }

  std::unique_ptr<Scope> step_scope() const override { return std::make_unique<Cast>(dtype_); }
  Tensor scale(const Tensor& loss) override { return scaler_.scale(loss); }
  Tensor unscale(const std::vector<Parameter>& parameters) override { return scaler_.unscale_(parameters); }
  void update(const Tensor& found_inf) override { scaler_.update_with(found_inf); }

  StateMap state() const override {
    StateMap map;
    for (const auto& [key, value] : scaler_.state_dict()) map.set(key, value.item<double>());
    return map;
  }
  void load_state(const StateMap& map) override {
    StateDict state;
    for (const auto& [key, value] : scaler_.state_dict())
      state.set(key, tensor(map.get<double>(key), {.dtype = kFloat64}));
    scaler_.load_state_dict(state);
  }

 private:
  struct Cast final : Scope {
    explicit Cast(DType dtype) : on(dtype) {}
    autocast on;
  };
  std::string name_;
  DType dtype_;
  GradScaler scaler_;
};

/// Keeps parameters in float32.
class MixedPrecision final : public ScaledPrecision {
 public:
  using ScaledPrecision::ScaledPrecision;
  void setup(nn::Module& module) override { module.to(kFloat32); }
  Batch convert(Batch batch) const override { return converted(std::move(batch), kFloat32); }
};

/// Apex's O2: parameters in float16 except for normalisation layers. Apex patches the model's forward to return
/// float32; here autocast lets losses and other sensitive operations compute in float32.
class MasterPrecision final : public ScaledPrecision {
 public:
  MasterPrecision() : ScaledPrecision("16-o2", kHalf) {}
  void setup(nn::Module& module) override { masters_.setup(module); }
  void attach(optim::Optimizer& optimizer) override { masters_.attach(optimizer); }
  bool has_own_weights() const override { return true; }
  Batch convert(Batch batch) const override { return converted(std::move(batch), kHalf); }
  void zero_grad() override { masters_.zero_grad(); }
  Tensor unscale(const std::vector<Parameter>& parameters) override {
    masters_.take_gradients();
    return ScaledPrecision::unscale(parameters);
  }
  void after_step() override { masters_.give_weights(); }

  // A checkpoint stores the masters as the model's weights: like Apex's state dicts they are float32, and like
  // Lightning's they have only the model's names. The file loads into a float32 net without loss and stores no weight
  // twice. The float16 model is the masters rounded, so a resumed run has the same bits.
  StateDict weights(const nn::Module& module) const override { return masters_.state_dict(module); }
  void load_weights(nn::Module& module, const StateDict& weights) override {
    masters_.load_state_dict(module, weights);
  }

 private:
  MasterWeights masters_;
};

/// Returns the precision that other programs call `name`; empty if there is none.
std::string precision_meant(const std::string& name) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"fp16", "16-mixed"},       {"float16", "16-mixed"}, {"half", "16-mixed"},   {"amp", "16-mixed"},
      {"bfloat16", "bf16-mixed"}, {"fp32", "32-true"},     {"float32", "32-true"}, {"fp64", "64-true"},
      {"float64", "64-true"},     {"double", "64-true"}};
  for (const auto& [other, own] : kNames)
    if (name == other) return own;
  return {};
}

}  // namespace

std::unique_ptr<PrecisionPlugin> make_precision(const std::string& name) {
  if (name == "32-true" || name == "32") return std::make_unique<TruePrecision>("32-true", DType::f32);
  if (name == "64-true" || name == "64") return std::make_unique<TruePrecision>("64-true", DType::f64);
  if (name == "16-true") return std::make_unique<TruePrecision>(name, DType::f16);
  if (name == "bf16-true") return std::make_unique<TruePrecision>(name, DType::bf16);
  if (name == "16-mixed" || name == "16") return std::make_unique<MixedPrecision>("16-mixed", DType::f16);
  if (name == "bf16-mixed" || name == "bf16") return std::make_unique<MixedPrecision>("bf16-mixed", DType::bf16);
  if (name == "16-o2") return std::make_unique<MasterPrecision>();
  const std::string meant = precision_meant(name);
  throw UsageError("--precision " + name + ": " + (meant.empty() ? "there" : "did you mean " + meant + "? There") +
                   " are 32-true, 64-true, 16-mixed, bf16-mixed, 16-true, bf16-true and 16-o2 (in short 32, 64, "
                   "16 and bf16 for the first four). Use one of them.");
}

}  // namespace levin
