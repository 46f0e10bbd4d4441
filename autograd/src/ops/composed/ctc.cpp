// Connectionist temporal classification: a kernel for float32 on the CPU, else operations for each step.

#include "../../errors.h"
#include "../values.h"

#include <levin/autograd/engine.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/loss.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/loss.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace levin {

using namespace ops;

namespace {

struct CtcPlan {
  int64_t steps, batch, classes, longest;
  Tensor classes_of_states;  ///< (B, S') int64: blank, label, blank, ...; the blank after the last label
  Tensor may_skip;           ///< (B, S') bool: a label that differs from the one before the blank
  Tensor input_lengths, target_lengths;  ///< (B) int64
  int64_t shortest;                      ///< of the inputs
};

/// Spreads the targets of each sample with blanks between them.
CtcPlan ctc_plan(const Tensor& log_probabilities, const Tensor& targets, const std::vector<int64_t>& input_lengths,
                 const std::vector<int64_t>& target_lengths, int64_t blank) {
  CtcPlan p{.steps = log_probabilities.size(0),
            .batch = log_probabilities.size(1),
            .classes = log_probabilities.size(2),
            .longest = 0,
            .classes_of_states = {},
            .may_skip = {},
            .input_lengths = {},
            .target_lengths = {},
            .shortest = input_lengths.empty() ? 0 : *std::ranges::min_element(input_lengths)};
  const auto batch = static_cast<std::size_t>(p.batch);
  if (input_lengths.size() != batch || target_lengths.size() != batch)
    fail<ShapeError>("[ctc_loss] {} input and {} target lengths for a batch of {}.", input_lengths.size(),
                     target_lengths.size(), p.batch);
  if (blank < 0 || blank >= p.classes) fail<ValueError>("[ctc_loss] blank {} is outside [0, {}).", blank, p.classes);
  for (std::size_t b = 0; b < batch; ++b) {
    if (input_lengths[b] < 0 || input_lengths[b] > p.steps)
      fail<ValueError>("[ctc_loss] input length {} of sample {} is outside [0, {}].", input_lengths[b], b, p.steps);
    if (target_lengths[b] < 0 || (targets.dim() == 2 && target_lengths[b] > targets.size(1)))
      fail<ValueError>("[ctc_loss] target length {} of sample {} is outside of targets {}.", target_lengths[b], b,
                       targets.sizes());
    p.longest = std::max(p.longest, target_lengths[b]);
  }
  const int64_t total = std::accumulate(target_lengths.begin(), target_lengths.end(), int64_t{0});
  if (targets.dim() == 1 && targets.numel() != total)
    fail<ShapeError>("[ctc_loss] targets has {} elements, the lengths add up to {}.", targets.numel(), total);
  const std::vector<int64_t> labels = as_int64("ctc_loss", {"targets", targets}).to_vector<int64_t>();
  const int64_t states = 2 * p.longest + 1;
  std::vector<int64_t> of_states(static_cast<std::size_t>(p.batch * states), blank);
  std::vector<int64_t> skips(of_states.size(), 0);
  int64_t start = 0;
  for (std::size_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < target_lengths[b]; ++i) {
      const int64_t label = labels[static_cast<std::size_t>(start + i)];
      if (label < 0 || label >= p.classes || label == blank)
        fail<IndexError>("[ctc_loss] target {} of sample {} is not a class in [0, {}) other than blank {}.", label, b,
                         p.classes, blank);
      const std::size_t at = b * static_cast<std::size_t>(states) + static_cast<std::size_t>(2 * i + 1);
      of_states[at] = label;
      skips[at] = i > 0 && labels[static_cast<std::size_t>(start + i - 1)] != label;
    }
    start += targets.dim() == 2 ? targets.size(1) : target_lengths[b];
  }
  const Device device = log_probabilities.device();
  p.classes_of_states = from_data(of_states, {p.batch, states}).to(device);
  p.may_skip = ne(from_data(skips, {p.batch, states}), 0).to(device);
  p.input_lengths = from_data(input_lengths, {p.batch}).to(device);
  p.target_lengths = from_data(target_lengths, {p.batch}).to(device);
  return p;
}

/// log(sum of exponentials) of three tensors; a state that no path reaches keeps a very low, finite value.
Tensor log_sum(const Tensor& a, const Tensor& b, const Tensor& c) { return logsumexp(stack({a, b, c}, 0), 0); }

constexpr double kNever = -1e30;  // finite, so that no gradient is NaN; such paths add exp(-1e30) = 0

