#include "cases/composed/draws.h"

#include <fmt/format.h>

#include <algorithm>

namespace levin::test {

namespace {

/// (B, C) and 1 to `most` spatial sizes.
Shape images(Draw& d, int64_t channels, int64_t most = 3) {
  Shape x{d.between(1, 2), channels};
  for (int64_t n = d.between(1, most); n > 0; --n) x.push_back(d.between(1, 4));
  return x;
}

int64_t per_channel(const Shape& x) { return x.numel() / (x[0] * x[1]); }

/// Kernel, stride, padding and dilation of a convolution, and an input that fits.
struct Window {
  int64_t kernel, stride, padding, dilation, size;
};
Window window(Draw& d, bool pool) {
  Window w{d.between(1, 3), d.between(1, 3), 0, pool ? 1 : d.between(1, 2), 0};
  w.padding = d.between(0, pool ? w.kernel / 2 : 2);
  w.size = std::max<int64_t>(1, w.dilation * (w.kernel - 1) + 1 - 2 * w.padding) + d.between(0, 4);
  return w;
}

InputSpec square(Draw& d, int64_t n, bool batch) {
  Shape sizes;
  if (batch && d.chance(50)) sizes.push_back(d.between(1, 3));
  sizes.push_back(n);
  sizes.push_back(n);
  InputSpec s = input(sizes, [n](int64_t i, int64_t, Generator& g) {
    return g.uniform() * 2 - 1 + ((i % (n * n)) / n == i % n ? 3.0 : 0.0);
  });
  s.own = true;
  return s;
}

}  // namespace

Draws norm_draws() {
  return {[](Draw& d) {
            const int64_t groups = d.between(1, 3), channels = groups * d.between(1, 3);
            const Shape x = images(d, channels);
            return call(fmt::format("F.group_norm(x0, {}, x1, x2)", groups),
                        {input(x), input({channels}), input({channels})}, LEVIN_DRAWN(group_norm(x0, groups, x1, x2)),
                        x.numel() / (x[0] * groups));
          },
          [](Draw& d) {
            Shape x = images(d, d.between(1, 3));
            x[2] = d.between(2, 5);
            return call("F.instance_norm(x0)", {input(x)}, LEVIN_DRAWN(instance_norm(x0)), per_channel(x));
          },
          [](Draw& d) {
            const Shape x = filled(d, 1, 4);
            const Shape normalized(x.begin() + d.below(x.size()), x.end());
            return call(fmt::format("F.rms_norm(x0, {}, x1, eps=1e-3)", tuple(normalized)),
                        {input(x), input(normalized)}, LEVIN_DRAWN(rms_norm(x0, normalized, x1, 1e-3)),
                        normalized.numel());
          },
          [](Draw& d) {
            const int64_t size = d.between(1, 5);
            return call(fmt::format("F.local_response_norm(x0, {}, 0.2, 0.6, 1.5)", size),
                        {input(images(d, d.between(1, 6)))}, LEVIN_DRAWN(local_response_norm(x0, size, 0.2, 0.6, 1.5)),
                        size);
          },
          [](Draw& d) {
            const Shape x = filled(d, 1, 3);
            const int64_t axis = d.axis(x);
            const double p = d.of(std::array{2.0, 1.0, 3.0, static_cast<double>(INFINITY)});
            return call(fmt::format("F.normalize(x0, float('{}'), {}, 1e-3)", p, axis), {input(x)},
                        LEVIN_DRAWN(normalize(x0, p, axis, 1e-3)), 40);
          }};
}

Draws convolution_draws() {
  return {
      [](Draw& d) {
        const Window w = window(d, false);
        const int64_t groups = d.between(1, 2), inputs = d.between(1, 2), out = groups * d.between(1, 2);
        return call(
            fmt::format("F.conv1d(x0, x1, x2, {}, {}, {}, {})", w.stride, w.padding, w.dilation, groups),
            {input({d.between(1, 2), groups * inputs, w.size}), input({out, inputs, w.kernel}), input({out})},
            LEVIN_DRAWN(conv1d(x0, x1, x2,
                               {.stride = w.stride, .padding = w.padding, .dilation = w.dilation, .groups = groups})),
            inputs * w.kernel + 1);
      },
      [](Draw& d) {
        const Window z = window(d, false), y = window(d, false);
        const int64_t groups = d.between(1, 2), out = groups * d.between(1, 2);
        return call(fmt::format("F.conv3d(x0, x1, None, ({}, {}, 1), ({}, {}, 0), ({}, {}, 1), {})", z.stride, y.stride,
                                z.padding, y.padding, z.dilation, y.dilation, groups),
                    {input({1, groups, z.size, y.size, 2}), input({out, 1, z.kernel, y.kernel, 2})},
                    LEVIN_DRAWN(conv3d(x0, x1, {},
                                       {.stride = {z.stride, y.stride, 1},
                                        .padding = {z.padding, y.padding, 0},
                                        .dilation = {z.dilation, y.dilation, 1},
                                        .groups = groups})),
                    z.kernel * y.kernel * 2);
      },
      [](Draw& d) {
        const Window w = window(d, false);
        const int64_t padding = d.between(0, std::min<int64_t>(1, w.dilation * (w.kernel - 1) / 2)),
                      more = d.between(0, std::max(w.stride, w.dilation) - 1);
        return call(
            fmt::format("F.conv_transpose1d(x0, x1, None, {}, {}, {}, 1, {})", w.stride, padding, more, w.dilation),
            {input({2, 2, d.between(1, 4)}), input({2, 2, w.kernel})},
            LEVIN_DRAWN(conv_transpose1d(
                x0, x1, {}, {.stride = w.stride, .padding = padding, .output_padding = more, .dilation = w.dilation})),
            2 * w.kernel);
      },
      [](Draw& d) {
        const Window w = window(d, false);
        return call(
            fmt::format("F.conv_transpose3d(x0, x1, None, ({}, 1, 1), 0, 0, 1, ({}, 1, 1))", w.stride, w.dilation),
            {input({1, 2, d.between(1, 3), 2, d.between(1, 2)}), input({2, 1, w.kernel, 2, 1})},
            LEVIN_DRAWN(conv_transpose3d(x0, x1, {}, {.stride = {w.stride, 1, 1}, .dilation = {w.dilation, 1, 1}})),
            4 * w.kernel);
      }};
}

Draws pool_draws() {
  return {
      [](Draw& d) {
        const Window w = window(d, true);
        const bool ceil = d.chance(40);
        return call(
            fmt::format("F.max_pool1d(x0, {}, {}, {}, 1, {})", w.kernel, w.stride, w.padding, python(ceil)),
            {input({d.between(1, 2), 2, w.size}, distinct(0.3))},
            LEVIN_DRAWN(max_pool1d(x0, w.kernel, {.stride = w.stride, .padding = w.padding, .ceil_mode = ceil})));
      },
      [](Draw& d) {
        const Window z = window(d, true), y = window(d, true);
        const bool ceil = d.chance(40);
        return call(
            fmt::format("F.max_pool3d(x0, ({}, {}, 1), ({}, {}, 1), ({}, {}, 0), 1, {})", z.kernel, y.kernel, z.stride,
                        y.stride, z.padding, y.padding, python(ceil)),
            {input({1, 1, z.size, y.size, 2}, distinct(0.3))},
            LEVIN_DRAWN(max_pool3d(
                x0, {z.kernel, y.kernel, 1},
                {.stride = Tuple<3>(z.stride, y.stride, 1), .padding = {z.padding, y.padding, 0}, .ceil_mode = ceil})));
      },
      [](Draw& d) {
        const Window w = window(d, true);
        const bool ceil = d.chance(40), pads = d.chance(50);
        return call(fmt::format("F.avg_pool1d(x0, {}, {}, {}, {}, {})", w.kernel, w.stride, w.padding, python(ceil),
                                python(pads)),
                    {input({d.between(1, 2), 2, w.size})},
                    LEVIN_DRAWN(avg_pool1d(
                        x0, w.kernel,
                        {.stride = w.stride, .padding = w.padding, .ceil_mode = ceil, .count_include_pad = pads})),
                    w.kernel);
      },
      [](Draw& d) {
        const Window z = window(d, true), y = window(d, true);
        const bool ceil = d.chance(40), pads = d.chance(50);
        return call(fmt::format("F.avg_pool3d(x0, ({}, {}, 1), ({}, {}, 1), ({}, {}, 0), {}, {})", z.kernel, y.kernel,
                                z.stride, y.stride, z.padding, y.padding, python(ceil), python(pads)),
                    {input({1, 1, z.size, y.size, 2})},
                    LEVIN_DRAWN(avg_pool3d(x0, {z.kernel, y.kernel, 1},
                                           {.stride = Tuple<3>(z.stride, y.stride, 1),
                                            .padding = {z.padding, y.padding, 0},
                                            .ceil_mode = ceil,
                                            .count_include_pad = pads})),
                    z.kernel * y.kernel);
      },
      [](Draw& d) {
        const int64_t h = d.between(1, 4), w = d.between(1, 4);
        const Shape x{d.between(1, 2), d.between(1, 2), d.between(1, 6), d.between(1, 6)};
        return call(fmt::format("F.adaptive_avg_pool2d(x0, ({}, {}))", h, w), {input(x)},
                    LEVIN_DRAWN(adaptive_avg_pool2d(x0, {h, w})), x[2] * x[3]);
      },
      [](Draw& d) {
        const int64_t h = d.between(1, 4), w = d.between(1, 4);
        return call(fmt::format("F.adaptive_max_pool2d(x0, ({}, {}))", h, w),
                    {input({d.between(1, 2), 2, d.between(1, 6), d.between(1, 6)}, distinct(0.3))},
                    LEVIN_DRAWN(adaptive_max_pool2d(x0, {h, w})));
      },
      [](Draw& d) {
        const int64_t n = d.between(1, 4);
        const Shape x{2, d.between(1, 2), d.between(1, 7)};
        return call(fmt::format("F.adaptive_avg_pool1d(x0, {})", n), {input(x)},
                    LEVIN_DRAWN(adaptive_avg_pool1d(x0, n)), x[2]);
      },
      [](Draw& d) {
        const int64_t n = d.between(1, 3), m = d.between(1, 3);
        const Shape x{2, d.between(1, 4), d.between(1, 4), d.between(1, 4)};
        return call(fmt::format("F.adaptive_avg_pool3d(x0, ({}, {}, {}))", n, m, n), {input(x)},
                    LEVIN_DRAWN(adaptive_avg_pool3d(x0, {n, m, n})), x.numel());
      },
      [](Draw& d) {
        const Window w = window(d, true);
        return call(fmt::format("F.lp_pool1d(x0, 3.0, {}, {})", w.kernel, w.stride),
                    {own(input({2, 1, w.size + 2}, uniform(0.5, 2)))},
                    LEVIN_DRAWN(lp_pool1d(x0, 3.0, w.kernel, {.stride = w.stride})), w.kernel);
      }};
}

Draws resizing_draws() {
  return {[](Draw& d) {
    struct Kind {
      ResizeMode mode;
      const char* names[3];
    };
    const Kind kind = d.of(
        std::array{Kind{ResizeMode::nearest, {"nearest", "nearest", "nearest"}},
                   Kind{ResizeMode::nearest_exact, {"nearest-exact", "nearest-exact", "nearest-exact"}},
                   Kind{ResizeMode::linear, {"linear", "bilinear", "trilinear"}},
                   Kind{ResizeMode::area, {"area", "area", "area"}}, Kind{ResizeMode::bicubic, {"", "bicubic", ""}}});
    const bool corners = (kind.mode == ResizeMode::linear || kind.mode == ResizeMode::bicubic) && d.chance(50);
    const int64_t spatial = kind.mode == ResizeMode::bicubic ? 2 : d.between(1, 3);
    Shape x{d.between(1, 2), d.between(1, 2)}, size;
    for (int64_t i = 0; i < spatial; ++i) {
      x.push_back(d.between(1, 5));
      size.push_back(d.between(1, 7));
    }
    return call(fmt::format("F.interpolate(x0, size={}, mode='{}'{})", tuple(size), kind.names[spatial - 1],
                            corners ? ", align_corners=True" : ""),
                {input(x)}, LEVIN_DRAWN(interpolate(x0, {.size = size, .mode = kind.mode, .align_corners = corners})),
                64);
  }};
}

Draws sampling_draws() {
  return {[](Draw& d) {
            struct Kind {
              SamplePadding padding;
              const char* name;
            };
            const Kind kind =
                d.of(std::array{Kind{SamplePadding::zeros, "zeros"}, Kind{SamplePadding::border, "border"},
                                Kind{SamplePadding::reflection, "reflection"}});
            const bool nearest = d.chance(30), corners = d.chance(50);
            const int64_t batch = d.between(1, 2);
            InputSpec grid = own(input({batch, d.between(1, 3), d.between(1, 3), 2}, uniform(-1.6, 1.6)));
            grid.differentiable = !nearest;
            return call(fmt::format("F.grid_sample(x0, x1, mode='{}', padding_mode='{}', align_corners={})",
                                    nearest ? "nearest" : "bilinear", kind.name, python(corners)),
                        {own(input({batch, d.between(1, 2), d.between(1, 5), d.between(1, 5)})), grid},
                        LEVIN_DRAWN(grid_sample(x0, x1,
                                                {.mode = nearest ? SampleMode::nearest : SampleMode::bilinear,
                                                 .padding_mode = kind.padding,
                                                 .align_corners = corners})),
                        4);
          },
          [](Draw& d) {
            const Shape sizes{d.between(1, 2), 1, d.between(1, 4), d.between(1, 4)};
            const bool corners = d.chance(50);
            return call(fmt::format("F.affine_grid(x0, {}, align_corners={})", tuple(sizes), python(corners)),
                        {input({sizes[0], 2, 3})}, LEVIN_DRAWN(affine_grid(x0, sizes, corners)), 3);
          }};
}

Draws column_draws() {
  return {[](Draw& d) {
            const Window y = window(d, false), x = window(d, false);
            return call(fmt::format("F.unfold(x0, ({}, {}), ({}, {}), ({}, {}), ({}, {}))", y.kernel, x.kernel,
                                    y.dilation, x.dilation, y.padding, x.padding, y.stride, x.stride),
                        {input({d.between(1, 2), d.between(1, 2), y.size, x.size})},
                        LEVIN_DRAWN(unfold(x0, {y.kernel, x.kernel},
                                           {.dilation = {y.dilation, x.dilation},
                                            .padding = {y.padding, x.padding},
                                            .stride = {y.stride, x.stride}})));
          },
          [](Draw& d) {
            const Window y = window(d, false), x = window(d, false);
            const auto count = [](const Window& w) {
              return (w.size + 2 * w.padding - w.dilation * (w.kernel - 1) - 1) / w.stride + 1;
            };
            return call(
                fmt::format("F.fold(x0, ({}, {}), ({}, {}), ({}, {}), ({}, {}), ({}, {}))", y.size, x.size, y.kernel,
                            x.kernel, y.dilation, x.dilation, y.padding, x.padding, y.stride, x.stride),
                {input({d.between(1, 2), d.between(1, 2) * y.kernel * x.kernel, count(y) * count(x)})},
                LEVIN_DRAWN(fold(x0, {y.size, x.size}, {y.kernel, x.kernel},
                                 {.dilation = {y.dilation, x.dilation},
                                  .padding = {y.padding, x.padding},
                                  .stride = {y.stride, x.stride}})),
                y.kernel * x.kernel);
          }};
}

Draws box_draws() {
  return {[](Draw& d) {
    const auto boxes = [&] {
      InputSpec s = own(input({d.between(1, 5), 4}, [](int64_t i, int64_t, Generator& g) {
        return g.uniform() * 2 + (i % 4 >= 2 ? 2.5 : 0.0);
      }));
      s.rearrange = false;
      return s;
    };
    return call("-", {boxes(), boxes()}, LEVIN_DRAWN(generalized_box_iou(x0, x1)), 8);
  }};
}

Draws system_draws() {
  return {[](Draw& d) {
            const int64_t n = d.between(1, 5);
            return call("torch.linalg.solve(x0, x1)", {square(d, n, false), own(input({n, d.between(1, 3)}))},
                        LEVIN_DRAWN(linalg::solve(x0, x1)), n * n);
          },
          [](Draw& d) {
            const int64_t n = d.between(1, 5);
            return call("torch.linalg.inv(x0)", {square(d, n, true)}, LEVIN_DRAWN(linalg::inv(x0)), n * n);
          },
          [](Draw& d) {
            const int64_t n = d.between(1, 4);
            return call("torch.linalg.det(x0)", {square(d, n, true)}, LEVIN_DRAWN(linalg::det(x0)), 64);
          },
          [](Draw& d) {
            const int64_t n = d.between(1, 4);
            const bool upper = d.chance(50), unit = d.chance(40), left = !d.chance(40);
            const int64_t k = d.between(1, 3);
            return call(
                fmt::format("torch.linalg.solve_triangular(x0, x1, upper={}, unitriangular={}, left={})", python(upper),
                            python(unit), python(left)),
                {square(d, n, false), own(input(left ? Shape{n, k} : Shape{k, n}))},
                LEVIN_DRAWN(linalg::solve_triangular(x0, x1, {.upper = upper, .left = left, .unitriangular = unit})),
                n * n);
          }};
}

Draws factorization_draws() {
  return {[](Draw& d) {
            const int64_t n = d.between(1, 4);
            return call(fmt::format("torch.linalg.cholesky(x0 @ x0.mT + torch.eye({}, dtype=x0.dtype))", n),
                        {square(d, n, true)},
                        LEVIN_DRAWN(linalg::cholesky(matmul(x0, x0.transpose(-2, -1)) + eye(n, like(x0)))), n * n);
          },
          [](Draw& d) {
            const int64_t n = d.between(1, 4);
            return call("torch.linalg.svdvals(x0)", {square(d, n, true)}, LEVIN_DRAWN(linalg::svdvals(x0)), 16);
          },
          [](Draw& d) {
            const int64_t n = d.between(1, 4);
            return call("torch.linalg.pinv(x0)", {square(d, n, true)}, LEVIN_DRAWN(linalg::pinv(x0)), 16);
          }};
}

}  // namespace levin::test
