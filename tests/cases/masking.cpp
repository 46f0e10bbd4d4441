#include "cases/cases.h"
#include "cases/places.h"

#include <levin/autograd/ops.h>

namespace levin::test {

namespace {

std::vector<double> chosen(const Tensor& x, const Tensor& mask) {
  const Shape sizes = broadcast_shapes(x.sizes(), mask.sizes(), "reference");
  const auto xs = broadcast_values(x, sizes), ms = broadcast_values(mask, sizes);
  std::vector<double> y;
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (ms[i] != 0) y.push_back(xs[i]);
  return y;
}

OpCase masked_select_case() {
  const auto make = [](const Shape& x, const Shape& mask) {
    return Sample{.inputs = {{.sizes = x}, bool_input(mask)}};
  };
  return {.name = "masked_select",
          .op = [](const Tensors& in) -> Tensors { return {masked_select(in[0], in[1])}; },
          .reference = [](const Tensors& in) -> Tensors {
            const auto y = chosen(in[0], in[1].to(kDouble));
            return {from_data(y, {static_cast<int64_t>(y.size())})};
          },
          .samples = {make({31}, {31}), make({7, 5}, {7, 5}), make({4, 1}, {3}), make({3, 5}, {4, 1, 5}),
                      make({0, 3}, {0, 3})},
          .draw =
              [make](Draw& d) {
                const Shape x = d.shape();
                return make(x, d.chance(70) ? x : d.broadcasting_to(x));
              },
          .large = {make({40000}, {40000})},
          .limits = {make({16384}, {16384}), make({16385}, {16385})},  // a task is 16,384 elements
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
          .draw = [](Draw& d) { return sample({d.shape()}, integers(-1, 2)); },
          .large = {sample({{40000}}, integers(0, 2))},
          .limits = {sample({{16384}}, integers(0, 2)), sample({{16385}}, integers(0, 2))},
          .dtypes = kAllTypes,
          .outputs = {Output::index},
          .differentiable = false,
          .torch = "torch.nonzero(x0)"};
}

OpCase triangle_case(bool upper) {
  const auto make = [upper](const Shape& x, int64_t diagonal) {
    Sample s = sample({x});
    s.label = "diagonal " + std::to_string(diagonal);
    s.code = std::string(upper ? "triu" : "tril") + "(x0, " + std::to_string(diagonal) + ")";
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
          .samples = {make({3, 3}, 0), make({2, 4, 5}, 1), make({5, 2}, -2), make({1, 1}, 0), make({3, 4}, 9),
                      make({2, 0, 3}, 0)},
          .draw = [make](Draw& d) { return make(d.shape(2), d.below(5) - d.below(5)); },
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
  Sample narrow = make({2, 3}, -1);
  narrow.inputs[0].dtype = DType::i32;
  narrow.label += ", int32";
  narrow.torch = "-";
  return {.name = "one_hot",
          .samples = {make({}, 5), make({31}, 7), make({2, 3}, -1), make({0}, 4), narrow},
          .draw = [make](Draw& d) { return make(d.shape(0, 3), d.between(5, 9)); },
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
    s.code = "flip(x0, " + braces(axes) + ")";
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
          .samples = {make({5}, {0}), make({3, 4}, {1}), make({3, 4}, {0, -1}), make({2, 3, 4}, {1}), make({2, 3}, {}),
                      make({0, 3}, {0})},
          .draw =
              [make](Draw& d) {
                const Shape x = d.shape();
                return make(x, d.axes(x));
              },
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
    s.code = "pad(x0, " + braces(pads) + ", " + std::to_string(value) + ")";
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
          .samples = {make({3}, {1, 2}), make({2, 3}, {0, 1, 2, 0}, 1), make({1, 2, 3, 4}, {2, 2, 1, 1}),
                      make({4, 5}, {-1, 2, 1, -2}), make({2, 3}, {}), make({0, 2}, {1, 1, 1, 0})},
          .draw =
              [make](Draw& d) {
                const Shape x = d.shape(0, 3, 60);
                Shape pads;
                for (int axis = x.size() - 1; axis >= 0 && d.chance(70); --axis) {
                  const int64_t before = d.chance(20) ? -d.below(x[axis] / 2 + 1) : d.below(3);
                  pads.push_back(before);
                  pads.push_back(d.chance(20) ? -d.below(x[axis] / 2 + 1) : d.below(3));
                }
                return make(x, pads, d.chance(30) ? 1 : 0);
              },
          .large = {make({8, 65, 65}, {1, 1, 2, 2})},
          .dtypes = kAllTypes,
          .tolerance = {.ulps = 0},
          .torch = "F.pad(x0, (1, 1))",
          .errors = {{"[pad] 3 values do not make pairs",
                      [] {
                        pad(zeros({2, 2}), {1, 2, 3});
                      }},
                     {"cuts more than there is", [] {
                        pad(zeros({2, 2}), {-2, -1});
                      }}}};
}

}  // namespace

std::vector<OpCase> masking_cases() {
  return {masked_select_case(), nonzero_case(), triangle_case(false), triangle_case(true), one_hot_case(),
          flip_case(),          pad_case()};
}

}  // namespace levin::test
