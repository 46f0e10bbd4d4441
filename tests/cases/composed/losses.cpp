#include "cases/cases.h"
#include "cases/composed/draws.h"

#include <string>

namespace levin::test {

namespace {

const Values kProbability = uniform(0.05, 0.95), kAboveZero = uniform(0.3, 3);
const Values kSigns = cycle({1, -1, -1, 1, 1});
/// Pairs whose differences stay away from 0 and from `kink`.
const Values kLeft = distinct(0.31), kRight = cycle({0.11, -0.17, 0.23});

std::vector<Sample> reductions(const std::string& torch, const std::vector<InputSpec>& inputs,
                               Tensor (*loss)(const Tensors&, Reduction)) {
  std::vector<Sample> samples;
  int64_t elements = 1;
  for (const InputSpec& i : inputs) elements = std::max(elements, i.sizes.numel());
  for (const auto& [r, name] :
       {std::pair{Reduction::mean, "mean"}, {Reduction::sum, "sum"}, {Reduction::none, "none"}}) {
    Call c;
    c.op = [loss, r = r](const Tensors& x) -> Tensors { return {loss(x, r)}; };
    c.code = torch + " in C++";
    std::string expression = torch;
    expression.replace(expression.find("$"), 1, "reduction='" + std::string(name) + "'");
    samples.push_back(call(expression, inputs, c, elements));
  }
  return samples;
}

#define LEVIN_LOSS(expression) [](const Tensors& x, Reduction r) -> Tensor { return expression; }

OpCase loss_case(const std::string& name, std::vector<std::vector<Sample>> groups) {
  std::vector<Sample> all;
  for (auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  OpCase c = composition(name, all);
  c.tolerance = {.ulps = 4, .scale = 4};
  return c;
}

OpCase regression() {
  return with_errors(
      loss_case(
          "regression_losses",
          {reductions("F.smooth_l1_loss(x0, x1, $)", {input({3, 4}, kLeft), input({3, 4}, kRight)},
                      LEVIN_LOSS(smooth_l1_loss(x[0], x[1], r))),
           reductions("F.smooth_l1_loss(x0, x1, beta=0.5, $)", {input({7}, kLeft), input({7}, kRight)},
                      LEVIN_LOSS(smooth_l1_loss(x[0], x[1], r, 0.5))),
           reductions("F.smooth_l1_loss(x0, x1, beta=0.0, $)", {input({7}, kLeft), input({7}, kRight)},
                      LEVIN_LOSS(smooth_l1_loss(x[0], x[1], r, 0.0))),
           reductions("F.huber_loss(x0, x1, delta=0.7, $)", {input({3, 4}, kLeft), input({3, 4}, kRight)},
                      LEVIN_LOSS(huber_loss(x[0], x[1], r, 0.7))),
           reductions("F.poisson_nll_loss(x0, x1, $)", {input({2, 3}), constant({2, 3}, kAboveZero)},
                      LEVIN_LOSS(poisson_nll_loss(x[0], x[1], {.reduction = r}))),
           reductions("F.poisson_nll_loss(x0, x1, log_input=False, full=True, $)",
                      {input({2, 3}, kAboveZero), constant({2, 3}, cycle({0, 1, 2, 3.5, 0.5}))},
                      LEVIN_LOSS(poisson_nll_loss(x[0], x[1], {.log_input = false, .full = true, .reduction = r}))),
           reductions("F.gaussian_nll_loss(x0, x1, x2, $)",
                      {input({2, 3}), input({2, 3}), own(input({2, 3}, kAboveZero))},
                      LEVIN_LOSS(gaussian_nll_loss(x[0], x[1], x[2], {.reduction = r}))),
           reductions("F.gaussian_nll_loss(x0, x1, x2, full=True, eps=0.1, $)",
                      {input({2, 3}), input({2, 3}), own(input({2}, kAboveZero))},
                      LEVIN_LOSS(gaussian_nll_loss(x[0], x[1], x[2], {.full = true, .eps = 0.1, .reduction = r}))),
           reductions("F.gaussian_nll_loss(x0, x1, x2, eps=1.0, $)",
                      {input({2, 3}), input({2, 3}), own(constant({2, 1}, uniform(0.1, 0.9)))},
                      LEVIN_LOSS(gaussian_nll_loss(x[0], x[1], x[2], {.eps = 1.0, .reduction = r})))}),
      {{"[smooth_l1_loss] beta is -1", [] { smooth_l1_loss(ones({2}), ones({2}), Reduction::mean, -1); }},
       {"[huber_loss] delta is 0", [] { huber_loss(ones({2}), ones({2}), Reduction::mean, 0); }},
       {"[gaussian_nll_loss] var has a negative element",
        [] { gaussian_nll_loss(ones({2}), ones({2}), full({2}, -1.0)); }},
       {"[gaussian_nll_loss] var is (3,), but input of (2, 3) needs its sizes, (2, 1) or (2,)", [] {
          gaussian_nll_loss(ones({2, 3}), ones({2, 3}), ones({3}));
        }}});
}

OpCase classification() {
  const InputSpec labels = index_input({3}, 4);
  return with_errors(
      loss_case("classification_losses",
                {reductions("F.binary_cross_entropy(x0, x1, $)",
                            {own(input({2, 3}, kProbability)), own(constant({2, 3}, uniform(0, 1)))},
                            LEVIN_LOSS(binary_cross_entropy(x[0], x[1], {}, r))),
                 reductions("F.binary_cross_entropy(x0, x1, weight=x2, $)",
                            {own(input({2, 3}, kProbability)), own(constant({2, 3}, uniform(0, 1))),
                             constant({3}, kAboveZero)},
                            LEVIN_LOSS(binary_cross_entropy(x[0], x[1], x[2], r))),
                 reductions("F.kl_div(x0, x1, $)", {input({2, 3}, uniform(-3, -0.1)), input({2, 3}, kProbability)},
                            LEVIN_LOSS(kl_div(x[0], x[1], {.reduction = r}))),
                 reductions("F.kl_div(x0, x1, log_target=True, $)",
                            {input({2, 3}, uniform(-3, -0.1)), input({2, 3}, uniform(-3, -0.1))},
                            LEVIN_LOSS(kl_div(x[0], x[1], {.reduction = r, .log_target = true}))),
                 {call("F.kl_div(x0, x1, reduction='batchmean')",
                       {input({2, 3}, uniform(-3, -0.1)), input({2, 3}, kProbability)},
                       LEVIN_CALL(kl_div(x0, x1, {.batchmean = true})), 6)},
                 reductions("F.soft_margin_loss(x0, x1, $)", {input({2, 3}), constant({2, 3}, kSigns)},
                            LEVIN_LOSS(soft_margin_loss(x[0], x[1], r))),
                 reductions("F.multilabel_soft_margin_loss(x0, x1, x2, $)",
                            {input({2, 3}), constant({2, 3}, cycle({0, 1, 1})), constant({3}, kAboveZero)},
                            LEVIN_LOSS(multilabel_soft_margin_loss(x[0], x[1], x[2], r))),
                 reductions("F.multilabel_margin_loss(x0, x1, $)",
                            {input({3, 4}, distinct(0.37)),
                             {.sizes = {3, 4},
                              .values = cycle({2, 0, -1, 1, 3, -1, 0, 0, 0, 1, 2, 3}),
                              .dtype = kInt64,
                              .differentiable = false,
                              .rearrange = false}},
                            LEVIN_LOSS(multilabel_margin_loss(x[0], x[1], r))),
                 reductions("F.multi_margin_loss(x0, x1, $)", {input({3, 4}, distinct(0.37)), labels},
                            LEVIN_LOSS(multi_margin_loss(x[0], x[1], {.reduction = r}))),
                 reductions("F.multi_margin_loss(x0, x1, p=2, margin=0.6, weight=x2, $)",
                            {input({3, 4}, distinct(0.37)), labels, constant({4}, kAboveZero)},
                            LEVIN_LOSS(multi_margin_loss(x[0], x[1],
                                                         {.p = 2, .margin = 0.6, .weight = x[2], .reduction = r})))}),
      {{"[binary_cross_entropy] input is (2,), and target is (3,)", [] { binary_cross_entropy(ones({2}), ones({3})); }},
       {"[multilabel_margin_loss] y is (2,), and x is (2, 3)",
        [] { multilabel_margin_loss(ones({2, 3}), zeros({2}, kInt64)); }},
       {"[multilabel_margin_loss] x is (2, 3, 4)",
        [] { multilabel_margin_loss(ones({2, 3, 4}), zeros({2, 3, 4}, kInt64)); }},
       {"[multi_margin_loss] p is 3", [] { multi_margin_loss(ones({2, 3}), zeros({2}, kInt64), {.p = 3}); }},
       {"[multi_margin_loss] y is (3,), expected is (2,)", [] { multi_margin_loss(ones({2, 3}), zeros({3}, kInt64)); }},
       {"[multi_margin_loss] x is (2, 3, 4)", [] {
          multi_margin_loss(ones({2, 3, 4}), zeros({2}, kInt64));
        }}});
}

OpCase ranking() {
  const InputSpec sign = constant({4}, kSigns);
  OpCase c = loss_case(
      "ranking_losses",
      {reductions("F.margin_ranking_loss(x0, x1, x2, margin=0.3, $)", {input({4}, kLeft), input({4}, kRight), sign},
                  LEVIN_LOSS(margin_ranking_loss(x[0], x[1], x[2], 0.3, r))),
       reductions("F.hinge_embedding_loss(x0, x1, $)", {input({4}, distinct(0.4)), sign},
                  LEVIN_LOSS(hinge_embedding_loss(x[0], x[1], 1.0, r))),
       reductions("F.cosine_embedding_loss(x0, x1, x2, margin=0.1, $)", {input({4, 3}), input({4, 3}), sign},
                  LEVIN_LOSS(cosine_embedding_loss(x[0], x[1], x[2], 0.1, r))),
       reductions("F.triplet_margin_loss(x0, x1, x2, $)", {input({3, 4}), input({3, 4}), input({3, 4})},
                  LEVIN_LOSS(triplet_margin_loss(x[0], x[1], x[2], {.reduction = r}))),
       reductions(
           "F.triplet_margin_loss(x0, x1, x2, margin=2.0, p=3.0, swap=True, $)",
           {input({3, 4}, kAboveZero), input({3, 4}), input({3, 4})},
           LEVIN_LOSS(triplet_margin_loss(x[0], x[1], x[2], {.margin = 2.0, .p = 3.0, .swap = true, .reduction = r}))),
       {call("F.cosine_similarity(x0, x1)", {input({3, 4}), input({3, 4})}, LEVIN_CALL(cosine_similarity(x0, x1)), 4),
        call("F.cosine_similarity(x0, x1, dim=0)", {input({3, 2}), input({3, 1})},
             LEVIN_CALL(cosine_similarity(x0, x1, 0)), 4),
        call("F.pairwise_distance(x0, x1)", {input({3, 4}), input({3, 4})}, LEVIN_CALL(pairwise_distance(x0, x1)), 4),
        call("F.pairwise_distance(x0, x1, p=1.0, keepdim=True)", {input({3, 4}, kLeft), input({4}, kRight)},
             LEVIN_CALL(pairwise_distance(x0, x1, 1.0, 1e-6, true)), 4)}});
  c.grad_tolerance = {.ulps = 64, .scale = 16};
  return with_errors(c, {{"[cosine_embedding_loss] x1 is (2, 3), and x2 is (2, 2)", [] {
                            cosine_embedding_loss(ones({2, 3}), ones({2, 2}), ones({2}));
                          }}});
}

OpCase ctc() {
  // Of log_softmax, since PyTorch's gradient leaves out what vanishes behind it.
  const InputSpec logs = input({5, 2, 4}, uniform(-3, -0.2));
  InputSpec padded = index_input({2, 3}, 4);
  padded.values = cycle({1, 1, 2, 3, 1, 2});
  padded.rearrange = false;
  InputSpec joined = padded;
  joined.sizes = {4};
  const std::string lengths = "torch.tensor([5, 4]), torch.tensor([3, 1])";
  OpCase c = loss_case(
      "ctc_loss",
      {reductions("F.ctc_loss(x0.log_softmax(2), x1, " + lengths + ", $)", {logs, padded},
                  LEVIN_LOSS(ctc_loss(log_softmax(x[0], 2), x[1], {5, 4}, {3, 1}, {.reduction = r}))),
       reductions("F.ctc_loss(x0.log_softmax(2), x1, " + lengths + ", $)", {logs, joined},
                  LEVIN_LOSS(ctc_loss(log_softmax(x[0], 2), x[1], {5, 4}, {3, 1}, {.reduction = r}))),
       reductions(
           "F.ctc_loss(x0.log_softmax(2), x1, torch.tensor([5, 3]), torch.tensor([0, 3]), zero_infinity=True, $)",
           {logs, padded},
           LEVIN_LOSS(ctc_loss(log_softmax(x[0], 2), x[1], {5, 3}, {0, 3}, {.reduction = r, .zero_infinity = true})))});
  c.tolerance = {.ulps = 32, .scale = 16};
  c.grad_tolerance = {.ulps = 128, .scale = 32};
  return with_errors(c, {{"[ctc_loss] 1 input and 1 target lengths for a batch of 2",
                          [] {
                            ctc_loss(zeros({3, 2, 4}), ones({2, 1}, kInt64), {3}, {1});
                          }},
                         {"[ctc_loss] input length 4 of sample 0 is outside [0, 3]",
                          [] {
                            ctc_loss(zeros({3, 1, 4}), ones({1, 1}, kInt64), {4}, {1});
                          }},
                         {"[ctc_loss] target 0 of sample 0 is not a class in [0, 4) other than blank 0",
                          [] {
                            ctc_loss(zeros({3, 1, 4}), zeros({1, 1}, kInt64), {3}, {1});
                          }},
                         {"[ctc_loss] blank 4 is outside [0, 4)",
                          [] {
                            ctc_loss(zeros({3, 1, 4}), ones({1, 1}, kInt64), {3}, {1}, {.blank = 4});
                          }},
                         {"[ctc_loss] targets has 3 elements, the lengths add up to 1", [] {
                            ctc_loss(zeros({3, 1, 4}), ones({3}, kInt64), {3}, {1});
                          }}});
}

}  // namespace

std::vector<OpCase> composed_loss_cases() {
  return {regression(), with_draws(classification(), margin_loss_draws()), ranking(), ctc()};
}

}  // namespace levin::test
