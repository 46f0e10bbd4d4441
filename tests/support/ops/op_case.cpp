// Makes the inputs and references of operation cases.

#include "support/ops/op_case.h"

#include <levin/autograd/ops/view.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

namespace levin::test {

Values uniform(double low, double high) {
  return [=](int64_t, int64_t, Generator& g) { return low + (high - low) * g.uniform(); };
}

Values integers(int64_t low, int64_t high) {
  return [=](int64_t, int64_t, Generator& g) {
    return static_cast<double>(low + static_cast<int64_t>(g.below(static_cast<std::uint64_t>(high - low))));
  };
}

Values distinct(double step) {
  return [=](int64_t i, int64_t n, Generator&) {
    int64_t stride = n / 2 + 1 + n / 7;  // coprime to n: visits every place once
    while (std::gcd(stride, n) != 1) ++stride;
    return static_cast<double>(i * stride % n - n / 2) * step;
  };
}

Values cycle(std::vector<double> values) {
  return [values = std::move(values)](int64_t i, int64_t, Generator&) {
    return values[static_cast<std::size_t>(i) % values.size()];
  };
}

Values away_from(Values values, std::vector<double> kinks, double margin) {
  return [values = std::move(values), kinks = std::move(kinks), margin](int64_t i, int64_t n, Generator& g) {
    double v = values(i, n, g);
    for (const double k : kinks)
      if (std::abs(v - k) < margin) v = k + (v < k ? -margin : margin);
    return v;
  };
}

std::string to_string(Layout layout) {
  switch (layout) {
    case Layout::contiguous: return "contiguous";
    case Layout::transposed: return "transposed";
    case Layout::sliced: return "sliced";
    case Layout::expanded: return "expanded";
  }
  return {};
}

std::vector<Sample> unary_samples(const Values& values) {
  std::vector<Sample> result;
  for (const Shape& s : {Shape{}, {0}, {1}, {31}, {33}, {7, 13}, {2, 3, 5}, {4, 0, 3}})
    result.push_back(sample({s}, values));
  return result;
}

std::vector<Sample> binary_samples(const Values& a, const Values& b) {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{}, {}},     {{0}, {0}},       {{1}, {1}},       {{31}, {31}},         {{33}, {33}},
      {{5, 7}, {7}}, {{7}, {5, 7}},   {{5, 1}, {1, 7}}, {{2, 3, 5}, {3, 1}}, {{}, {2, 3}},
      {{2, 3}, {}}, {{0, 3}, {1, 3}}, {{13, 17}, {13, 17}}};
  std::vector<Sample> result;
  for (const auto& [x, y] : shapes)
    result.push_back({.inputs = {{.sizes = x, .values = a}, {.sizes = y, .values = b}}});
  return result;
}

Sample sample(const std::vector<Shape>& shapes, const Values& values, int64_t terms) {
  Sample s;
  for (const Shape& sizes : shapes) s.inputs.push_back({.sizes = sizes, .values = values});
  s.terms = terms;
  return s;
}

std::string braces(const Shape& shape) {
  std::string text = "{";
  for (int d = 0; d < shape.size(); ++d) text += (d > 0 ? ", " : "") + std::to_string(shape[d]);
  return text + "}";
}

std::vector<double> broadcast_values(const Tensor& x, const Shape& target) {
  const Shape strides = broadcast_strides(x.sizes(), x.strides(), target, "reference");
  const std::vector<double> values = x.to_vector<double>();
  std::vector<double> result;
  for (int64_t i = 0; i < target.numel(); ++i) {
    int64_t rest = i, offset = 0;
    for (int axis = target.size() - 1; axis >= 0; --axis) {
      offset += rest % target[axis] * strides[axis];
      rest /= target[axis];
    }
    result.push_back(values[static_cast<std::size_t>(offset)]);
  }
  return result;
}

namespace {

template <class F>
Tensor map_elements(const Tensors& inputs, const F& f) {
  Shape target;
  for (const Tensor& t : inputs) target = broadcast_shapes(target, t.sizes(), "reference");
  std::vector<std::vector<double>> columns;
  for (const Tensor& t : inputs) columns.push_back(broadcast_values(t, target));
  std::vector<double> result;
  for (std::size_t i = 0; i < static_cast<std::size_t>(target.numel()); ++i) result.push_back(f(columns, i));
  return from_data(result, target);
}

}  // namespace

