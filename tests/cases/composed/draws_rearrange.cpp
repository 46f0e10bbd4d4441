#include "cases/composed/draws.h"

#include <fmt/format.h>

namespace levin::test {

namespace {

Shape numbers(Draw& d, int count, int64_t low, int64_t high) {
  Shape s;
  for (int i = 0; i < count; ++i) s.push_back(d.between(low, high));
  return s;
}

/// int64 positions in [0, bound) of these sizes.
InputSpec places(const Shape& sizes, int64_t bound) { return index_input(sizes, bound); }

}  // namespace

Draws joining_draws() {
  return {[](Draw& d) {
            const Shape a = d.shape(1, 3);
            Shape b = a;
            b[a.size() > 1 ? 1 : 0] = d.size(6);
            return call("torch.hstack([x0, x1])", {input(a), input(b)}, LEVIN_DRAWN(hstack({x0, x1})));
          },
          [](Draw& d) {
            const int64_t r = d.between(1, 3);
            const bool again = d.chance(40);
            return call(fmt::format("torch.combinations(x0, {}, {})", r, again ? "True" : "False"),
                        {input({d.between(r, 6)})}, LEVIN_DRAWN(combinations(x0, r, again)));
          }};
}

Draws repeating_draws() {
  return {[](Draw& d) {
            const Shape x = d.shape(0, 3);
            const Shape counts = numbers(d, x.size() + static_cast<int>(d.between(0, 2)), 0, 3);
            return call("x0.repeat(" + tuple(counts) + ")", {input(x)}, LEVIN_DRAWN(repeat(x0, counts)));
          },
          [](Draw& d) {
            const Shape x = d.shape(0, 3), counts = numbers(d, static_cast<int>(d.between(0, 4)), 0, 3);
            return call("x0.tile(" + tuple(counts) + ")", {input(x)}, LEVIN_DRAWN(tile(x0, counts)));
          },
          [](Draw& d) {
            const Shape x = d.shape(1, 3);
            const int64_t axis = d.axis(x), n = d.between(0, 3);
            return call(fmt::format("x0.repeat_interleave({}, {})", n, axis), {input(x)},
                        LEVIN_DRAWN(repeat_interleave(x0, n, axis)));
          },
          [](Draw& d) {
            const Shape sizes = d.shape(0, 4);
            return call("torch.broadcast_to(x0, " + tuple(sizes) + ")", {input(d.broadcasting_to(sizes))},
                        LEVIN_DRAWN(broadcast_to(x0, sizes)));
          }};
}

Draws moving_draws() {
  return {[](Draw& d) {
            const Shape x = d.shape(1, 4);
            const Shape axes = d.axes(x), shifts = numbers(d, axes.empty() ? 1 : axes.size(), -9, 9);
            return call("x0.roll(" + tuple(shifts) + (axes.empty() ? ")" : ", " + tuple(axes) + ")"), {input(x)},
                        LEVIN_DRAWN(roll(x0, shifts, Axes(axes))));
          },
          [](Draw& d) {
            const Shape x = d.shape(2, 4);
            const int64_t k = d.between(-5, 5), a = d.axis(x), b = (a + d.between(1, x.size() - 1)) % x.size();
            return call(fmt::format("x0.rot90({}, ({}, {}))", k, a, b), {input(x)}, LEVIN_DRAWN(rot90(x0, k, {a, b})));
          },
          [](Draw& d) {
            const Shape x = d.shape(1, 4);
            const int64_t a = d.axis(x), b = d.axis(x);
            return call(fmt::format("x0.movedim({}, {})", a, b), {input(x)}, LEVIN_DRAWN(movedim(x0, a, b)));
          },
          [](Draw& d) {
            Shape x = d.shape(1, 3);
            const int64_t axis = d.axis(x), m = d.between(1, 3), n = d.between(1, 3);
            x[static_cast<int>(axis < 0 ? axis + x.size() : axis)] = m * n;
            return call(fmt::format("x0.unflatten({}, ({}, -1))", axis, m), {input(x)},
                        LEVIN_DRAWN(unflatten(x0, axis, {m, -1})));
          },
          [](Draw& d) {
            const Shape x = d.shape(1, 3);
            const int64_t axis = d.axis(x), n = d.between(1, 5);
            return call(fmt::format("x0.tensor_split({}, {})", n, axis), {input(x)},
                        LEVIN_DRAWN(tensor_split(x0, n, axis)));
          },
          [](Draw& d) {
            const int64_t r = d.between(1, 3);
            return call(fmt::format("F.pixel_shuffle(x0, {})", r), {input({d.size(2) * r * r, d.size(4), d.size(4)})},
                        LEVIN_DRAWN(pixel_shuffle(x0, r)));
          },
          [](Draw& d) {
            const int64_t r = d.between(1, 3);
            return call(fmt::format("F.pixel_unshuffle(x0, {})", r),
                        {input({d.between(1, 2), d.between(1, 3) * r, d.between(1, 3) * r})},
                        LEVIN_DRAWN(pixel_unshuffle(x0, r)));
          },
          [](Draw& d) {
            const int64_t g = d.between(1, 3);
            return call(fmt::format("F.channel_shuffle(x0, {})", g),
                        {input({d.between(1, 2), d.between(1, 3) * g, d.between(1, 4), d.between(1, 4)})},
                        LEVIN_DRAWN(channel_shuffle(x0, g)));
          }};
}

Draws diagonal_draws() {
  return {[](Draw& d) {
            const Shape x = filled(d, 2, 4);
            const int64_t a = d.axis(x), b = (a + d.between(1, x.size() - 1)) % x.size(), offset = d.between(-3, 3);
            return call(fmt::format("x0.diagonal({}, {}, {})", offset, a, b), {input(x)},
                        LEVIN_DRAWN(diagonal(x0, offset, a, b)));
          },
          [](Draw& d) {
            const int64_t offset = d.between(-3, 3);
            return call(fmt::format("torch.diag_embed(x0, {})", offset), {input(filled(d, 1, 3))},
                        LEVIN_DRAWN(diag_embed(x0, offset)));
          },
          [](Draw& d) {
            const int64_t offset = d.between(-3, 3);
            return call(fmt::format("torch.diag(x0, {})", offset), {input({d.between(1, 6)})},
                        LEVIN_DRAWN(diag(x0, offset)));
          }};
}

Draws selecting_draws() {
  const auto on_axis = [](Draw& d, Shape& x) {
    x = filled(d, 1, 3);
    return d.axis(x);
  };
  const auto at = [](const Shape& x, int64_t axis) { return static_cast<int>(axis < 0 ? axis + x.size() : axis); };
  return {[](Draw& d) {
            const Shape x = filled(d, 1, 3);
            return call("torch.take(x0, x1)", {input(x), places(d.shape(0, 3), x.numel())}, LEVIN_DRAWN(take(x0, x1)));
          },
          [=](Draw& d) {
            Shape x;
            const int64_t axis = on_axis(d, x);
            Shape index = x;
            index[at(x, axis)] = d.size(6);
            return call(fmt::format("torch.take_along_dim(x0, x1, {})", axis),
                        {input(x), places(index, x[at(x, axis)])}, LEVIN_DRAWN(take_along_dim(x0, x1, axis)));
          },
          [=](Draw& d) {
            Shape x;
            const int64_t axis = on_axis(d, x);
            return call(fmt::format("x0.index_fill({}, x1, -0.5)", axis),
                        {input(x), places({d.size(5)}, x[at(x, axis)])}, LEVIN_DRAWN(index_fill(x0, axis, x1, -0.5)));
          },
          [=](Draw& d) {
            Shape x;
            const int64_t axis = on_axis(d, x), n = x[at(x, axis)];
            InputSpec order = places({n}, n);  // each position once
            order.values = [](int64_t i, int64_t count, Generator&) { return static_cast<double>(count - 1 - i); };
            order.rearrange = false;
            return call(fmt::format("x0.index_copy({}, x1, x2)", axis), {input(x), order, input(x)},
                        LEVIN_DRAWN(index_copy(x0, axis, x1, x2)));
          },
          [=](Draw& d) {
            Shape x;
            const int64_t axis = on_axis(d, x);
            Shape source = x;
            source[at(x, axis)] = d.size(6);
            struct Kind {
              ScatterReduce reduce;
              const char* name;
            };
            const Kind kind = d.of(std::array{Kind{ScatterReduce::sum, "sum"}, Kind{ScatterReduce::mean, "mean"},
                                              Kind{ScatterReduce::prod, "prod"}, Kind{ScatterReduce::amax, "amax"},
                                              Kind{ScatterReduce::amin, "amin"}});
            const bool self = !d.chance(40);
            return call(fmt::format("x0.scatter_reduce({}, x1, x2, '{}', include_self={})", axis, kind.name,
                                    self ? "True" : "False"),
                        {input(x), places(source, x[at(x, axis)]), input(source)},
                        LEVIN_DRAWN(scatter_reduce(x0, axis, x1, x2, kind.reduce, self)), 7);
          }};
}

Draws padding_draws() {
  return {[](Draw& d) {
    struct Kind {
      PadMode mode;
      const char* name;
    };
    const Kind kind = d.of(std::array{Kind{PadMode::constant, "constant"}, Kind{PadMode::reflect, "reflect"},
                                      Kind{PadMode::replicate, "replicate"}, Kind{PadMode::circular, "circular"}});
    const int spatial = static_cast<int>(d.between(1, 3));
    Shape x{d.between(1, 2), d.between(1, 2)}, pads;
    for (int i = 0; i < spatial; ++i) x.push_back(d.between(1, 4));
    for (int i = 0; i < spatial; ++i) {  // the last axis comes first
      const int64_t n = x[x.size() - 1 - i];
      const int64_t most = kind.mode == PadMode::reflect ? n - 1 : kind.mode == PadMode::circular ? n : 3;
      pads.push_back(d.between(0, most));
      pads.push_back(d.between(0, most));
    }
    return call(fmt::format("F.pad(x0, {}, mode='{}')", tuple(pads), kind.name), {input(x)},
                LEVIN_DRAWN(pad(x0, pads, kind.mode)));
  }};
}

}  // namespace levin::test
