#include "elementwise/common.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/kernels/random.h>

#include <fmt/format.h>

namespace levin {

using namespace ops;

namespace {

struct DropoutState {
  PhiloxState generator;
  double p;
};

/// Computes x -> mask * x / (1 - p) for a mask that is a function of the state: the map is linear, so it is its own
/// gradient.
Tensor apply(const Tensor& x, const DropoutState& s) {
  const Tensor source = contiguous(x);
  Tensor y = fresh(x.sizes(), x.dtype(), x.device());
  Stream stream = current_stream(y.device());
  kernels::dropout({y.tensor_view(), source.tensor_view(), s.generator, s.p}, stream);
  if (Context* c = record("dropout", y, {x}, [](Context& k, const Tensor& g) -> Grads {
        return {apply(g, k.get<DropoutState>())};
      }))
    c->set(s);
  return y;
}

}  // namespace

Tensor dropout(const Tensor& x, double p, bool training, Generator* generator) {
  if (!(p >= 0.0 && p <= 1.0)) throw ValueError(fmt::format("[dropout] the probability {} is not in [0, 1].", p));
  if (!x.is_floating()) {
    throw DTypeError(fmt::format("[dropout] {} cannot be scaled; convert it with x.to(kFloat32).", name_of(x.dtype())));
  }
  if (!training || p == 0.0) return x;
  Generator& g = generator ? *generator : default_generator();
  return apply(x, {g.reserve(kernels::random_blocks(x.numel(), 1), current_stream(x.device())), p});
}

}  // namespace levin
