#include "cases/cases.h"
#include "cases/composed/draws.h"

#include <algorithm>
#include <cmath>

namespace levin::test {

namespace {

OpCase convolutions() {
  return with_errors(
      with_fixed_sizes(of_products(composition(
          "composed_convolutions",
          {call("F.conv1d(x0, x1, x2)", {input({2, 3, 6}), input({4, 3, 3}), input({4})},
                LEVIN_CALL(conv1d(x0, x1, x2)), 10),
           call("F.conv1d(x0, x1, stride=2, padding=2, dilation=2, groups=2)", {input({2, 4, 7}), input({2, 2, 3})},
                LEVIN_CALL(conv1d(x0, x1, {}, {.stride = 2, .padding = 2, .dilation = 2, .groups = 2})), 6),
           call("F.conv1d(x0, x1)", {input({3, 6}), input({2, 3, 2})}, LEVIN_CALL(conv1d(x0, x1)), 6),
           call("F.conv1d(x0, x1, padding='same', dilation=3)", {input({1, 2, 8}), input({2, 2, 2})},
                LEVIN_CALL(conv1d(pad(x0, same_padding<1>(2, 3)), x1, {}, {.dilation = 3})), 4),
           call("F.conv_transpose1d(x0, x1, x2, stride=2, padding=1, output_padding=1)",
                {input({2, 3, 4}), input({3, 2, 3}), input({2})},
                LEVIN_CALL(conv_transpose1d(x0, x1, x2, {.stride = 2, .padding = 1, .output_padding = 1})), 9),
           call("F.conv3d(x0, x1, x2)", {input({1, 2, 3, 3, 2}), input({2, 2, 2, 2, 1}), input({2})},
                LEVIN_CALL(conv3d(x0, x1, x2)), 9),
           call("F.conv3d(x0, x1, stride=(2, 1, 1), padding=(1, 0, 1), dilation=(2, 1, 1), groups=2)",
                {input({1, 2, 4, 3, 2}), input({2, 1, 2, 2, 2})},
                LEVIN_CALL(conv3d(x0, x1, {},
                                  {.stride = {2, 1, 1}, .padding = {1, 0, 1}, .dilation = {2, 1, 1}, .groups = 2})),
                8),
           call("F.conv3d(x0, x1)", {input({2, 2, 3, 3}), input({1, 2, 2, 2, 2})}, LEVIN_CALL(conv3d(x0, x1)), 16),
           call("F.conv3d(x0, x1, x2, stride=(2, 1, 1))", {input({2, 2, 3, 2, 2}), input({2, 2, 1, 1, 2}), input({2})},
                LEVIN_CALL(conv3d(x0, x1, x2, {.stride = {2, 1, 1}})), 5),
           call("F.conv_transpose3d(x0, x1, x2)", {input({1, 2, 2, 2, 2}), input({2, 1, 2, 2, 2}), input({1})},
                LEVIN_CALL(conv_transpose3d(x0, x1, x2)), 17),
           call("F.conv_transpose3d(x0, x1, stride=2, padding=(1, 0, 1), output_padding=(1, 0, 1), dilation=(2, 1, 1))",
                {input({1, 2, 2, 2, 2}), input({2, 1, 2, 2, 2})},
                LEVIN_CALL(conv_transpose3d(
                    x0, x1, {},
                    {.stride = 2, .padding = {1, 0, 1}, .output_padding = {1, 0, 1}, .dilation = {2, 1, 1}})),
                16),
           call("F.conv_transpose3d(x0, x1, x2, groups=2)",
                {input({1, 4, 2, 1, 2}), input({4, 2, 2, 1, 2}), input({4})},
                LEVIN_CALL(conv_transpose3d(x0, x1, x2, {.groups = 2})), 9)}))),
      {{"[conv1d] x is (2,) and weight (2, 2, 2)", [] { conv1d(ones({2}), ones({2, 2, 2})); }},
       {"[conv3d] the kernel of depth 3 does not fit into x of (1, 1, 2, 4, 4) with padding 0",
        [] { conv3d(ones({1, 1, 2, 4, 4}), ones({1, 1, 3, 1, 1})); }},
       {"[conv3d] x is (2, 2) and weight (2,)", [] { conv3d(ones({2, 2}), ones({2})); }},
       {"[conv3d] along the depth, stride 0 and dilation 1 must be 1 or more, padding 0 0 or more",
        [] { conv3d(ones({1, 1, 2, 4, 4}), ones({1, 1, 2, 1, 1}), {}, {.stride = {0, 1, 1}}); }},
       {"[conv3d] x has 3 channels; weight (2, 1, 2, 1, 1) with 2 groups takes 2",
        [] { conv3d(ones({1, 3, 2, 4, 4}), ones({2, 1, 2, 1, 1}), {}, {.groups = 2}); }},
       {"[conv_transpose3d] along the depth, stride 1 and dilation 0 must be 1 or more, padding 0 0 or more",
        [] { conv_transpose3d(ones({1, 1, 2, 2, 2}), ones({1, 1, 2, 2, 2}), {}, {.dilation = {0, 1, 1}}); }},
       {"[conv_transpose3d] output_padding 1 must be below the stride 1 or the dilation 1", [] {
          conv_transpose3d(ones({1, 1, 2, 2, 2}), ones({1, 1, 2, 2, 2}), {}, {.output_padding = 1});
        }}});
}

OpCase pools() {
  const Values apart = distinct(0.3);
  return with_errors(
      with_fixed_sizes(of_products(composition(
          "composed_pools",
          {call("F.max_pool1d(x0, 2)", {input({2, 2, 5}, apart)}, LEVIN_CALL(max_pool1d(x0, 2))),
           call("F.max_pool1d(x0, 3, 2, 1, 1, ceil_mode=True)", {input({2, 6}, apart)},
                LEVIN_CALL(max_pool1d(x0, 3, {.stride = 2, .padding = 1, .ceil_mode = true}))),
           call("F.max_pool3d(x0, 2, 1)", {input({1, 2, 3, 3, 3}, apart)},
                LEVIN_CALL(max_pool3d(x0, 2, {.stride = 1}))),
           call("F.max_pool3d(x0, (2, 1, 3), 2, (1, 0, 1))", {input({2, 3, 3, 3}, apart)},
                LEVIN_CALL(max_pool3d(x0, {2, 1, 3}, {.stride = 2, .padding = {1, 0, 1}}))),
           call("F.max_pool2d_with_indices(x0, 2)", {input({1, 2, 4, 4}, apart)},
                LEVIN_CALL(max_pool2d_with_indices(x0, 2))),
           call("F.max_pool2d_with_indices(x0, (3, 2), 2, 1, (1, 2), ceil_mode=True)", {input({2, 5, 5}, apart)},
                LEVIN_CALL(max_pool2d_with_indices(
                    x0, {3, 2}, {.stride = 2, .padding = 1, .dilation = {1, 2}, .ceil_mode = true}))),
           call("F.max_unpool2d(x0, torch.tensor([[[[0, 3], [9, 14]]]]), 2)", {input({1, 1, 2, 2})},
                LEVIN_CALL(
                    max_unpool2d(x0, tensor<int64_t>({0, 3, 9, 14}).reshape({1, 1, 2, 2}).to(x0.device()), {4, 4}))),
           call("F.avg_pool1d(x0, 3, 2, 1)", {input({2, 2, 6})},
                LEVIN_CALL(avg_pool1d(x0, 3, {.stride = 2, .padding = 1})), 3),
           call("F.avg_pool3d(x0, 2)", {input({1, 2, 4, 2, 2})}, LEVIN_CALL(avg_pool3d(x0, 2)), 8),
           call("F.avg_pool3d(x0, 3, 2, 1, ceil_mode=True, count_include_pad=False)", {input({1, 4, 3, 4})},
                LEVIN_CALL(
                    avg_pool3d(x0, 3, {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false})),
                27),
           call("F.lp_pool1d(x0, 2.0, 3)", {input({2, 2, 6}, uniform(0.5, 2))}, LEVIN_CALL(lp_pool1d(x0, 2.0, 3)), 3),
           call("F.lp_pool2d(x0, 3.0, 2, 1)", {input({1, 2, 3, 3}, uniform(0.5, 2))},
                LEVIN_CALL(lp_pool2d(x0, 3.0, 2, {.stride = 1})), 4),
           call("F.lp_pool3d(x0, 2.0, 2)", {input({1, 2, 2, 3, 4}, uniform(0.5, 2))}, LEVIN_CALL(lp_pool3d(x0, 2.0, 2)),
                8),
           call("F.adaptive_avg_pool1d(x0, 3)", {input({2, 2, 7})}, LEVIN_CALL(adaptive_avg_pool1d(x0, 3)), 4),
           call("F.adaptive_avg_pool2d(x0, 1)", {input({2, 2, 3, 4})}, LEVIN_CALL(adaptive_avg_pool2d(x0, 1)), 12),
           call("F.adaptive_avg_pool2d(x0, (3, 2))", {input({1, 2, 5, 5})}, LEVIN_CALL(adaptive_avg_pool2d(x0, {3, 2})),
                9),
           call("F.adaptive_avg_pool3d(x0, (2, 3, 1))", {input({1, 3, 4, 2})},
                LEVIN_CALL(adaptive_avg_pool3d(x0, {2, 3, 1})), 8),
           call("F.adaptive_max_pool1d(x0, 3)", {input({2, 7}, apart)}, LEVIN_CALL(adaptive_max_pool1d(x0, 3))),
           call("F.adaptive_max_pool2d(x0, (3, 1))", {input({1, 2, 5, 4}, apart)},
                LEVIN_CALL(adaptive_max_pool2d(x0, {3, 1}))),
           call("F.adaptive_max_pool3d(x0, 2)", {input({1, 3, 3, 4}, apart)},
                LEVIN_CALL(adaptive_max_pool3d(x0, 2)))}))),
      {{"[max_pool1d] x is (2,)", [] { max_pool1d(ones({2}), 2); }},
       {"[max_pool3d] x is (2, 2)", [] { max_pool3d(ones({2, 2}), 2); }},
       {"[adaptive_avg_pool2d] an axis of size 4 cannot be pooled to 0",
        [] { adaptive_avg_pool2d(ones({1, 1, 4, 4}), 0); }},
       {"[max_unpool2d] indices is (1,), and x is (1, 1, 2)", [] {
          max_unpool2d(ones({1, 1, 2}), zeros({1}, kInt64), {4, 4});
        }}});
}

OpCase resizing() {
  const InputSpec line = input({1, 2, 5}), image = input({1, 2, 4, 3}), volume = input({1, 1, 3, 2, 4});
  return with_errors(
      of_products(composition(
          "interpolate",
          {call("F.interpolate(x0, size=8)", {line}, LEVIN_CALL(interpolate(x0, {.size = {8}}))),
           call("F.interpolate(x0, scale_factor=1.7)", {image}, LEVIN_CALL(interpolate(x0, {.scale_factor = {1.7}}))),
           call("F.interpolate(x0, size=(3, 5), mode='nearest-exact')", {image},
                LEVIN_CALL(interpolate(x0, {.size = {3, 5}, .mode = ResizeMode::nearest_exact}))),
           call("F.interpolate(x0, size=8, mode='linear')", {line},
                LEVIN_CALL(interpolate(x0, {.size = {8}, .mode = ResizeMode::linear})), 2),
           call("F.interpolate(x0, size=(7, 2), mode='bilinear')", {image},
                LEVIN_CALL(interpolate(x0, {.size = {7, 2}, .mode = ResizeMode::linear})), 4),
           call("F.interpolate(x0, scale_factor=(1.5, 2.3), mode='bilinear')", {image},
                LEVIN_CALL(interpolate(x0, {.scale_factor = {1.5, 2.3}, .mode = ResizeMode::linear})), 4),
           call("F.interpolate(x0, size=(7, 5), mode='bilinear', align_corners=True)", {image},
                LEVIN_CALL(interpolate(x0, {.size = {7, 5}, .mode = ResizeMode::linear, .align_corners = true})), 4),
           call("F.interpolate(x0, size=(7, 2), mode='bicubic')", {image},
                LEVIN_CALL(interpolate(x0, {.size = {7, 2}, .mode = ResizeMode::bicubic})), 16),
           call("F.interpolate(x0, size=(5, 5), mode='bicubic', align_corners=True)", {image},
                LEVIN_CALL(interpolate(x0, {.size = {5, 5}, .mode = ResizeMode::bicubic, .align_corners = true})), 16),
           call("F.interpolate(x0, size=(2, 3, 5), mode='trilinear')", {volume},
                LEVIN_CALL(interpolate(x0, {.size = {2, 3, 5}, .mode = ResizeMode::linear})), 8),
           call("F.interpolate(x0, size=(2, 2), mode='area')", {image},
                LEVIN_CALL(interpolate(x0, {.size = {2, 2}, .mode = ResizeMode::area})), 6)})),
      {{"[interpolate] give either size or scale_factor, one number or 2", [] { interpolate(ones({1, 1, 2, 2}), {}); }},
       {"[interpolate] axis 2 of (1, 1, 2, 2) cannot be resized to 0",
        [] { interpolate(ones({1, 1, 2, 2}), {.scale_factor = {0.1}}); }},
       {"[interpolate] align_corners is for linear and bicubic only",
        [] { interpolate(ones({1, 1, 2, 2}), {.size = {2}, .align_corners = true}); }},
       {"[interpolate] bicubic needs (B, C, H, W)",
        [] { interpolate(ones({1, 1, 2}), {.size = {2}, .mode = ResizeMode::bicubic}); }},
       {"[interpolate] x is (2,)", [] { interpolate(ones({2}), {.size = {2}}); }}});
}

OpCase sampling() {
  // Points between pixels, some outside.
  const InputSpec image = input({1, 2, 4, 3}),
                  grid = input({1, 2, 4, 2}, cycle({-0.87, 0.31, 0.13, -0.59, 1.21, 0.77}));
  OpCase c = with_fixed_sizes(of_products(composition(
      "sampling",
      {call("F.grid_sample(x0, x1, align_corners=False)", {image, grid}, LEVIN_CALL(grid_sample(x0, x1)), 4),
       call("F.grid_sample(x0, x1, padding_mode='border', align_corners=True)", {image, grid},
            LEVIN_CALL(grid_sample(x0, x1, {.padding_mode = SamplePadding::border, .align_corners = true})), 4),
       call("F.grid_sample(x0, x1, padding_mode='reflection', align_corners=False)", {image, grid},
            LEVIN_CALL(grid_sample(x0, x1, {.padding_mode = SamplePadding::reflection})), 4),
       call("F.grid_sample(x0, x1, padding_mode='reflection', align_corners=True)", {image, grid},
            LEVIN_CALL(grid_sample(x0, x1, {.padding_mode = SamplePadding::reflection, .align_corners = true})), 4),
       call("F.grid_sample(x0, x1, mode='nearest', align_corners=False)",
            {image, constant({1, 2, 4, 2}, cycle({-0.87, 0.31, 0.13, -0.59, 1.21, 0.77}))},
            LEVIN_CALL(grid_sample(x0, x1, {.mode = SampleMode::nearest}))),
       call("F.affine_grid(x0, (2, 1, 2, 3), align_corners=False)", {input({2, 2, 3})},
            LEVIN_CALL(affine_grid(x0, {2, 1, 2, 3})), 3),
       call("F.affine_grid(x0, (1, 1, 3, 2), align_corners=True)", {input({1, 2, 3})},
            LEVIN_CALL(affine_grid(x0, {1, 1, 3, 2}, true)), 3)})));
  return with_errors(c, {{"[grid_sample] grid is (2, 2, 2, 2), expected is (1, H, W, 2)",
                          [] {
                            grid_sample(ones({1, 1, 2, 2}), ones({2, 2, 2, 2}));
                          }},
                         {"[affine_grid] theta is (2, 3) and sizes (1, 1, 2, 2)",
                          [] {
                            affine_grid(ones({2, 3}), {1, 1, 2, 2});
                          }},
                         {"[grid_sample] x is (1, 2, 2)", [] {
                            grid_sample(ones({1, 2, 2}), ones({1, 2, 2, 2}));
                          }}});
}

/// Bilinear sampling with zeros outside, by the definition.
Tensors sampled(const Tensors& in) {
  const std::vector<double> x = in[0].to_vector<double>(), grid = in[1].to_vector<double>();
  const int64_t channels = in[0].size(1), h = in[0].size(2), w = in[0].size(3);
  const int64_t points = in[1].size(1) * in[1].size(2), batch = in[0].size(0);
  std::vector<double> y;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t p = 0; p < points; ++p) {
        const double* const at = &grid[static_cast<std::size_t>(2 * (b * points + p))];
        const double column = ((at[0] + 1) * static_cast<double>(w) - 1) / 2;
        const double row = ((at[1] + 1) * static_cast<double>(h) - 1) / 2;
        double sum = 0;
        for (int64_t i = 0; i < h; ++i)
          for (int64_t j = 0; j < w; ++j) {
            const double down = std::abs(row - static_cast<double>(i));
            const double right = std::abs(column - static_cast<double>(j));
            if (down < 1 && right < 1)  // pixels further away do not count, infinite ones neither
              sum += (1 - down) * (1 - right) * x[static_cast<std::size_t>(((b * channels + c) * h + i) * w + j)];
          }
        y.push_back(sum);
      }
  return {from_data(y, {batch, channels, in[1].size(1), in[1].size(2)})};
}

/// grid_sample with sizes at the limits of its parallel tasks.
OpCase many_samples() {
  const auto make = [](int64_t batch, int64_t channels, int64_t points, int64_t size = 8) {
    // Positions are at least 0.2 pixels away from a pixel, and up to two pixels outside.
    const Values between = [pixels = static_cast<double>(size)](int64_t, int64_t, Generator& g) {
      const double pixel = std::floor(g.uniform() * (pixels + 3)) - 2 + 0.2 + 0.6 * g.uniform();
      return (2 * pixel + 1) / pixels - 1;
    };
    Sample s = call("-", {input({batch, channels, size, size}), own(input({batch, 1, points, 2}, between))},
                    LEVIN_CALL(grid_sample(x0, x1)), 4);
    s.grad_terms = 8 * channels + points / 16;
    return s;
  };
  OpCase c = of_products(composition("grid_sample", {make(1, 2, 6, 4), make(2, 3, 5)}));
  c = with_fixed_sizes(std::move(c));
  c.torch = "";
  c.reference = sampled;
  c.large = {make(3, 5, 700)};
  // A task has 16 tiles of 128 points here; the gradient of x is computed for 8 channels together.
  c.limits = {make(1, 8, 2048), make(1, 8, 2049), make(1, 9, 128), make(2, 9, 1025)};
  return c;
}

OpCase sampling_beside_nan() {
  return without_gradient(with_fixed_sizes(of_products(composition(
      "sampling_beside_nan",
      {call("F.grid_sample(x0, x1, mode='nearest', align_corners=False)",
            {constant({1, 2, 4, 3}, cycle({INFINITY, 1, 2, NAN, 3})),
             constant({1, 2, 4, 2}, cycle({-0.87, 0.31, NAN, 3, 0.2, INFINITY, -0.1}))},
            LEVIN_CALL(grid_sample(x0, x1, {.mode = SampleMode::nearest}))),
       call("F.grid_sample(x0, x1, padding_mode='border', align_corners=False)",
            {constant({1, 2, 4, 3}), constant({1, 2, 4, 2}, cycle({-0.87, 0.31, NAN, 3, 0.2, INFINITY, -0.1}))},
            LEVIN_CALL(grid_sample(x0, x1, {.padding_mode = SamplePadding::border})), 4),
       call("F.grid_sample(x0, x1, padding_mode='reflection', align_corners=False)",
            {constant({1, 2, 4, 3}), constant({1, 2, 4, 2}, cycle({-0.87, 0.31, NAN, 3, 0.2, INFINITY, -0.1}))},
            LEVIN_CALL(grid_sample(x0, x1, {.padding_mode = SamplePadding::reflection})), 4)}))));
}

OpCase columns() {
  return with_errors(
      with_fixed_sizes(of_products(composition(
          "image_columns",
          {call("F.unfold(x0, 2)", {input({1, 2, 3, 4})}, LEVIN_CALL(unfold(x0, 2))),
           call("F.unfold(x0, (2, 3), (1, 2), (1, 2), (2, 1))", {input({2, 1, 4, 5})},
                LEVIN_CALL(unfold(x0, {2, 3}, {.dilation = {1, 2}, .padding = {1, 2}, .stride = {2, 1}}))),
           call("F.fold(x0, (3, 4), 2)", {input({1, 8, 6})}, LEVIN_CALL(fold(x0, {3, 4}, 2)), 4),
           call("F.fold(x0, (4, 5), (2, 3), (1, 2), (1, 2), (2, 1))", {input({2, 6, 15})},
                LEVIN_CALL(fold(x0, {4, 5}, {2, 3}, {.dilation = {1, 2}, .padding = {1, 2}, .stride = {2, 1}})), 6)}))),
      {{"[unfold] a kernel of 5 with dilation 1 does not fit into 4 with padding 0",
        [] { unfold(ones({1, 1, 4, 4}), 5); }},
       {"[fold] x is (1, 3, 6), expected is (B, C * 4, 6)", [] {
          fold(ones({1, 3, 6}), {3, 4}, 2);
        }}});
}

Values boxes_at(double size) {
  return [size](int64_t i, int64_t, Generator& g) { return g.uniform() * 2 + (i % 4 >= 2 ? size : 0.0); };
}

/// PyTorch has these operations in another package; the references are their formulas.
OpCase boxes() {
  InputSpec a = input({3, 4}, boxes_at(3)), b = input({4, 4}, boxes_at(3));
  a.rearrange = b.rearrange = false;  // the values are corners by their place
  const std::string area = "(lambda x: (x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1]))";
  const std::string inter =
      "(lambda a, b: (torch.min(a[:, None, 2:], b[:, 2:]) - torch.max(a[:, None, :2], b[:, "
      ":2])).clamp(min=0).prod(-1))";
  const std::string hull =
      "(lambda a, b: (torch.max(a[:, None, 2:], b[:, 2:]) - torch.min(a[:, None, :2], b[:, "
      ":2])).clamp(min=0).prod(-1))";
  const std::string both = "(" + area + "(x0)[:, None] + " + area + "(x1) - " + inter + "(x0, x1))";
  return with_errors(with_fixed_sizes(of_products(composition(
                         "boxes", {call(area + "(x0)", {a}, LEVIN_CALL(box_area(x0)), 2),
                                   call(inter + "(x0, x1) / " + both, {a, b}, LEVIN_CALL(box_iou(x0, x1)), 4),
                                   call(inter + "(x0, x1) / " + both + " - (" + hull + "(x0, x1) - " + both + ") / " +
                                            hull + "(x0, x1)",
                                        {a, b}, LEVIN_CALL(generalized_box_iou(x0, x1)), 8),
                                   call("torch.cat([(x0[:, :2] + x0[:, 2:]) / 2, x0[:, 2:] - x0[:, :2]], 1)", {a},
                                        LEVIN_CALL(box_convert(x0, BoxFormat::xyxy, BoxFormat::cxcywh)), 2),
                                   call("torch.cat([x0[:, :2], x0[:, :2] + x0[:, 2:]], 1)", {a},
                                        LEVIN_CALL(box_convert(x0, BoxFormat::xywh, BoxFormat::xyxy)), 2),
                                   call("torch.cat([x0[:, :2] + x0[:, 2:] / 2, x0[:, 2:]], 1)", {a},
                                        LEVIN_CALL(box_convert(x0, BoxFormat::xywh, BoxFormat::cxcywh)), 2)}))),
                     {{"[box_iou] boxes are (4,), expected is (N, 4)", [] { box_iou(ones({4}), ones({1, 4})); }},
                      {"[nms] scores is (2,), expected is (1,)", [] {
                         nms(ones({1, 4}), ones({2}), 0.5);
                       }}});
}

/// Boxes as offsets from anchors, and back; the second anchor's offsets are beyond the limit of a box's size.
OpCase box_coding() {
  InputSpec boxes = own(input({2, 3, 4}, boxes_at(3))), anchors = own(constant({3, 4}, boxes_at(3)));
  InputSpec offsets = own(input({2, 3, 4}, away_from(uniform(-1, 1), {0})));
  InputSpec large = own(input({2, 4}, cycle({0.5, -0.25, 1, 0.5, 0.25, 0.5, 9, 30})));
  InputSpec two = own(constant({2, 4}, boxes_at(3)));
  boxes.rearrange = anchors.rearrange = two.rearrange = large.rearrange = false;
  const std::string center = "(lambda b: (b[..., :2] + b[..., 2:]) / 2)", size = "(lambda b: b[..., 2:] - b[..., :2])";
  const std::string encoded = "(lambda b, a, w: torch.cat([(" + center + "(b) - " + center + "(a)) / " + size +
                              "(a), torch.log(" + size + "(b) / " + size + "(a))], -1) * torch.tensor(w).to(b))";
  const std::string middle = center + "(a) + t[..., :2] * " + size + "(a)";
  const std::string half = size + "(a) * t[..., 2:].clamp(max=math.log(62.5)).exp() / 2";
  const std::string decoded = "(lambda t, a: torch.cat([" + middle + " - " + half + ", " + middle + " + " + half +
                              "], -1))";
  return with_errors(
      with_fixed_sizes(of_products(composition(
          "box_coding",
          {call(encoded + "(x0, x1, [1., 1., 1., 1.])", {boxes, anchors}, LEVIN_CALL(encode_boxes(x0, x1)), 8),
           call(encoded + "(x0, x1, [10., 20., 5., 4.])", {boxes, anchors},
                LEVIN_CALL(encode_boxes(x0, x1, {10, 20, 5, 4})), 8),
           call(decoded + "(x0, x1)", {offsets, anchors}, LEVIN_CALL(decode_boxes(x0, x1)), 8),
           call(decoded + "(x0 / torch.tensor([2., 4., 8., 5.]).to(x0), x1)", {offsets, anchors},
                LEVIN_CALL(decode_boxes(x0, x1, {2, 4, 8, 5})), 8),
           call(decoded + "(x0, x1)", {large, two}, LEVIN_CALL(decode_boxes(x0, x1)), 8)}))),
      {{"[encode_boxes] boxes are (4,), expected is (N, 4)", [] { encode_boxes(ones({1, 4}), ones({4})); }},
       {"[decode_boxes] the last axis of (2, 3) is not 4", [] { decode_boxes(ones({2, 3}), ones({2, 4})); }}});
}

}  // namespace

std::vector<OpCase> composed_image_cases() {
  return {with_draws(convolutions(), convolution_draws()),
          with_draws(pools(), pool_draws()),
          with_draws(resizing(), resizing_draws()),
          with_draws(sampling(), sampling_draws()),
          with_draws(sampling_beside_nan(), sampling_draws()),
          many_samples(),
          with_draws(columns(), column_draws()),
          with_draws(boxes(), box_draws()),
          box_coding()};
}

}  // namespace levin::test
