#pragma once
// Optimizers whose step is a few tensor operations for each parameter, where a fused kernel would not pay.

#include <levin/optim/fused_optimizer.h>

namespace levin::optim {

/// An optimizer that is a table of settings and one function, update(), of the values of a parameter and its slots.
/// Steps cannot be captured into a graph: a group with capturable throws ValueError. 16-bit parameters are updated in
/// float32.
class ComposedOptimizer : public Optimizer {
 protected:
  /// A setting of the groups: its name, its default value and the range of valid values.
  struct Hyperparameter {
    const char* name;
    double value;
    HyperparameterRange range{};
  };
  /// The parameter, its gradient (negated to maximize) and its slots before a step, as float32 or float64. update()
  /// replaces param and slots; of row-wise gradients, all of them are only the rows that `grad` has.
  struct Values {
    Tensor param, grad;
    std::vector<Tensor> slots;
  };

  /// `slots` are PyTorch's names of the state's tensors. A derived class adds the groups.
  ComposedOptimizer(const char* name, std::vector<std::string> slots, std::vector<Hyperparameter> hyperparameters);
  /// Computes the new parameter and slots out of place; `number` counts this parameter's steps from 1.
  virtual void update(const ParamGroup& group, int64_t number, Values& values) const = 0;

  void check(const Settings& settings) const override;
  void step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) override;
  /// Calls update() with the rows of the parameter and of its slots.
  void step_rows(const ParamGroup& group, const Parameter& parameter, const RowGradient& gradient) override;

 private:
  /// Steps a parameter or, where `indices` is defined, these rows of it.
  void step_values(const ParamGroup& group, const Parameter& parameter, const Tensor& grad, const Tensor& indices);

  std::vector<Hyperparameter> hyperparameters_;
  std::size_t slots_;
};

}  // namespace levin::optim