TensorFunction pointwise(std::function<double(double)> f) {
  return [f = std::move(f)](const Tensors& x) -> Tensors {
    return {map_elements({x[0]}, [&](const auto& c, std::size_t i) { return f(c[0][i]); })};
  };
}

TensorFunction pointwise(std::function<double(double, double)> f) {
  return [f = std::move(f)](const Tensors& x) -> Tensors {
    return {map_elements({x[0], x[1]}, [&](const auto& c, std::size_t i) { return f(c[0][i], c[1][i]); })};
  };
}

TensorFunction pointwise(std::function<double(double, double, double)> f) {
  return [f = std::move(f)](const Tensors& x) -> Tensors {
    return {
        map_elements({x[0], x[1], x[2]}, [&](const auto& c, std::size_t i) { return f(c[0][i], c[1][i], c[2][i]); })};
  };
}

namespace {

/// Sizes of the memory behind an input of `sizes` in a layout.
Shape base_sizes(const InputSpec& spec, Layout layout) {
  Shape sizes = spec.sizes;
  if (!spec.rearrange) return sizes;
  const int dims = sizes.size();
  if (layout == Layout::transposed && dims >= 2) std::swap(sizes[dims - 1], sizes[dims - 2]);
  if (layout == Layout::sliced && dims >= 1) sizes[dims - 1] = 2 * sizes[dims - 1] + 1;
  if (layout == Layout::expanded && dims >= 1 && sizes[0] > 1) sizes[0] = 1;
  return sizes;
}

double fit(double v, DType t) {
  if (is_floating(t)) return v;
  if (t == DType::boolean) return v > 0 ? 1 : 0;
  const double whole = std::trunc(v);
  return t == DType::u8 ? std::abs(whole) : whole;
}

std::uint64_t hash_text(const std::string& text) {
  std::uint64_t h = 0xcbf29ce484222325ull;  // FNV-1a
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

}  // namespace

Tensor make_base(const InputSpec& spec, DType dtype, Layout layout, Generator& g) {
  const Shape sizes = base_sizes(spec, layout);
  const DType type = spec.dtype.value_or(dtype);
  std::vector<double> values(static_cast<std::size_t>(sizes.numel()));
  const int64_t n = sizes.numel();
  for (int64_t i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = fit(spec.values(i, n, g), type);
  return from_data(values, sizes, {.dtype = type});
}

Tensors make_bases(const OpCase& c, const Sample& s, DType dtype, Layout layout) {
  Generator g(hash_text(c.name) + static_cast<std::uint64_t>(s.inputs.size()));
  Tensors bases;
  for (const InputSpec& spec : s.inputs) bases.push_back(make_base(spec, dtype, layout, g));
  return bases;
}

Tensors arrange(const Sample& s, const Tensors& bases, Layout layout) {
  Tensors inputs;
  for (std::size_t i = 0; i < bases.size(); ++i) {
    const InputSpec& spec = s.inputs[i];
    const int dims = spec.sizes.size();
    Tensor x = bases[i];
    if (spec.rearrange && layout == Layout::transposed && dims >= 2) x = transpose(x, -1, -2);
    if (spec.rearrange && layout == Layout::sliced && dims >= 1) x = slice(x, -1, Slice(1, nil, 2));
    if (spec.rearrange && layout == Layout::expanded && x.sizes() != spec.sizes) x = expand(x, spec.sizes);
    inputs.push_back(x);
  }
  return inputs;
}

Tensors make_inputs(const OpCase& c, const Sample& s, DType dtype, Layout layout) {
  return arrange(s, make_bases(c, s, dtype, layout), layout);
}

const TensorFunction& op_of(const OpCase& c, const Sample& s) { return s.op ? s.op : c.op; }

Tolerance tolerance_of(const OpCase& c, const Sample& s) { return s.tolerance.value_or(c.tolerance); }

Tolerance grad_tolerance_of(const OpCase& c, const Sample& s) { return s.grad_tolerance.value_or(c.grad_tolerance); }

int64_t grad_terms_of(const Sample& s) { return s.grad_terms > 0 ? s.grad_terms : s.terms; }

Work work_of(const OpCase& c, const Tensors& inputs, const Tensors& outputs) {
  if (c.work) return c.work(inputs, outputs);
  Work w;
  for (const Tensors* list : {&inputs, &outputs})
    for (const Tensor& t : *list) w.bytes += static_cast<double>(t.numel() * size_of(t.dtype()));
  return w;
}

}  // namespace levin::test