/// Returns the negative logarithm of each sample's probability, (B).
Tensor composed_paths(const Tensor& log_probabilities, const CtcPlan& p) {
  const Device device = log_probabilities.device();
  const int64_t states = 2 * p.longest + 1;
  const Tensor zero_states = zeros({p.batch, states}, like(log_probabilities));
  const Tensor first_two = lt(arange(states), 2).to(device), no_skip = logical_not(p.may_skip);
  // (T, B, S) log-probabilities of the states' classes; -inf becomes finite, so that no gradient is NaN.
  const std::vector<Tensor> emitted =
      unbind(clamp(gather(log_probabilities, 2, contiguous(expand(p.classes_of_states, {p.steps, p.batch, states}))),
                   2 * kNever),
             0);
  const Tensor lengths = unsqueeze(p.input_lengths, 1), ends = unsqueeze(p.target_lengths, 1);
  // Before the first step only the state before all labels is reached.
  Tensor alpha = where(eq(arange(states), 0).to(device), zero_states, kNever);
  for (int64_t t = 0; t < p.steps; ++t) {
    Tensor next;
    if (t == 0) {
      next = where(first_two, zero_states, kNever);
    } else {
      const Tensor shifted = pad(alpha, {2, 0}, kNever);  // by two states; the second view by one
      next = log_sum(alpha, narrow(shifted, 1, 1, states), masked_fill(narrow(shifted, 1, 0, states), no_skip, kNever));
    }
    next = add(next, emitted[static_cast<std::size_t>(t)]);
    alpha = t < p.shortest ? next : where(gt(lengths, t), next, alpha);
  }
  // A path ends at the last label or at the blank after it.
  const Tensor last = mul(ends, 2);
  const Tensor at_blank = gather(alpha, 1, last), at_label = gather(alpha, 1, clamp(sub(last, 1), 0));
  return neg(squeeze(where(eq(ends, 0), at_blank, logaddexp(at_blank, at_label)), 1));
}

Tensor fused_paths(const Tensor& log_probabilities, const CtcPlan& p) {
  const Tensor x = dense(log_probabilities), loss = empty({p.batch}, like(x));
  const Tensor dx = would_record({log_probabilities}) ? empty_like(x) : Tensor();
  launch(kernels::ctc, x.device(),
         {loss.tensor_view(), view_of(dx), x.tensor_view(), p.classes_of_states.tensor_view(), p.may_skip.tensor_view(),
          p.input_lengths.tensor_view(), p.target_lengths.tensor_view()});
  if (Context* c = record("ctc_loss", loss, {log_probabilities}, [](Context& k, const Tensor& g) -> Grads {
        if (!grad_enabled()) return {mul(k.saved(1), reshape(g, {1, g.numel(), 1}))};
        const Tensor again = view(k.saved(0), k.saved(0).sizes());  // so that a path from x to g does not count
        return {grad({composed_paths(again, k.get<CtcPlan>())}, {again}, {.create_graph = true}, {g})[0]};
      }))
    c->save(log_probabilities, dx).set(p);
  return loss;
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probabilities, const Tensor& targets, const std::vector<int64_t>& input_lengths,
                const std::vector<int64_t>& target_lengths, const CtcOptions& options) {
  check_floating("ctc_loss", log_probabilities, "log_probabilities");
  if (log_probabilities.dim() == 2) {
    const Tensor loss = ctc_loss(unsqueeze(log_probabilities, 1), reshape(targets, {1, targets.numel()}), input_lengths,
                                 target_lengths, options);
    return loss.dim() == 1 ? squeeze(loss, 0) : loss;
  }
  if (log_probabilities.dim() != 3)
    fail<ShapeError>("[ctc_loss] log_probabilities is {}, expected is (T, B, C) or (T, C).", log_probabilities.sizes());
  const CtcPlan p = ctc_plan(log_probabilities, targets, input_lengths, target_lengths, options.blank);
  const bool fused = kernels::ctc.has(log_probabilities.device().type) && log_probabilities.dtype() == kFloat32 &&
                     log_probabilities.numel() > 0 && !tracing();
  Tensor loss = fused ? fused_paths(log_probabilities, p) : composed_paths(log_probabilities, p);
  const Tensor impossible = gt(loss, -kNever / 2);
  loss = masked_fill(loss, impossible, options.zero_infinity ? 0.0 : std::numeric_limits<double>::infinity());
  if (options.reduction == Reduction::none) return loss;
  if (options.reduction == Reduction::sum) return sum(loss);
  return mean(div(loss, clamp(to(p.target_lengths, loss.dtype()), 1)));
}

}  // namespace levin
