#include "cases/cases.h"

#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <algorithm>

namespace levin::test {

namespace {

/// Checks that a view reads the elements given by `place`, which maps output to input indices by axis.
Sample view_sample(std::string label, const Shape& sizes, std::function<Tensor(const Tensor&)> make,
                   const Shape& result, std::function<int64_t(const Shape& at)> place, std::string torch) {
  Sample s = sample({sizes});
  s.label = std::move(label);
  s.op = [make](const Tensors& x) -> Tensors { return {make(x[0])}; };
  s.reference = [result, place](const Tensors& x) -> Tensors {
    const auto in = x[0].to_vector<double>();
    const Shape steps = contiguous_strides(result);
    std::vector<double> out;
    for (int64_t i = 0; i < result.numel(); ++i) {
      Shape at;
      for (int d = 0; d < result.size(); ++d) at.push_back(i / steps[d] % result[d]);
      out.push_back(in[static_cast<std::size_t>(place(at))]);
    }
    return {from_data(out, result)};
  };
  s.torch = std::move(torch);
  return s;
}

/// Returns the row-major index of the coordinates.
int64_t place_in(const Shape& sizes, const Shape& at) {
  int64_t i = 0;
  for (int d = 0; d < sizes.size(); ++d) i = i * sizes[d] + at[d];
  return i;
}

Sample permuted_sample(const Shape& x, const Shape& order) {
  Shape result;
  for (const int64_t a : order) result.push_back(x[static_cast<int>(a)]);
  Sample s = view_sample(
      "permute", x, [=](const Tensor& t) { return permute(t, order); }, result,
      [=](const Shape& at) {
        Shape from = x;
        for (int d = 0; d < at.size(); ++d) from[static_cast<int>(order[d])] = at[d];
        return place_in(x, from);
      },
      "x0.permute(" + to_string(order) + ")");
  s.code = "permute(x0, " + braces(order) + ")";
  return s;
}

Sample window_sample(const Shape& x, int axis, int64_t size, int64_t step) {
  Shape result = x;
  result[axis] = (x[axis] - size) / step + 1;
  result.push_back(size);
  const std::string arguments = fmt::format("{}, {}, {})", axis, size, step);
  Sample s = view_sample(
      "unfold", x, [=](const Tensor& t) { return unfold(t, axis, size, step); }, result,
      [=](const Shape& at) {
        Shape from(at.begin(), at.end() - 1);
        from[axis] = at[axis] * step + at.back();
        return place_in(x, from);
      },
      "x0.unfold(" + arguments);
  s.code = "unfold(x0, " + arguments;
  s.grad_terms = size;
  return s;
}

Sample sliced_sample(const Shape& x, int axis, int64_t start, int64_t stop, int64_t step) {
  const int64_t last = std::min(stop, x[axis]);
  Shape result = x;
  result[axis] = std::max<int64_t>(0, (last - start + step - 1) / step);
  std::string index;
  for (int d = 0; d < axis; ++d) index += ":, ";
  Sample s = view_sample(
      "slice", x, [=](const Tensor& t) { return slice(t, axis, Slice(start, stop, step)); }, result,
      [=](const Shape& at) {
        Shape from = at;
        from[axis] = start + at[axis] * step;
        return place_in(x, from);
      },
      fmt::format("x0[{}{}:{}:{}]", index, start, stop, step));
  s.code = fmt::format("slice(x0, {}, Slice({}, {}, {}))", axis, start, stop, step);
  return s;
}

/// Expands `part` to `whole`.
Sample expanded_sample(const Shape& whole, const Shape& part) {
  Sample s = view_sample(
      "expand", part, [=](const Tensor& t) { return expand(t, whole); }, whole,
      [=](const Shape& at) {
        Shape from(at.end() - part.size(), at.end());
        for (int d = 0; d < part.size(); ++d)
          if (part[d] == 1) from[d] = 0;
        return place_in(part, from);
      },
      "x0.expand(" + to_string(whole) + ")");
  s.code = "expand(x0, " + braces(whole) + ")";
  s.grad_terms = std::max<int64_t>(1, whole.numel() / std::max<int64_t>(1, part.numel()));
  return s;
}

/// as_strided with the strides of the memory, which is therefore contiguous.
Sample strided_sample() {
  Sample s = view_sample(
      "as_strided", {9},
      [](const Tensor& x) {
        return as_strided(x, {3, 3}, {2, 1}, 1);
      },
      {3, 3}, [](const Shape& i) { return 1 + 2 * i[0] + i[1]; }, "-");
  s.inputs[0].rearrange = false;
  return s;
}

/// Draws one of the views with a random shape.
Sample random_view(Draw& d) {
  const Shape x = d.shape();
  const int dims = x.size(), axis = static_cast<int>(d.below(dims));
  Shape order;
  switch (dims == 0 ? 0 : d.below(5)) {
    case 0: {
      const Shape flat{x.numel()};
      return view_sample(
          "reshape", x, [=](const Tensor& t) { return reshape(t, flat); }, flat, [](const Shape& i) { return i[0]; },
          "x0.reshape(" + to_string(flat) + ")");
    }
    case 1:
      for (int a = 0; a < dims; ++a) order.insert(static_cast<int>(d.below(a + 1)), a);
      return permuted_sample(x, order);
    case 2:
      return window_sample(x, axis, d.below(x[axis] + 1), d.between(1, 3));
    case 3:
      return sliced_sample(x, axis, d.below(x[axis] + 1), d.below(x[axis] + 2), d.between(1, 3));
    default:
      return expanded_sample(x, d.broadcasting_to(x));
  }
}

OpCase views_case() {
  return {.name = "views",
          .samples = {view_sample(
                          "reshape", {2, 6},
                          [](const Tensor& x) {
                            return reshape(x, {3, -1});
                          },
                          {3, 4}, [](const Shape& i) { return i[0] * 4 + i[1]; }, "x0.reshape(3, -1)"),
                      view_sample(
                          "permute", {2, 3, 4},
                          [](const Tensor& x) {
                            return permute(x, {2, 0, 1});
                          },
                          {4, 2, 3}, [](const Shape& i) { return i[1] * 12 + i[2] * 4 + i[0]; }, "x0.permute(2, 0, 1)"),
                      view_sample(
                          "transpose", {31, 33}, [](const Tensor& x) { return transpose(x, 0, 1); }, {33, 31},
                          [](const Shape& i) { return i[1] * 33 + i[0]; }, "x0.transpose(0, 1)"),
                      view_sample(
                          "slice", {7, 3}, [](const Tensor& x) { return x(Slice(1, -1, 2), 1); }, {3},
                          [](const Shape& i) { return (1 + 2 * i[0]) * 3 + 1; }, "x0[1:-1:2, 1]"),
                      view_sample(
                          "expand", {3, 1},
                          [](const Tensor& x) {
                            return expand(x, {2, 3, 4});
                          },
                          {2, 3, 4}, [](const Shape& i) { return i[1]; }, "x0.expand(2, 3, 4)"),
                      view_sample(
                          "unfold", {7, 2}, [](const Tensor& x) { return unfold(x, 0, 3, 2); }, {3, 2, 3},
                          [](const Shape& i) { return (i[0] * 2 + i[2]) * 2 + i[1]; }, "x0.unfold(0, 3, 2)"),
                      window_sample({2, 21}, 1, 17, 2), window_sample({21, 2}, 0, 16, 5),
                      view_sample(
                          "narrow", {5, 4}, [](const Tensor& x) { return narrow(x, 1, -3, 2); }, {5, 2},
                          [](const Shape& i) { return i[0] * 4 + i[1] + 1; }, "x0.narrow(1, -3, 2)"),
                      view_sample(
                          "flatten", {2, 3, 2}, [](const Tensor& x) { return flatten(x, 1); }, {2, 6},
                          [](const Shape& i) { return i[0] * 6 + i[1]; }, "x0.flatten(1)"),
                      view_sample(
                          "split", {7, 2}, [](const Tensor& x) { return split(x, 3)[1]; }, {3, 2},
                          [](const Shape& i) { return (i[0] + 3) * 2 + i[1]; }, "x0.split(3)[1]"),
                      strided_sample()},
          .draw = random_view,
          .dtypes = kAllTypes};
}

}  // namespace

std::vector<OpCase> view_cases() { return {views_case()}; }

}  // namespace levin::test
