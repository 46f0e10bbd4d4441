#include <levin/autograd/autocast.h>
#include <levin/optim/grad_scaler.h>
#include <levin/trainer/precision.h>

namespace levin {
namespace {

/// Parameters, inputs and everything between in one type.
class TruePrecision final : public Precision {
 public:
  TruePrecision(std::string name, DType dtype) : name_(std::move(name)), dtype_(dtype) {}
  std::string name() const override { return name_; }
  void setup(nn::Module& module) override { module.to(dtype_); }

  Batch convert(Batch batch) const override {
    for (Tensor& t : batch.tensors)
      if (t.is_floating() && t.dtype() != dtype_) t = t.to(dtype_);
    return batch;
  }

  std::unique_ptr<Scope> step_scope() const override {
    if (default_dtype() == dtype_) return nullptr;
    return std::make_unique<DefaultType>(dtype_);
  }
  Tensor scale(const Tensor& loss) override { return loss; }
  bool unscale(const std::vector<Parameter>&) override { return false; }
  void update(bool) override {}
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

/// Parameters in float32, products in a 16-bit type.
class MixedPrecision final : public Precision {
 public:
  MixedPrecision(std::string name, DType dtype)
      : name_(std::move(name)), dtype_(dtype), scaler_({.enabled = dtype == kHalf}) {}
  std::string name() const override { return name_; }
  void setup(nn::Module& module) override { module.to(kFloat32); }

  Batch convert(Batch batch) const override {
    for (Tensor& t : batch.tensors)
      if (t.is_floating() && t.dtype() != kFloat32) t = t.to(kFloat32);
    return batch;
  }

  std::unique_ptr<Scope> step_scope() const override { return std::make_unique<Cast>(dtype_); }
  Tensor scale(const Tensor& loss) override { return scaler_.scale(loss); }
  bool unscale(const std::vector<Parameter>& parameters) override { return scaler_.unscale_(parameters); }
  void update(bool skipped) override { scaler_.update_with(skipped); }

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

}  // namespace

std::unique_ptr<Precision> make_precision(const std::string& name) {
  if (name == "32-true" || name == "32") return std::make_unique<TruePrecision>("32-true", DType::f32);
  if (name == "64-true" || name == "64") return std::make_unique<TruePrecision>("64-true", DType::f64);
  if (name == "16-true") return std::make_unique<TruePrecision>(name, DType::f16);
  if (name == "bf16-true") return std::make_unique<TruePrecision>(name, DType::bf16);
  if (name == "16-mixed" || name == "16") return std::make_unique<MixedPrecision>("16-mixed", DType::f16);
  if (name == "bf16-mixed" || name == "bf16") return std::make_unique<MixedPrecision>("bf16-mixed", DType::bf16);
  throw UsageError("--precision " + name +
                   ": there are 32-true, 64-true, 16-mixed, bf16-mixed, 16-true and bf16-true. Use one of them.");
}

}  // namespace levin
