#include "cases/cases.h"
#include "cases/composed/draws.h"

#include <cmath>

namespace levin::test {

namespace {

const Values kAbove = uniform(0.2, 3), kInside = uniform(0.1, 0.9);

Tensors values_of(const std::vector<Tensor>& t) { return t; }

OpCase further_functions() {
  OpCase c = composition(
      "further_functions",
      {call("torch.clamp_min(x0, 0.2)", {input({2, 3}, away_from(uniform(), {0.2}))}, LEVIN_CALL(clamp_min(x0, 0.2))),
       call("torch.clamp_max(x0, 0.2)", {input({2, 3}, away_from(uniform(), {0.2}))}, LEVIN_CALL(clamp_max(x0, 0.2))),
       call("torch.clamp_min(x0, x1)", {input({7}, distinct(0.5)), input({7}, uniform(-0.1, 0.1))},
            LEVIN_CALL(clamp_min(x0, x1))),
       call("torch.clamp_max(x0, x1)", {input({7}, distinct(0.5)), input({7}, uniform(-0.1, 0.1))},
            LEVIN_CALL(clamp_max(x0, x1))),
       call("torch.float_power(x0, 2.5)", {input({2, 3}, kAbove)}, LEVIN_CALL(float_power(x0, 2.5))),
       call("torch.float_power(x0, x1)", {input({2, 3}, kAbove), input({3})}, LEVIN_CALL(float_power(x0, x1))),
       call("torch.special.xlog1py(x0, x1)", {input({2, 3}), input({3}, uniform(-0.8, 2))},
            LEVIN_CALL(xlog1py(x0, x1))),
       call("torch.special.entr(x0)", {input({2, 3}, kAbove)}, LEVIN_CALL(entr(x0))),
       call("torch.special.ndtr(x0)", {input({2, 3})}, LEVIN_CALL(ndtr(x0))),
       call("torch.special.log_ndtr(x0)", {input({7}, cycle({-30, -8, -3.5, -2, -0.5, 0.5, 4}))},
            LEVIN_CALL(log_ndtr(x0))),
       call("torch.special.ndtri(x0)", {own(input({2, 3}, kInside))}, LEVIN_CALL(ndtri(x0))),
       call("F.softmin(x0, 1)", {input({2, 3})}, LEVIN_CALL(softmin(x0, 1)), 3)});
  c.tolerance = {.ulps = 16, .scale = 8};
  c.grad_tolerance = {.ulps = 64, .scale = 16};
  return c;
}

OpCase further_parts() {
  return composition(
      "further_parts",
      {fixed(call("torch.hsplit(x0, 3)", {input({2, 6})}, LEVIN_CALL(values_of(hsplit(x0, 3))))),
       fixed(call("torch.hsplit(x0, 2)", {input({4})}, LEVIN_CALL(values_of(hsplit(x0, 2))))),
       call("torch.vsplit(x0, (1, 3))", {input({4, 2})}, LEVIN_CALL(values_of(vsplit(x0, std::vector<int64_t>{1, 3})))),
       fixed(call("torch.dsplit(x0, 2)", {input({2, 1, 4})}, LEVIN_CALL(values_of(dsplit(x0, 2))))),
       call("torch.select_scatter(x0, x1, 1, -1)", {input({2, 3}), input({2})},
            LEVIN_CALL(select_scatter(x0, x1, 1, -1))),
       fixed(call("torch.slice_scatter(x0, x1, 1, 0, 4, 2)", {input({2, 4}), input({2, 2})},
                  LEVIN_CALL(slice_scatter(x0, x1, 1, Slice(0, 4, 2))))),
       fixed(call("torch.diagonal_scatter(x0, x1, 1)", {input({3, 4}), input({3})},
                  LEVIN_CALL(diagonal_scatter(x0, x1, 1)))),
       fixed(call("torch.vander(x0)", {input({4})}, LEVIN_CALL(vander(x0)), 4)),
       call("torch.vander(x0, 3, True)", {input({4})}, LEVIN_CALL(vander(x0, 3, true)), 3),
       fixed(call("torch.scatter(x0, 1, torch.tensor([[0, 2]]), 1.5)", {input({2, 3})},
                  LEVIN_CALL(scatter(x0, 1, tensor({{0, 2}}).to(x0.device()), 1.5))))});
}

OpCase further_counts() {
  const Values gaps = cycle({2, 1, NAN, 4, 0.5, NAN, 3});
  return without_gradient(composition(
      "further_counts", {call("torch.nanmedian(x0)", {constant({7}, gaps)}, LEVIN_CALL(nanmedian(x0))),
                         call("torch.nanmedian(x0, 1)", {constant({2, 7}, gaps)}, LEVIN_CALL(nanmedian(x0, 1))),
                         fixed(call("F.max_pool2d_with_indices(x0, 3, 1, 1)",
                                    {own(constant({1, 1, 2, 3}, cycle({-INFINITY})))},
                                    LEVIN_CALL(max_pool2d_with_indices(x0, 3, {.stride = 1, .padding = 1})))),
                         call("torch.isin(x0, x1)", {constant({2, 3}, integers(0, 5)), constant({4}, integers(0, 5))},
                              LEVIN_CALL(isin(x0, x1))),
                         fixed(call("torch.unravel_index(torch.tensor([[0, 5], [11, 7]]), (3, 4))", {constant({1})},
                                    LEVIN_CALL(unravel_index(tensor({{0, 5}, {11, 7}}).to(x0.device()), {3, 4})))),
                         call("torch.logspace(-1, 2, 4, dtype=x0.dtype) * x0", {constant({1})},
                              LEVIN_CALL(logspace(-1, 2, 4, 10.0, like(x0)) * x0)),
                         call("torch.logspace(0, 3, 7, base=2, dtype=x0.dtype) * x0", {constant({1})},
                              LEVIN_CALL(logspace(0, 3, 7, 2.0, like(x0)) * x0))}));
}

OpCase further_statistics() {
  OpCase c = of_products(composition(
      "further_statistics",
      {call("torch.cov(x0)", {input({3, 5})}, LEVIN_CALL(cov(x0)), 5),
       call("torch.cov(x0, correction=0)", {input({6})}, LEVIN_CALL(cov(x0, 0)), 6),
       call("torch.corrcoef(x0)", {own(input({3, 5}, distinct(0.4)))}, LEVIN_CALL(corrcoef(x0)), 10),
       call("torch.nanmedian(x0, 0, True)", {input({4, 3}, distinct(0.3))}, LEVIN_CALL(nanmedian(x0, 0, true))),
       call("torch.cumulative_trapezoid(x0, dx=0.5)", {input({2, 5})}, LEVIN_CALL(cumulative_trapezoid(x0, 0.5)), 5),
       call("torch.cumulative_trapezoid(x0, dim=0)", {input({4, 2})}, LEVIN_CALL(cumulative_trapezoid(x0, 1.0, 0)),
            4)}));
  for (Sample& s : c.samples) s.fixed = s.torch.starts_with("torch.co");
  c.draw = resized(c.samples);
  return c;
}

OpCase further_matrices() {
  const InputSpec matrix = own(input({2, 3, 4}, kAbove));
  OpCase c = with_fixed_sizes(of_products(composition(
      "matrix_functions", {call("torch.linalg.vector_norm(x0, 3.0, dim=1)", {input({2, 3}, kAbove)},
                                LEVIN_CALL(linalg::vector_norm(x0, 3.0, 1)), 3),
                           call("torch.linalg.matrix_norm(x0)", {matrix}, LEVIN_CALL(linalg::matrix_norm(x0)), 12),
                           call("torch.linalg.matrix_norm(x0, 'nuc')", {own(input({4, 3}, distinct(0.31)))},
                                LEVIN_CALL(linalg::matrix_norm(x0, linalg::MatrixNorm::nuclear)), 36),
                           call("torch.linalg.matrix_norm(x0, 1, keepdim=True)", {matrix},
                                LEVIN_CALL(linalg::matrix_norm(x0, 1.0, true)), 3),
                           call("torch.linalg.matrix_norm(x0, -float('inf'))", {matrix},
                                LEVIN_CALL(linalg::matrix_norm(x0, -std::numeric_limits<double>::infinity())), 4),
                           call("torch.linalg.matrix_norm(x0, 2)", {own(input({4, 3}, distinct(0.31)))},
                                LEVIN_CALL(linalg::matrix_norm(x0, 2.0)), 36),
                           call("torch.linalg.cond(x0)", {own(input({2, 2}, cycle({2, 0.3, -0.5, 1.2})))},
                                LEVIN_CALL(linalg::cond(x0)), 16),
                           call("torch.linalg.vecdot(x0, x1, dim=0)", {input({3, 2}), input({3, 2})},
                                LEVIN_CALL(linalg::vecdot(x0, x1, 0)), 3),
                           call("torch.linalg.matrix_exp(x0)", {own(input({2, 3, 3}, uniform(-1, 1)))},
                                LEVIN_CALL(linalg::matrix_exp(x0)), 27),
                           call("torch.linalg.matrix_exp(x0)", {own(input({2, 2}, uniform(-4, 4)))},
                                LEVIN_CALL(linalg::matrix_exp(x0)), 64)})));
  c.tolerance = {.ulps = 64, .scale = 64};
  c.grad_tolerance = {.ulps = 512, .scale = 512};
  return c;
}

OpCase indexed_pools() {
  const Values apart = distinct(0.3);
  return with_fixed_sizes(composition(
      "indexed_pools",
      {call("F.max_pool1d_with_indices(x0, 3, 2, 1)", {input({2, 2, 6}, apart)},
            LEVIN_CALL(max_pool1d_with_indices(x0, 3, {.stride = 2, .padding = 1}))),
       call("F.max_pool3d_with_indices(x0, 2, 1, 1, 1, True)", {input({1, 2, 3, 3, 4}, apart)},
            LEVIN_CALL(max_pool3d_with_indices(x0, 2, {.stride = 1, .padding = 1, .ceil_mode = true}))),
       call("F.max_pool3d_with_indices(x0, (2, 1, 3), 2)", {input({2, 4, 3, 3}, apart)},
            LEVIN_CALL(max_pool3d_with_indices(x0, {2, 1, 3}, {.stride = 2}))),
       call("F.adaptive_max_pool1d_with_indices(x0, 3)", {input({2, 2, 7}, apart)},
            LEVIN_CALL(adaptive_max_pool1d_with_indices(x0, 3))),
       call("F.adaptive_max_pool2d_with_indices(x0, (3, 2))", {input({1, 2, 5, 4}, apart)},
            LEVIN_CALL(adaptive_max_pool2d_with_indices(x0, {3, 2}))),
       call("F.adaptive_max_pool3d_with_indices(x0, 2)", {input({1, 3, 3, 4}, apart)},
            LEVIN_CALL(adaptive_max_pool3d_with_indices(x0, 2))),
       call("F.max_unpool1d(x0, torch.tensor([[[0, 3, 5]]]), 2)", {input({1, 1, 3})},
            LEVIN_CALL(max_unpool1d(x0, tensor<int64_t>({0, 3, 5}).reshape({1, 1, 3}).to(x0.device()), 6))),
       call("F.max_unpool3d(x0, torch.tensor([[[[[0, 3]], [[9, 14]]]]]), (1, 2, 2), output_size=(2, 2, 4))",
            {input({1, 1, 2, 1, 2})},
            LEVIN_CALL(max_unpool3d(x0, tensor<int64_t>({0, 3, 9, 14}).reshape({1, 1, 2, 1, 2}).to(x0.device()),
                                    {2, 2, 4})))}));
}

OpCase further_losses() {
  const std::string focal =
      "(lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction='none') * "
      "(x.sigmoid() * (1 - t) + (1 - x.sigmoid()) * t) ** 1.5 * (0.3 * t + 0.7 * (1 - t)))(x0, x1)";
  const std::string distance = "distance_function=lambda a, b: (a - b).abs().sum(-1)";
  const InputSpec labels = own(constant({2, 3}, cycle({0, 1, 1, 0, 1})));
  OpCase c = of_products(composition(
      "further_losses",
      {call(focal, {own(input({2, 3})), labels}, LEVIN_CALL(sigmoid_focal_loss(x0, x1, {.alpha = 0.3, .gamma = 1.5}))),
       call(focal + ".mean()", {own(input({2, 3})), labels},
            LEVIN_CALL(sigmoid_focal_loss(x0, x1, {.alpha = 0.3, .gamma = 1.5, .reduction = Reduction::mean})), 6),
       call("F.triplet_margin_with_distance_loss(x0, x1, x2, " + distance + ", margin=2.0, swap=True)",
            {input({3, 4}, distinct(0.3)), input({3, 4}), input({3, 4})},
            LEVIN_CALL(triplet_margin_with_distance_loss(
                x0, x1, x2, [](const Tensor& a, const Tensor& b) { return sum(abs(sub(a, b)), -1); },
                {.margin = 2.0, .swap = true})),
            12)}));
  c.grad_tolerance = {.ulps = 64, .scale = 64};
  return c;
}

}  // namespace

OpCase embedding_bags() {
  const auto starts = [](std::initializer_list<double> values) {
    InputSpec s = index_input({static_cast<int64_t>(values.size())}, 1);
    s.values = cycle(values);
    s.rearrange = false;
    return s;
  };
  const InputSpec table = input({5, 3}), line = index_input({6}, 5), square = index_input({2, 3}, 5);
  const InputSpec bags = starts({0, 2, 2});  // the second bag is empty
  const auto of_rows = [](Sample s) {
    s.terms = s.grad_terms = 6;
    return fixed(std::move(s));
  };
  return with_errors(
      composition(
          "embedding_bag",
          {of_rows(call("F.embedding_bag(x1, x0)", {table, square}, LEVIN_CALL(embedding_bag(x0, x1)))),
           of_rows(call("F.embedding_bag(x1, x0, x2)", {table, line, bags}, LEVIN_CALL(embedding_bag(x0, x1, x2)))),
           of_rows(call("F.embedding_bag(x1, x0, x2, mode='sum', padding_idx=1)", {table, line, bags},
                        LEVIN_CALL(embedding_bag(x0, x1, x2, {.mode = BagMode::sum, .padding_idx = -4})))),
           of_rows(call("F.embedding_bag(x1, x0, x2, mode='max')", {table, line, bags},
                        LEVIN_CALL(embedding_bag(x0, x1, x2, {.mode = BagMode::max})))),
           of_rows(call("F.embedding_bag(x1, x0, mode='max', padding_idx=2)", {table, square},
                        LEVIN_CALL(embedding_bag(x0, x1, {}, {.mode = BagMode::max, .padding_idx = 2})))),
           of_rows(call("F.embedding_bag(x1, x0, mode='sum', per_sample_weights=x2)", {table, square, input({2, 3})},
                        LEVIN_CALL(embedding_bag(x0, x1, {}, {.mode = BagMode::sum}, x2)))),
           of_rows(call("F.embedding_bag(x1, x0, x2, mode='sum', per_sample_weights=x3)",
                        {table, line, bags, input({6})},
                        LEVIN_CALL(embedding_bag(x0, x1, x2, {.mode = BagMode::sum}, x3)))),
           of_rows(call("F.embedding_bag(x1, x0, x2, padding_idx=2, include_last_offset=True)",
                        {table, line, starts({0, 2, 2, 6})},
                        LEVIN_CALL(embedding_bag(x0, x1, x2, {.padding_idx = 2, .include_last_offset = true}))))}),
      {{"[embedding_bag] weight is (3,); it needs two dimensions", [] { embedding_bag(zeros({3}), tensor({{0, 1}})); }},
       {"[embedding_bag] the index is (2,), expected is (B, n), or a vector with offsets",
        [] { embedding_bag(zeros({3, 2}), tensor({0, 1})); }},
       {"[embedding_bag] per_sample_weights need mode sum and the sizes of the index",
        [] { embedding_bag(zeros({3, 2}), tensor({{0, 1}}), {}, {}, ones({1, 2})); }},
       {"[embedding_bag] padding_idx -4 is outside of 3 rows",
        [] { embedding_bag(zeros({3, 2}), tensor({{0, 1}}), {}, {.padding_idx = -4}); }},
       {"[embedding_bag] the first offset is 1; the first bag must begin at 0",
        [] { embedding_bag(zeros({3, 2}), tensor({0, 1}), tensor({1})); }}});
}

std::vector<OpCase> further_composed_cases() {
  return {further_functions(), further_parts(), further_counts(), further_statistics(),
          further_matrices(),  indexed_pools(), further_losses(), embedding_bags()};
}

}  // namespace levin::test
