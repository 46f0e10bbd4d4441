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
  bool unscale(const std::vector<Tensor>&) override { return false; }
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

}  // namespace

std::unique_ptr<Precision> make_precision(const std::string& name) {
  if (name == "32-true" || name == "32") return std::make_unique<TruePrecision>("32-true", DType::f32);
  if (name == "64-true" || name == "64") return std::make_unique<TruePrecision>("64-true", DType::f64);
  throw UsageError("--precision " + name + ": this build has 32-true and 64-true. Use one of them.");
}

}  // namespace levin
