#pragma once
// How far rounding may move a result.

#include "fuzz/program.h"

#include <levin/kernels/kernel.h>

#include <typeinfo>

namespace levin::fuzz {

/// What rounding in a type whose ulp of 1 is `unit` may do to a computation in double, so that the spread of results
/// tells how far rounded ones may be off (as in Vignes, "A stochastic arithmetic for reliable scientific computation",
/// 1993): random relative errors of an ulp in what operations take, and in a graph random errors as large
/// as the error model allows in each result and in each gradient that goes from one operation to another. While a
/// `Scope` lives, results of the kernels that round have such errors too, also those of which backward is composed.
class Noise : kernels::KernelObserver {
 public:
  /// Seed 0 only rounds what goes from one operation to another: equal numbers stay equal.
  Noise(std::uint64_t seed, double unit) : generator_(seed), unit_(unit), rounds_(seed == 0) {}
  Tensor of_input(const Tensor& x) { return disturbed(x, {.ulps = 1}, 1, 1); }
  Tensor of_result(const Tensor& y, const Step& step);
  /// Disturbs the gradient that a step hands to its input x. `y` is the step's output.
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
  void returned(const char* kernel, const std::type_info& type, const void* args, const Stream& stream) override;
  Tensor disturbed(const Tensor& x, const test::Tolerance& model, int64_t terms, double magnitude);

  Generator generator_;
  double unit_;
  bool rounds_;
};

}  // namespace levin::fuzz
