#include "cases/composed/draws.h"

#include <fmt/format.h>

#include <algorithm>

namespace levin::test {

namespace {

int place(const Shape& x, int64_t axis) { return static_cast<int>(axis < 0 ? axis + x.size() : axis); }

/// A shape and one of its axes, of size 1 or more.
struct Along {
  Shape x;
  int64_t axis;
  int64_t size() const { return x[place(x, axis)]; }
};
Along along(Draw& d) {
  const Shape x = filled(d, 1, 4);
  return {x, d.axis(x)};
}

/// A call f(x0, axis) for a function of one name in both languages.
template <class F>
std::function<Sample(Draw&)> on_axis(const char* name, F f, bool apart = false) {
  return [=](Draw& d) {
    const Along a = along(d);
    const int64_t axis = a.axis;
    return call(fmt::format("torch.{}(x0, {})", name, axis), {input(a.x, apart ? distinct(0.3) : uniform())},
                LEVIN_DRAWN(f(x0, axis)), a.size());
  };
}

}  // namespace

Draws moment_draws() {
  return {[](Draw& d) {
            const Shape x = filled(d, 1, 4), axes = d.axes(x);
            const int64_t correction = d.between(0, 1);
            const bool keep = d.chance(50);
            const auto parts = [](const VarMean& v) { return Tensors{v.var, v.mean}; };
            return call(fmt::format("torch.var_mean(x0, dim={}, correction={}, keepdim={})",
                                    axes.empty() ? "None" : tuple(axes), correction, python(keep)),
                        {input(x)}, LEVIN_DRAWN(parts(var_mean(x0, Axes(axes), static_cast<double>(correction), keep))),
                        x.numel());
          },
          [](Draw& d) {
            const Shape x = d.shape(1, 4), axes = d.axes(x);
            const bool keep = d.chance(50);
            return call(
                fmt::format("torch.nansum(x0, dim={}, keepdim={})", axes.empty() ? "None" : tuple(axes), python(keep)),
                {input(x)}, LEVIN_DRAWN(nansum(x0, Axes(axes), keep)), x.numel());
          },
          [](Draw& d) {
            const Shape x = filled(d, 1, 4), axes = d.axes(x);
            const bool keep = d.chance(50);
            return call(
                fmt::format("torch.nanmean(x0, dim={}, keepdim={})", axes.empty() ? "None" : tuple(axes), python(keep)),
                {input(x)}, LEVIN_DRAWN(nanmean(x0, Axes(axes), keep)), x.numel());
          },
          [](Draw& d) {
            const Along a = along(d);
            const int64_t n = d.between(0, 3), axis = a.axis;
            return call(fmt::format("torch.diff(x0, {}, {})", n, axis), {input(a.x)}, LEVIN_DRAWN(diff(x0, n, axis)),
                        1 << n);
          },
          [](Draw& d) {
            const Along a = along(d);
            const int64_t axis = a.axis;
            return call(fmt::format("torch.trapezoid(x0, dx=0.25, dim={})", axis), {input(a.x)},
                        LEVIN_DRAWN(trapezoid(x0, 0.25, axis)), a.size());
          },
          [](Draw& d) {
            const Shape x = filled(d, 1, 3);
            const double p = d.of(std::array{2.0, 1.0, 3.0, 0.5, 0.0, static_cast<double>(INFINITY)});
            return call(fmt::format("torch.dist(x0, x1, float('{}'))", p), {input(x), input(d.broadcasting_to(x))},
                        LEVIN_DRAWN(dist(x0, x1, p)), x.numel());
          }};
}

Draws order_draws() {
  return {[](Draw& d) {
            const Along a = along(d);
            const int64_t k = d.between(1, a.size()), axis = a.axis;
            const bool keep = d.chance(50);
            return call(fmt::format("torch.kthvalue(x0, {}, {}, {})", k, axis, python(keep)),
                        {input(a.x, distinct(0.3))}, LEVIN_DRAWN(kthvalue(x0, k, axis, keep)));
          },
          [](Draw& d) {
            const Along a = along(d);
            const int64_t axis = a.axis;
            const bool keep = d.chance(50);
            return call(fmt::format("torch.median(x0, {}, {})", axis, python(keep)), {input(a.x, distinct(0.3))},
                        LEVIN_DRAWN(median(x0, axis, keep)));
          },
          [](Draw& d) {
            struct Kind {
              QuantileMethod method;
              const char* name;
            };
            const Kind kind =
                d.of(std::array{Kind{QuantileMethod::linear, "linear"}, Kind{QuantileMethod::lower, "lower"},
                                Kind{QuantileMethod::higher, "higher"}, Kind{QuantileMethod::midpoint, "midpoint"},
                                Kind{QuantileMethod::nearest, "nearest"}});
            const Along a = along(d);
            const int64_t axis = a.axis;
            const double q = d.of(std::array{0.0, 1.0, 0.5, 0.3, 0.77});
            const bool keep = d.chance(50);
            return call(fmt::format("torch.quantile(x0, {}, dim={}, keepdim={}, interpolation='{}')", q, axis,
                                    python(keep), kind.name),
                        {input(a.x, distinct(0.3))}, LEVIN_DRAWN(quantile(x0, q, axis, keep, kind.method)), 2);
          }};
}

Draws scan_draws() {
  const auto pair = [](const ValuesIndices& v) { return Tensors{v.values, v.indices}; };
  return {on_axis("cumprod", [](const Tensor& x, int64_t axis) { return cumprod(x, axis); }),
          on_axis("logcumsumexp", [](const Tensor& x, int64_t axis) { return logcumsumexp(x, axis); }),
          on_axis(
              "cummax", [=](const Tensor& x, int64_t axis) { return pair(cummax(x, axis)); }, true),
          on_axis(
              "cummin", [=](const Tensor& x, int64_t axis) { return pair(cummin(x, axis)); }, true)};
}

Draws count_draws() {
  return {[](Draw& d) {
            const Shape x = d.shape(0, 4), axes = d.axes(x);
            return call(fmt::format("torch.count_nonzero(x0{})", axes.empty() ? "" : ", " + tuple(axes)),
                        {constant(x, integers(-1, 2))}, LEVIN_DRAWN(count_nonzero(x0, Axes(axes))));
          },
          [](Draw& d) {
            const Along a = along(d);
            const int64_t bins = d.between(1, 7);
            return call(fmt::format("torch.histc(x0, {}, -1.5, 1.0)", bins), {own(constant(a.x))},
                        LEVIN_DRAWN(histc(x0, bins, -1.5, 1.0)));
          },
          [](Draw& d) {
            const int64_t n = d.size(20), least = d.between(0, 9);
            return call(fmt::format("torch.bincount(x1, minlength={})", least), {constant({1}), index_input({n}, 6)},
                        LEVIN_DRAWN(bincount(x1, {}, least)));
          }};
}

Draws product_draws() {
  return {[](Draw& d) {
            const Shape both = filled(d, 0, 2), a = filled(d, 0, 1), b = filled(d, 0, 1);
            Shape x = a, y = both;
            for (const int64_t n : both) x.push_back(n);
            for (const int64_t n : b) y.push_back(n);
            const int64_t axes = both.size();
            return call(fmt::format("torch.tensordot(x0, x1, {})", axes), {input(x), input(y)},
                        LEVIN_DRAWN(tensordot(x0, x1, axes)), both.numel());
          },
          [](Draw& d) {
            const int64_t n = d.between(1, 4), power = d.between(0, 4);
            int64_t terms = 1;
            for (int64_t i = 0; i < power; ++i) terms *= n;
            return call(fmt::format("torch.matrix_power(x0, {})", power), {input({d.between(1, 2), n, n})},
                        LEVIN_DRAWN(matrix_power(x0, power)), terms);
          },
          [](Draw& d) {
            const int64_t m = d.between(1, 4);
            const double p = d.of(std::array{2.0, 1.0, 3.0, static_cast<double>(INFINITY)});
            return call(fmt::format("torch.cdist(x0, x1, float('{}'))", p),
                        {input({d.between(1, 4), m}), input({d.between(1, 4), m})}, LEVIN_DRAWN(cdist(x0, x1, p)), m);
          },
          [](Draw& d) {
            Shape x = filled(d, 1, 3);
            const int64_t axis = d.axis(x);
            x[place(x, axis)] = 3;
            return call(fmt::format("torch.linalg.cross(x0, x1, dim={})", axis), {input(x), input(x)},
                        LEVIN_DRAWN(cross(x0, x1, axis)), 2);
          },
          [](Draw& d) {
            return call("torch.kron(x0, x1)", {input(filled(d, 0, 3, 12)), input(filled(d, 0, 3, 12))},
                        LEVIN_DRAWN(kron(x0, x1)));
          }};
}

Draws einsum_draws() {
  return {[](Draw& d) {
    // Each of four letters has a size, and each operand some of the letters.
    const Shape size{d.between(1, 4), d.between(1, 4), d.between(1, 3), d.between(1, 3)};
    const std::string letters = "ijkl";
    std::string equation, used;
    std::vector<InputSpec> inputs;
    for (int64_t n = d.between(1, 3); n > 0; --n) {
      Shape x;
      equation += inputs.empty() ? "" : ",";
      for (int64_t axes = d.between(0, 3); axes > 0; --axes) {
        const auto letter = static_cast<std::size_t>(d.below(4));
        equation += letters[letter];
        used += letters[letter];
        x.push_back(size[static_cast<int>(letter)]);
      }
      inputs.push_back(input(x));
    }
    equation += "->";
    for (const char c : letters)
      if (used.find(c) != std::string::npos && d.chance(50)) equation += c;
    if (d.chance(50))
      std::reverse(equation.begin() + static_cast<std::ptrdiff_t>(equation.find('>')) + 1, equation.end());
    const std::string names = inputs.size() == 1 ? "x0" : inputs.size() == 2 ? "x0, x1" : "x0, x1, x2";
    Call c;
    c.op = [equation](const Tensors& x) -> Tensors { return {einsum(equation, x)}; };
    c.code = "einsum(\"" + equation + "\", {" + names + "})";
    return call("torch.einsum('" + equation + "', " + names + ")", std::move(inputs), c, size.numel());
  }};
}

Draws activation_draws() {
  return {[](Draw& d) {
            Shape x = d.shape(1, 4);
            const int64_t axis = d.axis(x);
            x[place(x, axis)] = 2 * d.between(1, 3);
            return call(fmt::format("F.glu(x0, {})", axis), {input(x)}, LEVIN_DRAWN(glu(x0, axis)));
          },
          [](Draw& d) {
            const double alpha = d.of(std::array{1.0, 0.5, 2.5});
            return call(fmt::format("F.celu(x0, {})", alpha), {input(d.shape())}, LEVIN_DRAWN(celu(x0, alpha)));
          },
          [](Draw& d) {
            const double low = d.of(std::array{-1.0, -2.5, 0.0}), high = d.of(std::array{1.0, 0.25, 6.0});
            return call(fmt::format("F.hardtanh(x0, {}, {})", low, high), {input(d.shape())},
                        LEVIN_DRAWN(hardtanh(x0, low, high)));
          },
          [](Draw& d) {
            const double by = d.of(std::array{0.5, 0.125, 1.25});  // 0 would make the gradient jump at x = 0
            return call(fmt::format("F.softshrink(x0, {})", by), {input(d.shape())}, LEVIN_DRAWN(softshrink(x0, by)));
          },
          [](Draw& d) {
            const double at = d.of(std::array{0.0, 0.5, -1.0}), value = d.of(std::array{0.0, -3.0, 20.0});
            return call(fmt::format("F.threshold(x0, {}, {})", at, value), {input(d.shape())},
                        LEVIN_DRAWN(threshold(x0, at, value)));
          }};
}

Draws margin_loss_draws() {
  return {[](Draw& d) {
    const int64_t batch = d.between(1, 5), classes = d.between(1, 6), p = d.between(1, 2);
    const double margin = d.of(std::array{1.0, 0.4, 0.0});
    return call(fmt::format("F.multi_margin_loss(x0, x1, p={}, margin={})", p, margin),
                {input({batch, classes}, distinct(0.37)), index_input({batch}, classes)},
                LEVIN_DRAWN(multi_margin_loss(x0, x1, {.p = static_cast<double>(p), .margin = margin})),
                batch * classes);
  }};
}

}  // namespace levin::test
