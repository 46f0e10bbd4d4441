#include "cases/cases.h"

#include <levin/autograd/ops.h>

namespace levin::test {

namespace {

/// A view is right when it reads the elements that `place` names: output index to input index, by axis.
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

/// Its strides are those of the memory, which is therefore contiguous.
Sample strided_sample() {
  Sample s = view_sample(
      "as_strided", {9}, [](const Tensor& x) { return as_strided(x, {3, 3}, {2, 1}, 1); }, {3, 3},
      [](const Shape& i) { return 1 + 2 * i[0] + i[1]; }, "-");
  s.inputs[0].rearrange = false;
  return s;
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
          .dtypes = kAllTypes};
}

}  // namespace

std::vector<OpCase> view_cases() { return {views_case()}; }

}  // namespace levin::test
