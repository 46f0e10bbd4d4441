#pragma once
// Shared by operations.cpp and sizes.cpp: an operation as two rows, forward alone, and forward with the gradients of
// all floating inputs.

#include "operations.h"

#include <levin/autograd/autograd.h>
#include <levin/autograd/ops.h>

#include <functional>
#include <string>
#include <vector>

namespace levin::bench {

using Tensors = std::vector<Tensor>;
using Call = std::function<Tensor(const Tensors&)>;

enum class Rows { forward, both };

inline double bytes_of(const Tensors& tensors) {
  double bytes = 0;
  for (const Tensor& t : tensors) bytes += static_cast<double>(t.numel() * size_of(t.dtype()));
  return bytes;
}

/// Gives f to the visitor with and, for Rows::both, without gradients.
class Comparison {
 public:
  explicit Comparison(const OperationVisitor& visitor) : visitor_(visitor) {}

  void operator()(const std::string& name, const Tensors& inputs, const Call& f, Rows rows = Rows::both) const {
    const std::string forward = name + " fwd";
    if (visitor_.wanted(forward)) {
      const auto run = [=] {
        no_grad guard;
        return f(inputs);
      };
      visitor_.visit(
          forward, [=] { return bytes_of(inputs) + bytes_of({run()}); }, [=] { run(); });
    }
    if (rows == Rows::forward) return;
    Tensors leaves;
    for (const Tensor& x : inputs)
      if (x.is_floating()) leaves.push_back(x.requires_grad_());
    gradients(name, leaves, [=] { return f(inputs); });
  }

  void gradients(const std::string& name, const Tensors& leaves, const std::function<Tensor()>& f) const {
    const std::string both = name + " fwd+bwd";
    if (!visitor_.wanted(both)) return;
    const Tensors g{randn(f().sizes())};
    // The values and the gradients of inputs and output, once each.
    visitor_.visit(
        both, [=] { return 2 * (bytes_of(leaves) + bytes_of(g)); },
        [=] {
          const Tensors y{f()};
          grad(y, leaves, {}, g);
        });
  }

 private:
  const OperationVisitor& visitor_;
};

}  // namespace levin::bench
