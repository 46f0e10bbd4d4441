#pragma once
// Estimates the effect of rounding on a result.

#include "fuzz/program.h"

#include <levin/core/error.h>
#include <levin/kernels/kernel.h>

#include <optional>
#include <typeinfo>

namespace levin::fuzz {

/// Adds to a computation in double the errors of rounding in a type whose ulp of 1 is `unit`, so that the spread of
/// results bounds the error of rounded ones (as in Vignes, "A stochastic arithmetic for reliable scientific
/// computation", 1993): random relative errors of an ulp in the inputs of operations, and in a graph random errors as
/// large as the error model allows in each result and in each gradient passed between operations. While a `Scope`
/// lives, results of rounding kernels get such errors too, including those that backward is composed of.
class Noise : kernels::KernelObserver {
 public:
  /// Seed 0 only rounds the values passed between operations, so equal numbers stay equal.
  Noise(std::uint64_t seed, double unit) : generator_(seed), unit_(unit), rounds_(seed == 0) {}
  Tensor of_input(const Tensor& x) { return disturbed(x, {.ulps = 1}, 1, 1); }
  Tensor of_result(const Tensor& y, const Step& step);
  /// Perturbs the gradient that a step passes to its input x. `y` is the step's output.
  void of_gradients(const Tensor& x, const Tensor& y, const Step& step);

  class Scope {
   public:
    explicit Scope(Noise* noise) : set_(noise != nullptr), former_(set_ ? kernels::set_observer(noise) : nullptr) {}
    ~Scope() {
      if (set_) kernels::set_observer(former_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    bool set_;
    kernels::KernelObserver* former_;
  };

 private:
  void called(const char*, Device) override {}
  void returned(const char* kernel, const std::type_info& type, const void* args, const kernels::Work& work,
                const Stream& stream) override;
  Tensor disturbed(const Tensor& x, const test::Tolerance& model, int64_t terms, double magnitude);

  Generator generator_;
  double unit_;
  bool rounds_;
};

/// Returns f(&noise), or nothing if it throws: noise may carry a value out of an operation's domain, such as the last
/// rank of a quantile.
template <class F>
auto with_noise(Noise& noise, const F& f) -> std::optional<decltype(f(&noise))> {
  try {
    return f(&noise);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace levin::fuzz
