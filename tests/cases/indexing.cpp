#include "cases/cases.h"

#include <levin/autograd/ops.h>

namespace levin::test {

namespace {

int64_t flat(const Shape& sizes, const Shape& at) {
  int64_t i = 0;
  for (int d = 0; d < sizes.size(); ++d) i = i * sizes[d] + at[d];
  return i;
}

/// Calls f(coordinates) in row-major order.
template <class F>
void each_place(const Shape& sizes, F&& f) {
  for (int64_t i = 0; i < sizes.numel(); ++i) {
    Shape at = sizes;
    int64_t rest = i;
    for (int d = sizes.size() - 1; d >= 0; --d) {
      at[d] = rest % sizes[d];
      rest /= sizes[d];
    }
    f(at);
  }
}

double& value_at(std::vector<double>& values, const Shape& sizes, const Shape& at) {
  return values[static_cast<std::size_t>(flat(sizes, at))];
}

/// y[at] = x[source(at)], or `outside` where source gives nothing.
Tensor moved(const Tensor& x, const Shape& sizes, const std::function<std::optional<Shape>(const Shape&)>& source,
             double outside = 0) {
  auto xs = x.to_vector<double>();
  std::vector<double> y;
  each_place(sizes, [&](const Shape& at) {
    const auto from = source(at);
    y.push_back(from ? value_at(xs, x.sizes(), *from) : outside);
  });
  return from_data(y, sizes);
}

Shape with(Shape at, int axis, int64_t i) {
  at[axis] = i;
  return at;
}

Sample with_axis(std::vector<InputSpec> inputs, int axis, const std::string& torch, TensorFunction op, TensorFunction reference) {
  return {.inputs = std::move(inputs), .terms = 8, .grad_terms = 64, .label = "axis " + std::to_string(axis),
          .op = std::move(op), .reference = std::move(reference), .torch = torch};
}

// cat and stack

Tensors cat_reference(const Tensors& x, int axis) {
  Shape sizes = x[0].sizes();
  std::vector<std::pair<const Tensor*, int64_t>> places;
  for (const Tensor& t : x)
    for (int64_t i = 0; i < t.size(axis); ++i) places.push_back({&t, i});
  sizes[axis] = static_cast<int64_t>(places.size());
  std::vector<double> y;
  each_place(sizes, [&](const Shape& at) {
    const auto& [t, i] = places[static_cast<std::size_t>(at[axis])];
    auto values = t->to_vector<double>();
    y.push_back(value_at(values, t->sizes(), with(at, axis, i)));
  });
  return {from_data(y, sizes)};
}

Sample cat_sample(const std::vector<Shape>& shapes, int axis) {
  Sample s = sample(shapes);
  std::string names;
  for (std::size_t i = 0; i < shapes.size(); ++i) names += "x" + std::to_string(i) + ", ";
  s.label = "axis " + std::to_string(axis);
  s.op = [axis](const Tensors& x) -> Tensors { return {cat(x, axis)}; };
  s.reference = [axis](const Tensors& x) { return cat_reference(x, axis); };
  s.torch = "torch.cat((" + names + "), " + std::to_string(axis) + ")";
  return s;
}

OpCase cat_case() {
  return {.name = "cat",
          .samples = {cat_sample({{3}}, 0), cat_sample({{2, 3}, {1, 3}, {4, 3}}, 0), cat_sample({{2, 3}, {2, 1}}, 1),
                      cat_sample({{2, 3, 2}, {2, 0, 2}, {2, 5, 2}}, 1), cat_sample({{0, 3}, {0, 3}}, 1)},
          .large = {cat_sample({{33, 700}, {33, 531}}, 1), cat_sample({{97, 300}, {31, 300}}, 0)},
          .dtypes = kAllTypes,
          .tolerance = {.ulps = 0},
          .torch = "torch.cat((x0,), 0)",
          .errors = {{"[cat] tensor 1 has shape (2, 4), which differs from (3, 3) outside axis 0",
                      [] { cat({zeros({3, 3}), zeros({2, 4})}, 0); }},
                     {"empty", [] { cat(std::span<const Tensor>{}, 0); }},
                     {"use stack", [] { cat({zeros({}), zeros({})}, 0); }}},
          .bench = {cat_sample({{128, 4096}, {128, 4096}}, 1)}};
}

OpCase stack_case() {
  const auto make = [](const std::vector<Shape>& shapes, int axis) {
    Sample s = cat_sample(shapes, axis);
    s.op = [axis](const Tensors& x) -> Tensors { return {stack(x, axis)}; };
    s.reference = [axis](const Tensors& x) {
      Tensors parts;
      for (const Tensor& t : x) {
        Shape sizes = t.sizes();
        sizes.insert(axis, 1);
        parts.push_back(t.reshape(sizes));
      }
      return cat_reference(parts, axis);
    };
    s.torch.replace(0, 9, "torch.stack");
    return s;
  };
  return {.name = "stack",
          .samples = {make({{}, {}}, 0), make({{2, 3}, {2, 3}}, 0), make({{2, 3}, {2, 3}, {2, 3}}, 2), make({{0}, {0}}, 1)},
          .dtypes = kAllTypes,
          .tolerance = {.ulps = 0},
          .torch = "torch.stack((x0,), 0)",
          .errors = {{"all shapes must be equal", [] { stack({zeros({3}), zeros({2})}); }}}};
}

// gather and scatter

Sample gather_sample(const Shape& x, const Shape& index, int axis) {
  return with_axis({{.sizes = x}, index_input(index, x.empty() ? 1 : x[axis])}, axis,
                   "torch.gather(x0, " + std::to_string(axis) + ", x1)",
                   [axis](const Tensors& in) -> Tensors { return {gather(in[0], axis, in[1])}; },
                   [axis](const Tensors& in) -> Tensors {
                     const auto at_index = in[1].to_vector<int64_t>();
                     return {moved(in[0], in[1].sizes(), [&](const Shape& at) -> std::optional<Shape> {
                       if (at.empty()) return at;
                       return with(at, axis, at_index[static_cast<std::size_t>(flat(in[1].sizes(), at))]);
                     })};
                   });
}

OpCase gather_case() {
  return {.name = "gather",
          .samples = {gather_sample({}, {}, 0), gather_sample({5}, {7}, 0), gather_sample({4, 3}, {2, 3}, 0),
                      gather_sample({4, 5}, {3, 2}, 1), gather_sample({3, 4, 5}, {2, 6, 3}, 1), gather_sample({3, 2}, {0, 2}, 0)},
          .large = {gather_sample({70, 300}, {65, 290}, 0), gather_sample({300, 70}, {300, 65}, 1)},
          .dtypes = kAllTypes,
          .tolerance = {.ulps = 0},
          .torch = "torch.gather(x0, 0, x1)",
          .errors = {{"[gather] index 4 at position (1, 0) is out of range: it must be 0 or more and below 4",
                      [] { gather(zeros({4, 2}), 0, from_data<int64_t>({0, 1, 4, 1}, {2, 2})); }},
                     {"does not fit", [] { gather(zeros({4, 2}), 0, zeros({4, 3}, {.dtype = kInt64})); }},
                     {"int64 is needed", [] { gather(zeros({4, 2}), 0, zeros({4, 2})); }}},
          .bench = {gather_sample({1024, 1024}, {1024, 1024}, 1)}};
}

/// Distinct along every axis of up to 5 places, so that no place is written twice.
InputSpec distinct_index(const Shape& sizes, int axis, int64_t bound) {
  const int64_t inner = [&] {
    int64_t n = 1;
    for (int d = axis + 1; d < sizes.size(); ++d) n *= sizes[d];
    return n;
  }();
  InputSpec spec = index_input(sizes, bound);
  spec.values = [inner, bound, n = sizes[axis]](int64_t i, int64_t, Generator&) {
    return static_cast<double>((bound - 1 - i / inner % n + i % 3) % bound);
  };
  spec.rearrange = false;
  return spec;
}

Tensors scatter_reference(const Tensors& in, int axis, bool adds) {
  auto y = in[0].to_vector<double>(), source = in[2].to_vector<double>();
  auto index = in[1].to_vector<double>();
  each_place(in[1].sizes(), [&](const Shape& at) {
    const Shape to = at.empty() ? at : with(at, axis, static_cast<int64_t>(value_at(index, in[1].sizes(), at)));
    double& place = value_at(y, in[0].sizes(), to);
    place = value_at(source, in[2].sizes(), at) + (adds ? place : 0.0);
  });
  return {from_data(y, in[0].sizes())};
}

Sample scatter_add_sample(const Shape& x, const Shape& index, const Shape& source, int axis) {
  return with_axis({{.sizes = x}, index_input(index, x.empty() ? 1 : x[axis]), {.sizes = source}}, axis,
                   "torch.scatter_add(x0, " + std::to_string(axis) + ", x1, x2)",
                   [axis](const Tensors& in) -> Tensors { return {scatter_add(in[0], axis, in[1], in[2])}; },
                   [axis](const Tensors& in) { return scatter_reference(in, axis, true); });
}

OpCase scatter_add_case() {
  return {.name = "scatter_add",
          .samples = {scatter_add_sample({}, {}, {}, 0), scatter_add_sample({3}, {7}, {7}, 0),
                      scatter_add_sample({4, 3}, {5, 2}, {5, 3}, 0), scatter_add_sample({3, 4}, {2, 7}, {3, 8}, 1),
                      scatter_add_sample({3, 2}, {0, 2}, {1, 2}, 0)},
          .large = {scatter_add_sample({60, 300}, {60, 290}, {60, 300}, 0), scatter_add_sample({300, 70}, {290, 65}, {300, 65}, 1)},
          .dtypes = kNumericTypes,
          .tolerance = {.ulps = 2, .scale = 2},
          .grad_tolerance = {.ulps = 2, .scale = 2},
          .torch = "torch.scatter_add(x0, 0, x1, x2)",
          .errors = {{"[scatter_add] index -1 at position 1",
                      [] { scatter_add(zeros({3}), 0, from_data<int64_t>({0, -1}, {2}), zeros({2})); }},
                     {"source (1,)", [] { scatter_add(zeros({3}), 0, from_data<int64_t>({0, 1}, {2}), zeros({1})); }},
                     {"types differ", [] {
                        scatter_add(zeros({3}), 0, from_data<int64_t>({0}, {1}), zeros({1}, {.dtype = kDouble}));
                      }}}};
}

Sample scatter_sample(const Shape& x, InputSpec index, const Shape& source, int axis, bool same_in_torch) {
  return with_axis({{.sizes = x}, std::move(index), {.sizes = source}}, axis,
                   same_in_torch ? "torch.scatter(x0, " + std::to_string(axis) + ", x1, x2)" : "",
                   [axis](const Tensors& in) -> Tensors { return {scatter(in[0], axis, in[1], in[2])}; },
                   [axis](const Tensors& in) { return scatter_reference(in, axis, false); });
}

OpCase scatter_case() {
  return {.name = "scatter",
          .samples = {scatter_sample({5}, distinct_index({3}, 0, 5), {3}, 0, true),
                      scatter_sample({4, 3}, distinct_index({3, 2}, 0, 4), {3, 3}, 0, true),
                      scatter_sample({2, 5}, distinct_index({2, 4}, 1, 5), {2, 4}, 1, true),
                      scatter_sample({3}, index_input({7}, 3), {7}, 0, false)},
          .large = {scatter_sample({60, 300}, index_input({60, 290}, 60), {60, 300}, 0, false)},
          .dtypes = kAllTypes,
          .tolerance = {.ulps = 0},
          .errors = {{"[scatter] index 3 at position 0",
                      [] { scatter(zeros({3}), 0, from_data<int64_t>({3}, {1}), zeros({1})); }}}};
}

// Slices

Sample index_select_sample(const Shape& x, int64_t count, int axis) {
  return with_axis({{.sizes = x}, index_input({count}, x[axis])}, axis,
                   "torch.index_select(x0, " + std::to_string(axis) + ", x1)",
                   [axis](const Tensors& in) -> Tensors { return {index_select(in[0], axis, in[1])}; },
                   [axis](const Tensors& in) -> Tensors {
                     const auto index = in[1].to_vector<int64_t>();
                     Shape sizes = in[0].sizes();
                     sizes[axis] = in[1].numel();
                     return {moved(in[0], sizes, [&](const Shape& at) -> std::optional<Shape> {
                       return with(at, axis, index[static_cast<std::size_t>(at[axis])]);
                     })};
                   });
}

OpCase index_select_case() {
  return {.name = "index_select",
          .samples = {index_select_sample({5}, 3, 0), index_select_sample({4, 3}, 7, 0), index_select_sample({3, 5, 2}, 4, 1),
                      index_select_sample({3, 5}, 33, 1), index_select_sample({3, 5}, 0, 1)},
          .large = {index_select_sample({65, 192}, 1024, 0), index_select_sample({129, 65}, 400, 1)},
          .dtypes = kAllTypes,
          .tolerance = {.ulps = 0},
          .torch = "torch.index_select(x0, 0, x1)",
          .errors = {{"[index_select] index 5 at position 1 is out of range: it must be 0 or more and below 5",
                      [] { index_select(zeros({5}), 0, from_data<int64_t>({0, 5}, {2})); }},
                     {"one dimension", [] { index_select(zeros({5}), 0, zeros({1, 1}, {.dtype = kInt64})); }}},
          .bench = {index_select_sample({65, 192}, 6144, 0)}};
}

Sample index_add_sample(const Shape& x, int64_t count, int axis) {
  return with_axis({{.sizes = x}, index_input({count}, x[axis]), {.sizes = with(x, axis, count)}}, axis,
                   "torch.index_add(x0, " + std::to_string(axis) + ", x1, x2)",
                   [axis](const Tensors& in) -> Tensors { return {index_add(in[0], axis, in[1], in[2])}; },
                   [axis](const Tensors& in) -> Tensors {
                     auto y = in[0].to_vector<double>(), source = in[2].to_vector<double>();
                     const auto index = in[1].to_vector<int64_t>();
                     each_place(in[2].sizes(), [&](const Shape& at) {
                       value_at(y, in[0].sizes(), with(at, axis, index[static_cast<std::size_t>(at[axis])])) +=
                           value_at(source, in[2].sizes(), at);
                     });
                     return {from_data(y, in[0].sizes())};
                   });
}

OpCase index_add_case() {
  return {.name = "index_add",
          .samples = {index_add_sample({3}, 7, 0), index_add_sample({4, 3}, 5, 0), index_add_sample({2, 3, 5}, 8, 1),
                      index_add_sample({2, 3}, 0, 1)},
          .large = {index_add_sample({65, 192}, 500, 0), index_add_sample({129, 65}, 200, 1)},
          .dtypes = kNumericTypes,
          .tolerance = {.ulps = 2, .scale = 2},
          .grad_tolerance = {.ulps = 2, .scale = 2},
          .torch = "torch.index_add(x0, 0, x1, x2)",
          .errors = {{"[index_add] index 3 at position 0",
                      [] { index_add(zeros({3}), 0, from_data<int64_t>({3}, {1}), zeros({1})); }},
                     {"need (2, 3)", [] { index_add(zeros({4, 3}), 0, from_data<int64_t>({3, 0}, {2}), zeros({1, 3})); }}},
          .bench = {index_add_sample({65, 192}, 6144, 0)}};
}

Sample embedding_sample(const Shape& weight, const Shape& index, std::optional<int64_t> padding = std::nullopt) {
  return {.inputs = {{.sizes = weight}, index_input(index, weight[0])},
          .grad_terms = index.numel(),
          .label = padding ? "padding_idx" : "",
          .op = [padding](const Tensors& in) -> Tensors { return {embedding(in[0], in[1], padding)}; },
          .reference = [](const Tensors& in) -> Tensors {
            const auto rows = in[1].to_vector<int64_t>();
            Shape sizes = in[1].sizes();
            sizes.push_back(in[0].size(1));
            return {moved(in[0], sizes, [&](const Shape& at) -> std::optional<Shape> {
              Shape place(at.begin(), at.end() - 1);
              return Shape{rows[static_cast<std::size_t>(flat(in[1].sizes(), place))], at.back()};
            })};
          },
          .torch = "F.embedding(x1, x0)"};
}

OpCase embedding_case() {
  return {.name = "embedding",
          .samples = {embedding_sample({3, 2}, {}), embedding_sample({4, 3}, {5}), embedding_sample({5, 1}, {2, 7}),
                      embedding_sample({4, 3}, {0})},
          .large = {embedding_sample({65, 96}, {7, 60})},
          .dtypes = kFloatTypes,
          .tolerance = {.ulps = 0},
          .grad_tolerance = {.ulps = 2, .scale = 2},
          .torch = "F.embedding(x1, x0)",
          .errors = {{"[embedding] index 7 at position (0, 1) is out of range: it must be 0 or more and below 5",
                      [] { embedding(zeros({5, 2}), from_data<int64_t>({4, 7}, {1, 2})); }},
                     {"padding_idx 5", [] { embedding(zeros({5, 2}), from_data<int64_t>({4}, {1}), 5); }},
                     {"two dimensions", [] { embedding(zeros({5}), from_data<int64_t>({4}, {1})); }}},
          .bench = {embedding_sample({65, 192}, {48, 128})}};
}

// Masks

std::vector<double> chosen(const Tensor& x, const Tensor& mask) {
  const Shape sizes = broadcast_shapes(x.sizes(), mask.sizes(), "reference");
  const auto xs = broadcast_values(x, sizes), ms = broadcast_values(mask, sizes);
  std::vector<double> y;
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (ms[i] != 0) y.push_back(xs[i]);
  return y;
}

OpCase masked_select_case() {
  const auto make = [](const Shape& x, const Shape& mask) { return Sample{.inputs = {{.sizes = x}, bool_input(mask)}}; };
  return {.name = "masked_select",
          .op = [](const Tensors& in) -> Tensors { return {masked_select(in[0], in[1])}; },
          .reference = [](const Tensors& in) -> Tensors {
            const auto y = chosen(in[0], in[1].to(kDouble));
            return {from_data(y, {static_cast<int64_t>(y.size())})};
          },
          .samples = {make({31}, {31}), make({7, 5}, {7, 5}), make({4, 1}, {3}), make({3, 5}, {4, 1, 5}), make({0, 3}, {0, 3})},
          .large = {make({40000}, {40000})},
          .dtypes = kAllTypes,
          .tolerance = {.ulps = 0},
          .torch = "torch.masked_select(x0, x1)",
          .errors = {{"[masked_select] the mask is float32", [] { masked_select(zeros({2}), zeros({2})); }}}};
}

OpCase nonzero_case() {
  return {.name = "nonzero",
          .op = [](const Tensors& in) -> Tensors { return {nonzero(in[0])}; },
          .reference = [](const Tensors& in) -> Tensors {
            auto x = in[0].to_vector<double>();
            std::vector<double> y;
            int64_t count = 0;
            each_place(in[0].sizes(), [&](const Shape& at) {
              if (value_at(x, in[0].sizes(), at) == 0) return;
              ++count;
              for (const int64_t i : at) y.push_back(static_cast<double>(i));
            });
            return {from_data(y, {count, in[0].dim()})};
          },
          .samples = unary_samples(integers(-1, 2)),
          .large = {sample({{40000}}, integers(0, 2))},
          .dtypes = kAllTypes,
          .outputs = {Output::index},
          .differentiable = false,
          .torch = "torch.nonzero(x0)"};
}

OpCase triangle_case(bool upper) {
  const auto make = [upper](const Shape& x, int64_t diagonal) {
    Sample s = sample({x});
    s.label = "diagonal " + std::to_string(diagonal);
    s.op = [=](const Tensors& in) -> Tensors { return {upper ? triu(in[0], diagonal) : tril(in[0], diagonal)}; };
    s.reference = [=](const Tensors& in) -> Tensors {
      return {moved(in[0], in[0].sizes(), [&](const Shape& at) -> std::optional<Shape> {
        const int64_t distance = at[at.size() - 1] - at[at.size() - 2];
        if (upper ? distance >= diagonal : distance <= diagonal) return at;
        return std::nullopt;
      })};
    };
    s.torch = std::string(upper ? "torch.triu(x0, " : "torch.tril(x0, ") + std::to_string(diagonal) + ")";
    return s;
  };
  return {.name = upper ? "triu" : "tril",
          .samples = {make({3, 3}, 0), make({2, 4, 5}, 1), make({5, 2}, -2), make({1, 1}, 0), make({3, 4}, 9), make({2, 0, 3}, 0)},
          .large = {make({3, 130, 129}, 0)},
          .dtypes = kAllTypes,
          .tolerance = {.ulps = 0},
          .torch = upper ? "torch.triu(x0)" : "torch.tril(x0)",
          .errors = {{"two dimensions are needed", [upper] { upper ? triu(zeros({3})) : tril(zeros({3})); }}}};
}

OpCase one_hot_case() {
  const auto make = [](const Shape& sizes, int64_t classes) {
    Sample s{.inputs = {index_input(sizes, 5)}, .label = std::to_string(classes) + " classes"};
    s.op = [classes](const Tensors& in) -> Tensors { return {one_hot(in[0], classes)}; };
    s.reference = [classes](const Tensors& in) -> Tensors {
      const auto index = in[0].to_vector<int64_t>();
      int64_t n = classes;
      if (n < 0)
        for (const int64_t i : index) n = std::max(n, i + 1);
      std::vector<double> y;
      for (const int64_t i : index)
        for (int64_t c = 0; c < n; ++c) y.push_back(i == c ? 1 : 0);
      Shape out = in[0].sizes();
      out.push_back(n);
      return {from_data(y, out)};
    };
    s.torch = "F.one_hot(x0, " + std::to_string(classes) + ")";
    return s;
  };
  return {.name = "one_hot",
          .samples = {make({}, 5), make({31}, 7), make({2, 3}, -1), make({0}, 4)},
          .dtypes = {DType::i64},
          .outputs = {Output::index},
          .differentiable = false,
          .torch = "F.one_hot(x0)",
          .errors = {{"[one_hot] index 3 at position 0", [] { one_hot(from_data<int64_t>({3}, {1}), 3); }},
                     {"int64 is needed", [] { one_hot(zeros({2}), 3); }},
                     {"has to be given", [] { one_hot(zeros({0}, {.dtype = kInt64})); }}}};
}

OpCase flip_case() {
  const auto make = [](const Shape& x, const Shape& axes) {
    Sample s = sample({x});
    s.label = "axes " + to_string(axes);
    s.op = [axes](const Tensors& in) -> Tensors { return {flip(in[0], axes)}; };
    s.reference = [axes](const Tensors& in) -> Tensors {
      return {moved(in[0], in[0].sizes(), [&](const Shape& at) -> std::optional<Shape> {
        Shape from = at;
        for (const int64_t a : axes) {
          const int d = static_cast<int>(a < 0 ? a + from.size() : a);
          from[d] = in[0].sizes()[d] - 1 - at[d];
        }
        return from;
      })};
    };
    s.torch = "torch.flip(x0, " + to_string(axes) + ")";
    return s;
  };
  return {.name = "flip",
          .samples = {make({5}, {0}), make({3, 4}, {1}), make({3, 4}, {0, -1}), make({2, 3, 4}, {1}), make({2, 3}, {}), make({0, 3}, {0})},
          .large = {make({70, 300}, {1})},
          .dtypes = kAllTypes,
          .tolerance = {.ulps = 0},
          .torch = "torch.flip(x0, (0,))",
          .errors = {{"axis", [] { flip(zeros({2}), {1}); }}}};
}

OpCase pad_case() {
  const auto make = [](const Shape& x, const Shape& pads, double value = 0) {
    Sample s = sample({x});
    s.label = "pads " + to_string(pads);
    s.op = [=](const Tensors& in) -> Tensors { return {pad(in[0], pads, value)}; };
    s.reference = [=](const Tensors& in) -> Tensors {
      Shape sizes = in[0].sizes(), before = Shape::filled(in[0].dim(), 0);
      for (int i = 0; i < pads.size(); i += 2) {
        sizes[sizes.size() - 1 - i / 2] += pads[i] + pads[i + 1];
        before[sizes.size() - 1 - i / 2] = pads[i];
      }
      return {moved(in[0], sizes, [&](const Shape& at) -> std::optional<Shape> {
        Shape from = at;
        for (int d = 0; d < at.size(); ++d) {
          from[d] -= before[d];
          if (from[d] < 0 || from[d] >= in[0].sizes()[d]) return std::nullopt;
        }
        return from;
      }, value)};
    };
    s.torch = "F.pad(x0, " + to_string(pads) + ", value=" + std::to_string(value) + ")";
    return s;
  };
  return {.name = "pad",
          .samples = {make({3}, {1, 2}), make({2, 3}, {0, 1, 2, 0}, 1), make({1, 2, 3, 4}, {2, 2, 1, 1}), make({4, 5}, {-1, 2, 1, -2}),
                      make({2, 3}, {}), make({0, 2}, {1, 1, 1, 0})},
          .large = {make({8, 65, 65}, {1, 1, 2, 2})},
          .dtypes = kAllTypes,
          .tolerance = {.ulps = 0},
          .torch = "F.pad(x0, (1, 1))",
          .errors = {{"[pad] 3 values do not make pairs", [] { pad(zeros({2, 2}), {1, 2, 3}); }},
                     {"cuts more than there is", [] { pad(zeros({2, 2}), {-2, -1}); }}}};
}

}  // namespace

std::vector<OpCase> indexing_cases() {
  return {cat_case(),          stack_case(),        gather_case(),     scatter_add_case(),  scatter_case(),
          index_select_case(), index_add_case(),    embedding_case(),  masked_select_case(), nonzero_case(),
          triangle_case(false), triangle_case(true), one_hot_case(),   flip_case(),         pad_case()};
}

}  // namespace levin::test
