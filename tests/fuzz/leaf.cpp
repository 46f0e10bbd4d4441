// Values and strides of leaves.

#include "fuzz/program.h"

#include "support/ops/op_runs.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/view.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace levin::fuzz {

namespace {

/// A type's largest finite, smallest normal and smallest subnormal value.
struct Bounds {
  double largest, normal, subnormal;
};
Bounds bounds_of(DType t) {
  switch (t) {
    case DType::f32:
      return {3.4028234663852886e38, 0x1p-126, 0x1p-149};
    case DType::f16:
      return {65504, 0x1p-14, 0x1p-24};
    case DType::bf16:
      return {0x1.FEp127, 0x1p-126, 0x1p-133};
    default:
      return {std::numeric_limits<double>::max(), 0x1p-1022, 0x1p-1074};
  }
}

std::vector<double> special_values(DType t) {
  using Limits = std::numeric_limits<double>;
  const Bounds b = bounds_of(t);
  return {0.0,         -0.0,         1.0,      -1.0,      Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
          b.subnormal, -b.subnormal, b.normal, -b.normal, b.largest,          -b.largest,          0.5,
          2.0,         -2.0};
}

/// Draws the values of an input in row-major order.
std::vector<double> draw_values(Draw& d, const test::InputSpec& spec, DType dtype, bool free) {
  enum Kind { plain, own, wide, special };
  const Kind kind = d.of(std::array{plain, own, own, own, wide, special, special});
  const std::uint64_t seed = static_cast<std::uint64_t>(d.below(1 << 16));
  Generator g(seed);
  test::InputSpec contiguous = spec;
  contiguous.rearrange = false;
  std::vector<double> values = test::make_base(contiguous, dtype, test::Layout::contiguous, g).to_vector<double>();
  const DType type = spec.dtype.value_or(dtype);
  if (!free || spec.own || !is_floating(type) || (spec.dtype && !spec.differentiable) || values.empty()) return values;
  if (kind == plain)
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0 + static_cast<double>(i % 3);
  if (kind == wide)
    for (double& v : values) v = std::copysign(std::exp2(16 * g.uniform() - 8), g.uniform() - 0.5);
  if (kind == special) {
    std::vector<double> list = special_values(type);
    if (spec.finite) std::erase_if(list, [](double v) { return !std::isfinite(v); });
    for (int64_t n = d.between(1, 3); n > 0; --n) {
      const auto at = static_cast<std::size_t>(d.below(static_cast<int64_t>(values.size())));
      values[at] = d.of(list);
    }
  }
  return values;
}

struct Strided {
  Shape strides;
  int64_t offset = 0, elements = 1;
};

/// Draws strides: contiguous, or permuted, with gaps, with an offset, some of stride 0.
Strided draw_strides(Draw& d, const Shape& sizes, bool may_expand) {
  Strided s{.strides = contiguous_strides(sizes)};
  if (!d.chance(50)) {
    s.elements = std::max<int64_t>(1, sizes.numel());
    return s;
  }
  Shape order;
  for (int a = 0; a < sizes.size(); ++a) order.insert(static_cast<int>(d.below(a + 1)), a);
  int64_t step = 1;
  for (int i = order.size() - 1; i >= 0; --i) {
    const int axis = static_cast<int>(order[i]);
    if (may_expand && d.chance(15)) {
      s.strides[axis] = 0;
      continue;
    }
    step *= d.chance(30) ? d.between(1, 3) : 1;
    s.strides[axis] = step;
    step *= std::max<int64_t>(1, sizes[axis]);
  }
  s.offset = d.chance(40) ? d.between(0, 5) : 0;
  s.elements = s.offset + step + 1;
  return s;
}

}  // namespace

Tensor Leaf::tensor() const {
  const Tensor whole = from_data(memory, {static_cast<int64_t>(memory.size())}, {.dtype = dtype});
  return as_strided(whole, sizes, strides, offset).detach();
}

Tensor Leaf::exact() const {
  return from_data(tensor().to_vector<double>(), sizes, {.dtype = tested ? DType::f64 : dtype});
}

Leaf draw_leaf(Draw& d, const test::InputSpec& spec, DType dtype, bool free) {
  Leaf leaf;
  leaf.dtype = spec.dtype.value_or(dtype);
  leaf.tested = !(spec.dtype && !is_floating(*spec.dtype));
  leaf.differentiable = test::wants_gradient(spec, dtype);
  leaf.factor = spec.factor;
  leaf.sizes = spec.sizes;
  const std::vector<double> values = draw_values(d, spec, dtype, free);
  const Strided s =
      spec.rearrange ? draw_strides(d, spec.sizes, free && !spec.own) : Strided{contiguous_strides(spec.sizes), 0, 0};
  leaf.strides = s.strides;
  leaf.offset = s.offset;
  const double between = is_floating(leaf.dtype) ? std::numeric_limits<double>::quiet_NaN() : 1;
  leaf.memory.assign(static_cast<std::size_t>(std::max<int64_t>({1, s.elements, spec.sizes.numel()})), between);
  // From the last element to the first, so that of elements that share memory the first one's value stays.
  const Shape dense = contiguous_strides(spec.sizes);
  for (int64_t i = spec.sizes.numel() - 1; i >= 0; --i) {
    int64_t at = s.offset;
    for (int a = 0; a < spec.sizes.size(); ++a) at += i / dense[a] % spec.sizes[a] * s.strides[a];
    leaf.memory[static_cast<std::size_t>(at)] = values[static_cast<std::size_t>(i)];
  }
  return leaf;
}

}  // namespace levin::fuzz
