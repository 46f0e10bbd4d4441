#include "cases/cases.h"
#include "cases/places.h"

#include <levin/autograd/ops.h>

namespace levin::test {

namespace {

Shape with(Shape at, int axis, int64_t i) {
  at[axis] = i;
  return at;
}

Sample with_axis(std::vector<InputSpec> inputs, int axis, const std::string& torch, TensorFunction op,
                 TensorFunction reference) {
  return {.inputs = std::move(inputs), .terms = 8, .grad_terms = 64, .label = "axis " + std::to_string(axis),
          .op = std::move(op), .reference = std::move(reference), .torch = torch};
}

Sample with_int32_index(Sample s) {
  s.inputs[1].dtype = DType::i32;
  s.label += ", int32";
  s.torch = "-";
  return s;
}

// cat and stack

Tensors cat_reference(const Tensors& x, int axis) {
  Shape sizes = x[0].sizes();
  std::vector<std::vector<double>> values;
  std::vector<std::pair<std::size_t, int64_t>> places;  // (tensor, position in it)
  for (const Tensor& t : x) {
    for (int64_t i = 0; i < t.size(axis); ++i) places.push_back({values.size(), i});
    values.push_back(t.to_vector<double>());
  }
  sizes[axis] = static_cast<int64_t>(places.size());
  std::vector<double> y;
  each_place(sizes, [&](const Shape& at) {
    const auto& [t, i] = places[static_cast<std::size_t>(at[axis])];
    y.push_back(value_at(values[t], x[t].sizes(), with(at, axis, i)));
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
  s.code = "cat({" + names + "}, " + std::to_string(axis) + ")";
  return s;
}

Sample random_cat(Draw& d) {
  const Shape first = d.shape(1, 4, 60);
  const int axis = static_cast<int>(d.below(first.size()));
  std::vector<Shape> shapes{first};
  for (int64_t n = d.below(3); n > 0; --n) shapes.push_back(with(first, axis, d.size(6)));
  return cat_sample(shapes, axis);
}

/// Returns the shapes of x and of an index that is no larger than x outside of the axis.
std::pair<Shape, Shape> random_lines(Draw& d, int& axis) {
  const Shape x = d.shape();
  axis = static_cast<int>(d.below(x.size()));
  Shape index = x;
  for (int a = 0; a < x.size(); ++a)
    index[a] = a == axis ? (x[a] == 0 ? 0 : d.size(9)) : x[a] - d.below(std::min<int64_t>(2, x[a] + 1));
  return {x, index};
}

OpCase cat_case() {
  return {.name = "cat",
          .samples = {cat_sample({{3}}, 0), cat_sample({{2, 3}, {1, 3}, {4, 3}}, 0), cat_sample({{2, 3}, {2, 1}}, 1),
                      cat_sample({{2, 3, 2}, {2, 0, 2}, {2, 5, 2}}, 1), cat_sample({{0, 3}, {0, 3}}, 1)},
          .draw = random_cat,
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
    s.code.replace(0, 3, "stack");
    return s;
  };
  return {
      .name = "stack",
      .samples = {make({{}, {}}, 0), make({{2, 3}, {2, 3}}, 0), make({{2, 3}, {2, 3}, {2, 3}}, 2), make({{0}, {0}}, 1)},
      .draw =
          [make](Draw& d) {
            const Shape one = d.shape(0, 3, 60);
            const int axis = static_cast<int>(d.below(one.size() + 1));
            return make(std::vector<Shape>(static_cast<std::size_t>(d.between(1, 3)), one), axis);
          },
      .dtypes = kAllTypes,
      .tolerance = {.ulps = 0},
      .torch = "torch.stack((x0,), 0)",
      .errors = {{"all shapes must be equal", [] {
                    stack({zeros({3}), zeros({2})});
                  }}}};
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
                      gather_sample({4, 5}, {3, 2}, 1), gather_sample({3, 4, 5}, {2, 6, 3}, 1),
                      gather_sample({3, 2}, {0, 2}, 0), with_int32_index(gather_sample({4, 5}, {3, 2}, 1))},
          .draw =
              [](Draw& d) {
                int axis = 0;
                const auto [x, index] = random_lines(d, axis);
                return gather_sample(x, index, axis);
              },
          .large = {gather_sample({70, 300}, {65, 290}, 0), gather_sample({300, 70}, {300, 65}, 1)},
          // A parallel task has 16,384 elements.
          .limits = {gather_sample({64, 256}, {64, 256}, 1), gather_sample({64, 257}, {64, 257}, 0)},
          .dtypes = kAllTypes,
          .tolerance = {.ulps = 0},
          .torch = "torch.gather(x0, 0, x1)",
          .errors = {{"[gather] index 4 at position (1, 0) is out of range: it must be 0 or more and below 4",
                      [] {
                        gather(zeros({4, 2}), 0, from_data<int64_t>({0, 1, 4, 1}, {2, 2}));
                      }},
                     {"does not fit",
                      [] {
                        gather(zeros({4, 2}), 0, zeros({4, 3}, {.dtype = kInt64}));
                      }},
                     {"int64 is needed",
                      [] {
                        gather(zeros({4, 2}), 0, zeros({4, 2}));
                      }}},
          .bench = {gather_sample({1024, 1024}, {1024, 1024}, 1)}};
}

/// An index with distinct values along the axis, so that no position is written twice.
InputSpec distinct_index(const Shape& sizes, int axis, int64_t bound) {
  const int64_t inner = [&] {
    int64_t n = 1;
    for (int d = axis + 1; d < sizes.size(); ++d) n *= sizes[d];
    return n;
  }();
  InputSpec spec = index_input(sizes, bound);
  spec.values = [inner, bound, n = sizes[axis]](int64_t i, int64_t, Generator&) {
    return static_cast<double>((bound - 1 - i / inner % n + i % inner) % bound);
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
                   index == source ? "torch.scatter_add(x0, " + std::to_string(axis) + ", x1, x2)" : "",
                   [axis](const Tensors& in) -> Tensors { return {scatter_add(in[0], axis, in[1], in[2])}; },
                   [axis](const Tensors& in) { return scatter_reference(in, axis, true); });
}

OpCase scatter_add_case() {
  return {.name = "scatter_add",
          .samples = {scatter_add_sample({}, {}, {}, 0), scatter_add_sample({3}, {7}, {7}, 0),
                      scatter_add_sample({4, 3}, {5, 2}, {5, 3}, 0), scatter_add_sample({3, 4}, {2, 7}, {3, 8}, 1),
                      scatter_add_sample({3, 2}, {0, 2}, {1, 2}, 0),
                      with_int32_index(scatter_add_sample({4, 3}, {5, 2}, {5, 3}, 0))},
          .draw =
              [](Draw& d) {
                int axis = 0;
                const auto [x, index] = random_lines(d, axis);
                Shape source = index;
                for (int64_t& n : source) n += d.below(2);
                return scatter_add_sample(x, index, source, axis);
              },
          .large = {scatter_add_sample({60, 300}, {60, 290}, {60, 300}, 0),
                    scatter_add_sample({300, 70}, {290, 65}, {300, 65}, 1)},
          .dtypes = kNumericTypes,
          .tolerance = {.ulps = 2, .scale = 2},
          .grad_tolerance = {.ulps = 2, .scale = 2},
          .errors = {{"[scatter_add] index -1 at position 1",
                      [] {
                        scatter_add(zeros({3}), 0, from_data<int64_t>({0, -1}, {2}), zeros({2}));
                      }},
                     {"source (1,)",
                      [] {
                        scatter_add(zeros({3}), 0, from_data<int64_t>({0, 1}, {2}), zeros({1}));
                      }},
                     {"[scatter_add] x is float32, source is float64: their types have to be equal", [] {
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
                      scatter_sample({4, 3}, distinct_index({3, 2}, 0, 4), {3, 3}, 0, false),
                      scatter_sample({2, 5}, distinct_index({2, 4}, 1, 5), {2, 4}, 1, true),
                      scatter_sample({3}, index_input({7}, 3), {7}, 0, false),
                      with_int32_index(scatter_sample({2, 5}, distinct_index({2, 4}, 1, 5), {2, 4}, 1, true))},
          .draw =
              [](Draw& d) {
                int axis = 0;
                auto [x, index] = random_lines(d, axis);
                if (x.empty()) x = index = {1};
                index[axis] = std::min(index[axis], x[axis]);
                const bool same = !d.chance(40);
                Shape source = index;
                for (int64_t& n : source) n += same ? 0 : d.below(2);
                InputSpec places = distinct_index(index, axis, std::max<int64_t>(1, x[axis]));
                return scatter_sample(x, std::move(places), source, axis, same);
              },
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
          .samples = {index_select_sample({5}, 3, 0), index_select_sample({4, 3}, 7, 0),
                      index_select_sample({3, 5, 2}, 4, 1), index_select_sample({3, 5}, 33, 1),
                      index_select_sample({3, 5}, 0, 1), with_int32_index(index_select_sample({4, 3}, 7, 0))},
          .draw =
              [](Draw& d) {
                const Shape x = d.shape(1);
                const int axis = static_cast<int>(d.below(x.size()));
                return index_select_sample(x, x[axis] == 0 ? 0 : d.size(9), axis);
              },
          .large = {index_select_sample({65, 192}, 1024, 0), index_select_sample({129, 65}, 400, 1)},
          // A parallel task has 16,384 elements.
          .limits = {index_select_sample({65, 64}, 256, 0), index_select_sample({65, 64}, 257, 0)},
          .dtypes = kAllTypes,
          .tolerance = {.ulps = 0},
          .torch = "torch.index_select(x0, 0, x1)",
          .errors = {{"[index_select] index 5 at position 1 is out of range: it must be 0 or more and below 5",
                      [] {
                        index_select(zeros({5}), 0, from_data<int64_t>({0, 5}, {2}));
                      }},
                     {"one dimension",
                      [] {
                        index_select(zeros({5}), 0, zeros({1, 1}, {.dtype = kInt64}));
                      }}},
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
                      index_add_sample({2, 3}, 0, 1), with_int32_index(index_add_sample({4, 3}, 5, 0))},
          .draw =
              [](Draw& d) {
                const Shape x = d.shape(1);
                const int axis = static_cast<int>(d.below(x.size()));
                return index_add_sample(x, x[axis] == 0 ? 0 : d.size(9), axis);
              },
          .large = {index_add_sample({65, 192}, 500, 0), index_add_sample({129, 65}, 200, 1)},
          // A parallel task has 16,384 elements.
          .limits = {index_add_sample({64, 256}, 300, 0), index_add_sample({65, 256}, 300, 0),
                     index_add_sample({64, 50}, 256, 1), index_add_sample({65, 50}, 256, 1)},
          .dtypes = kNumericTypes,
          .tolerance = {.ulps = 2, .scale = 2},
          .grad_tolerance = {.ulps = 2, .scale = 2},
          .torch = "torch.index_add(x0, 0, x1, x2)",
          .errors = {{"[index_add] index 3 at position 0",
                      [] { index_add(zeros({3}), 0, from_data<int64_t>({3}, {1}), zeros({1})); }},
                     {"need (2, 3)",
                      [] {
                        index_add(zeros({4, 3}), 0, from_data<int64_t>({3, 0}, {2}), zeros({1, 3}));
                      }}},
          .bench = {index_add_sample({65, 192}, 6144, 0)}};
}

Sample embedding_sample(const Shape& weight, const Shape& index, std::optional<int64_t> padding = std::nullopt) {
  return {.inputs = {{.sizes = weight}, index_input(index, weight[0])},
          .grad_terms = 4 * (1 + index.numel() / weight[0]),  // a row occurs at most four times as often as on average
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
                      embedding_sample({4, 3}, {0}), with_int32_index(embedding_sample({5, 2}, {2, 7}))},
          .draw =
              [](Draw& d) {
                const Shape index = d.shape(0, 2, 20);
                return embedding_sample({d.size(9, false), d.size(9, false)}, index);
              },
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

}  // namespace

std::vector<OpCase> indexing_cases() {
  return {cat_case(),          stack_case(),     gather_case(),   scatter_add_case(), scatter_case(),
          index_select_case(), index_add_case(), embedding_case()};
}

}  // namespace levin::test
