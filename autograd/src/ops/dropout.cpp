#include "dropout.h"

#include "../errors.h"
#include "elementwise/common.h"
#include "values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/random.h>

namespace levin {

using namespace ops;

namespace {

struct DropoutState {
  PhiloxState generator;
  double p;
};

}  // namespace

/// Computes x -> mask * x / (1 - p) for a mask that is a function of the state: the map is linear, so it is its own
/// gradient.
Tensor ops::dropout_at(const Tensor& x, double p, const PhiloxState& state) {
  const Tensor source = contiguous(x);
  Tensor y = fresh(x.sizes(), x.dtype(), x.device());
  launch(kernels::dropout, y.device(), {y.tensor_view(), source.tensor_view(), state, p});
  LEVIN_TRACE("dropout", {x}, {y}, {{"p", p}});
  if (Context* c = record("dropout", y, {x}, [](Context& k, const Tensor& g) -> Grads {
        const auto& s = k.get<DropoutState>();
        return {dropout_at(g, s.p, s.generator)};
      }))
    c->set(DropoutState{state, p});
  return y;
}

Tensor dropout(const Tensor& x, double p, bool training, Generator* generator) {
  if (!(p >= 0.0 && p <= 1.0)) fail<ValueError>("[dropout] the probability {} is not in [0, 1].", p);
  if (!x.is_floating()) {
    fail<DTypeError>("[dropout] {} cannot be scaled; convert it with x.to(kFloat32).", x.dtype());
  }
  if (!training || p == 0.0) return x;
  Generator& g = generator ? *generator : default_generator();
  return dropout_at(x, p, g.reserve(kernels::random_blocks(x.numel(), 1), current_stream(x.device())));
}

}  // namespace levin
