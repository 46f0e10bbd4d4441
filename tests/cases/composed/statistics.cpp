#include "cases/cases.h"
#include "cases/composed/draws.h"

#include <cmath>

namespace levin::test {

namespace {

Tensors parts(const VarMean& v) { return {v.var, v.mean}; }
Tensors parts(const StdMean& v) { return {v.std, v.mean}; }
Tensors parts(const MinMax& v) { return {v.min, v.max}; }
Tensors parts(const Unique& u) { return {u.values, u.inverse, u.counts}; }

OpCase moments() {
  return of_products(composition(
      "moments",
      {call("torch.var_mean(x0)", {input({3, 4})}, LEVIN_CALL(parts(var_mean(x0))), 12),
       call("torch.var_mean(x0, dim=1, correction=0, keepdim=True)", {input({3, 4})},
            LEVIN_CALL(parts(var_mean(x0, 1, 0.0, true))), 4),
       call("torch.std_mean(x0, dim=(0, 2))", {input({2, 3, 4})}, LEVIN_CALL(parts(std_mean(x0, Axes{0, 2}))), 8),
       call("torch.aminmax(x0, dim=1)", {input({3, 4}, distinct())}, LEVIN_CALL(parts(aminmax(x0, 1)))),
       call("torch.nansum(x0, dim=1)", {input({3, 4})}, LEVIN_CALL(nansum(x0, 1)), 4),
       call("torch.nanmean(x0)", {input({3, 4})}, LEVIN_CALL(nanmean(x0)), 12),
       call("torch.dist(x0, x1)", {input({2, 3}), input({2, 3})}, LEVIN_CALL(dist(x0, x1)), 6),
       call("torch.dist(x0, x1, 1)", {input({2, 3}, distinct(0.4)), input({3}, cycle({0.1}))},
            LEVIN_CALL(dist(x0, x1, 1)), 6),
       call("torch.diff(x0)", {input({2, 4})}, LEVIN_CALL(diff(x0))),
       call("torch.diff(x0, 2, 0)", {input({4, 2})}, LEVIN_CALL(diff(x0, 2, 0)), 3),
       call("torch.trapezoid(x0, dx=0.5)", {input({2, 4})}, LEVIN_CALL(trapezoid(x0, 0.5)), 4),
       call("torch.trapezoid(x0, x1, dim=0)", {input({4, 2}), input({4})}, LEVIN_CALL(trapezoid(x0, x1, 0)), 4)}));
}

OpCase order_statistics() {
  const Values apart = distinct(0.3);
  return with_errors(
      composition(
          "order_statistics",
          {fixed(call("torch.kthvalue(x0, 2)", {input({3, 4}, apart)}, LEVIN_CALL(kthvalue(x0, 2)))),
           fixed(call("torch.kthvalue(x0, 3, 0, True)", {input({3, 4}, apart)}, LEVIN_CALL(kthvalue(x0, 3, 0, true)))),
           call("torch.median(x0)", {input({3, 4}, apart)}, LEVIN_CALL(median(x0))),
           call("torch.median(x0, 1)", {input({3, 4}, apart)}, LEVIN_CALL(median(x0, 1))),
           call("torch.median(x0, 0, True)", {input({3, 4}, apart)}, LEVIN_CALL(median(x0, 0, true))),
           call("torch.quantile(x0, 0.3)", {input({7}, apart)}, LEVIN_CALL(quantile(x0, 0.3)), 2),
           call("torch.quantile(x0, torch.tensor([0.1, 0.75], dtype=x0.dtype), dim=1)", {input({3, 5}, apart)},
                LEVIN_CALL(quantile(x0, tensor({0.1, 0.75}).to(x0.device()), 1)), 2),
           call("torch.quantile(x0, 0.6, dim=0, keepdim=True)", {input({4, 3}, apart)},
                LEVIN_CALL(quantile(x0, 0.6, 0, true)), 2),
           call("torch.quantile(x0, 0.4, interpolation='lower')", {input({4}, apart)},
                LEVIN_CALL(quantile(x0, 0.4, {}, false, QuantileMethod::lower))),
           call("torch.quantile(x0, 0.4, interpolation='higher')", {input({4}, apart)},
                LEVIN_CALL(quantile(x0, 0.4, {}, false, QuantileMethod::higher))),
           call("torch.quantile(x0, 0.4, interpolation='midpoint')", {input({4}, apart)},
                LEVIN_CALL(quantile(x0, 0.4, {}, false, QuantileMethod::midpoint))),
           call("torch.quantile(x0, 0.4, interpolation='nearest')", {input({4}, apart)},
                LEVIN_CALL(quantile(x0, 0.4, {}, false, QuantileMethod::nearest)))}),
      {{"[kthvalue] k is 5, but axis -1 of (3, 4) has 4 elements", [] { kthvalue(ones({3, 4}), 5); }},
       {"[median] axis 0 of (0,) is empty", [] { median(ones({0}), 0); }},
       {"[quantile] q has an element outside [0, 1]", [] { quantile(ones({3}), 1.5); }},
       {"[quantile] q is (1, 1)", [] {
          quantile(ones({3}), ones({1, 1}));
        }}});
}

OpCase scans() {
  return with_errors(
      of_products(composition(
          "composed_scans",
          {call("torch.cumprod(x0, 1)", {input({2, 4})}, LEVIN_CALL(cumprod(x0, 1)), 4),
           call("torch.cumprod(x0, 0)", {input({4, 2}, cycle({2, 0, -1.5, 0.5, 3}))}, LEVIN_CALL(cumprod(x0, 0)), 4),
           call("torch.logcumsumexp(x0, -1)", {input({2, 4})}, LEVIN_CALL(logcumsumexp(x0, -1)), 4),
           call("torch.cummax(x0, 1)", {input({2, 5}, distinct())}, LEVIN_CALL(cummax(x0, 1))),
           call("torch.cummin(x0, 0)", {input({5, 2}, distinct())}, LEVIN_CALL(cummin(x0, 0)))})),
      {{"[logcumsumexp] needs floating-point values", [] { logcumsumexp(ones({2}, kInt64), 0); }},
       {"[diff] n is -1", [] { diff(ones({2}), -1); }}});
}

OpCase ties() {
  const Values few = cycle({2, 1, 2, NAN, 1, 1, 3});
  const Values repeated = cycle({2, 1, 2, 1, 3, 3, 2});
  return without_gradient(
      composition("statistics_of_ties",
                  {call("torch.cummax(x0, 0)", {constant({7}, few)}, LEVIN_CALL(cummax(x0, 0))),
                   call("torch.cummin(x0, 0)", {constant({7}, few)}, LEVIN_CALL(cummin(x0, 0))),
                   call("torch.mode(x0)", {constant({7}, repeated)}, LEVIN_CALL(mode(x0))),
                   call("torch.mode(x0, 0, True)", {constant({5, 3}, repeated)}, LEVIN_CALL(mode(x0, 0, true))),
                   call("torch.median(x0)", {constant({0})}, LEVIN_CALL(median(x0))),
                   call("torch.mode(x0)", {constant({4}, cycle({NAN, 1, 1, NAN}))}, LEVIN_CALL(mode(x0))),
                   call("torch.mode(x0)", {constant({2}, cycle({NAN}))}, LEVIN_CALL(mode(x0))),
                   call("torch.median(x0, 0)", {constant({7}, few)}, LEVIN_CALL(median(x0, 0))),
                   call("torch.nansum(x0)", {constant({7}, few)}, LEVIN_CALL(nansum(x0)), 7),
                   call("torch.nanmean(x0)", {constant({7}, few)}, LEVIN_CALL(nanmean(x0)), 7),
                   call("torch.quantile(x0, 0.5)", {constant({7}, few)}, LEVIN_CALL(quantile(x0, 0.5)))}));
}

OpCase counts() {
  const Values repeated = cycle({2, 1, 2, 1, 3, 3, 2, 0});
  const InputSpec whole = index_input({9}, 5);
  return with_errors(
      without_gradient(composition(
          "counts",
          {call("torch.count_nonzero(x0)", {constant({3, 4}, repeated)}, LEVIN_CALL(count_nonzero(x0))),
           call("torch.count_nonzero(x0, 1)", {constant({3, 4}, repeated)}, LEVIN_CALL(count_nonzero(x0, 1))),
           fixed(call("torch.bincount(x1)", {constant({1}), whole}, LEVIN_CALL(bincount(x1)))),
           fixed(call("torch.bincount(x1, x0, 8)", {constant({9}), whole}, LEVIN_CALL(bincount(x1, x0, 8)), 9)),
           call("torch.histc(x0, 5)", {own(constant({20}))}, LEVIN_CALL(histc(x0, 5))),
           call("torch.histc(x0, 4, -1.0, 1.0)", {own(constant({20}))}, LEVIN_CALL(histc(x0, 4, -1.0, 1.0))),
           call("torch.searchsorted(torch.tensor([0.5, 1, 2, 2, 3], dtype=x0.dtype), x0)", {constant({3, 3}, repeated)},
                LEVIN_CALL(searchsorted(tensor({0.5, 1., 2., 2., 3.}).to(x0.device()), x0))),
           call("torch.searchsorted(torch.tensor([0.5, 1, 2, 2, 3], dtype=x0.dtype), x0, right=True)",
                {constant({3, 3}, repeated)},
                LEVIN_CALL(searchsorted(tensor({0.5, 1., 2., 2., 3.}).to(x0.device()), x0, true))),
           call("torch.bucketize(x0, torch.tensor([0.5, 2], dtype=x0.dtype))", {constant({4}, repeated)},
                LEVIN_CALL(bucketize(x0, tensor({0.5, 2.}).to(x0.device())))),
           call("torch.unique(x0, return_inverse=True, return_counts=True)", {constant({3, 4}, repeated)},
                LEVIN_CALL(parts(unique(x0)))),
           call("torch.unique_consecutive(x0, return_inverse=True, return_counts=True)",
                {constant({9}, cycle({1, 1, 2, 2, 2, 1, 3, 3}))}, LEVIN_CALL(parts(unique_consecutive(x0))))})),
      {{"[bincount] x has the negative number -1", [] { bincount(tensor<int64_t>({-1})); }},
       {"[bincount] needs a vector, x is (1, 1)", [] { bincount(ones({1, 1}, kInt64)); }},
       {"[bincount] weights is (2,), and x is (1,)", [] { bincount(ones({1}, kInt64), ones({2})); }},
       {"[histc] bins is 0", [] { histc(ones({2}), 0); }},
       {"[histc] the range [2, 1] is not a finite interval", [] { histc(ones({2}), 2, 2, 1); }},
       {"[bucketize] boundaries is (2, 2)", [] {
          bucketize(ones({2}), ones({2, 2}));
        }}});
}

}  // namespace

std::vector<OpCase> statistics_cases() {
  return {with_draws(moments(), moment_draws()), with_draws(order_statistics(), order_draws()),
          with_draws(scans(), scan_draws()), ties(), with_draws(counts(), count_draws())};
}

}  // namespace levin::test
