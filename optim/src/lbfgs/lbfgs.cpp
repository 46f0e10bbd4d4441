#include <levin/optim/lbfgs.h>

#include "line_search.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/products.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/row_gradient.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace levin::optim {

namespace {

// Slots: the last step, the gradient before it, then pairs of a step and the change of the gradient over it.
constexpr std::size_t kLastStep = 0, kLastGradient = 1, kPairs = 2;

std::vector<std::string> slot_names(int64_t history_size) {
  std::vector<std::string> names = {"last_step", "prev_flat_grad"};
  for (int64_t i = 0; i < history_size; ++i) {
    names.push_back(fmt::format("old_stps.{}", i));
    names.push_back(fmt::format("old_dirs.{}", i));
  }
  return names;
}

double product(const Tensor& a, const Tensor& b) { return dot(a, b).item<double>(); }

}  // namespace

/// The history of a run; all vectors are flat, over all parameters.
struct LBFGS::Curvature {
  Tensor last_step, last_gradient;
  std::vector<std::pair<Tensor, Tensor>> pairs;  ///< (step, change of the gradient), the oldest first

  /// Returns the direction of descent by the two-loop recursion.
  Tensor direction(const Tensor& gradient) const {
    Tensor q = neg(gradient);
    std::vector<double> along(pairs.size());
    for (std::size_t i = pairs.size(); i-- > 0;) {
      const auto& [s, y] = pairs[i];
      along[i] = product(s, q) / product(y, s);
      q = sub(q, y, along[i]);
    }
    if (!pairs.empty()) {
      const auto& [s, y] = pairs.back();
      q = mul(q, product(y, s) / product(y, y));
    }
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const auto& [s, y] = pairs[i];
      q = add(q, s, along[i] - product(y, q) / product(y, s));
    }
    return q;
  }
};

LBFGS::LBFGS(const std::vector<Tensor>& params, const Options& o) : LBFGS(named(params), o) {}

LBFGS::LBFGS(std::vector<Parameter> params, const Options& o)
    : Optimizer("LBFGS", slot_names(o.history_size),
                {{"lr", o.lr},
                 {"max_iter", static_cast<double>(o.max_iter)},
                 {"max_eval", static_cast<double>(o.max_eval.value_or(o.max_iter * 5 / 4))},
                 {"tolerance_grad", o.tolerance_grad},
                 {"tolerance_change", o.tolerance_change},
                 {"history_size", static_cast<double>(o.history_size)},
                 {"strong_wolfe", o.line_search_fn == LineSearch::strong_wolfe ? 1.0 : 0.0},
                 {"capturable", 0.0}}) {
  add_param_groups(one_group(std::move(params)));
}

void LBFGS::check(const Settings& s) const {
  for (const char* name : {"lr", "tolerance_grad", "tolerance_change"}) require_range(s, name, 0, INFINITY);
  for (const char* name : {"max_iter", "max_eval", "history_size"}) require_range(s, name, 1, INFINITY);
  if (!param_groups().empty()) throw ValueError("[LBFGS] its parameters are one group; give all of them at once.");
}

void LBFGS::step_group(const ParamGroup&, const std::vector<const Parameter*>&) {
  throw StateError("[LBFGS] a step calls its closure several times; call step(closure).");
}

Tensor LBFGS::flat_gradient() const {
  std::vector<Tensor> parts;
  for (const Parameter& p : param_groups()[0].params) require_dense_grad("LBFGS", p);
  for (const Parameter& p : param_groups()[0].params)
    parts.push_back(p.grad().defined() ? reshape(p.grad().detach(), {-1}) : zeros({p.numel()}, like(p)));
  return cat(parts);
}

void LBFGS::move_parameters(const Tensor& by, double rate) const {
  int64_t start = 0;
  for (const Parameter& p : param_groups()[0].params) {
    p.detach().add_(reshape(narrow(by, 0, start, p.numel()), p.sizes()), rate);
    start += p.numel();
  }
}

Tensor LBFGS::flat_slot(std::size_t i) {
  std::vector<Tensor> parts;
  for (const Parameter& p : param_groups()[0].params) {
    const Tensor& t = state_of(p).slots[i];
    if (!t.defined()) return {};
    parts.push_back(reshape(t, {-1}));
  }
  return cat(parts);
}

void LBFGS::set_flat_slot(std::size_t i, const Tensor& values) {
  int64_t start = 0;
  for (const Parameter& p : param_groups()[0].params) {
    state_of(p).slots[i] =
        values.defined() ? reshape(narrow(values, 0, start, p.numel()), p.sizes()).contiguous().clone() : Tensor();
    start += p.numel();
  }
}

LBFGS::Curvature LBFGS::read_curvature() {
  Curvature c{flat_slot(kLastStep), flat_slot(kLastGradient), {}};
  const auto limit = static_cast<std::size_t>(param_groups()[0]["history_size"]);
  for (std::size_t i = 0; i < limit; ++i) {
    const Tensor s = flat_slot(kPairs + 2 * i);
    if (!s.defined()) break;
    c.pairs.emplace_back(s, flat_slot(kPairs + 2 * i + 1));
  }
  return c;
}

void LBFGS::write_curvature(const Curvature& c) {
  set_flat_slot(kLastStep, c.last_step);
  set_flat_slot(kLastGradient, c.last_gradient);
  for (std::size_t i = 0; i < c.pairs.size(); ++i) {
    set_flat_slot(kPairs + 2 * i, c.pairs[i].first);
    set_flat_slot(kPairs + 2 * i + 1, c.pairs[i].second);
  }
}

/// A place along a direction: the step that leads there, and the loss and its gradient there.
struct LBFGS::Point {
  double rate, loss;
  Tensor gradient;
};

LBFGS::Point LBFGS::search(const Closure& evaluate, const Tensor& direction, double rate, const Point& start,
                           int64_t& evaluations) const {
  std::vector<Tensor> before;
  for (const Parameter& p : param_groups()[0].params) before.push_back(p.detach().clone());
  std::vector<Tensor> gradients{start.gradient};
  const auto probe = [&](double at) {
    move_parameters(direction, at);
    const double loss = evaluate().item<double>();
    gradients.push_back(flat_gradient());
    for (std::size_t i = 0; i < before.size(); ++i) param_groups()[0].params[i].detach().copy_(before[i]);
    ++evaluations;
    return detail::Probe{at, loss, product(gradients.back(), direction), gradients.size() - 1};
  };
  const detail::Probe found =
      detail::strong_wolfe(probe, {0, start.loss, product(start.gradient, direction), 0}, rate,
                           amax(abs(direction)).item<double>(), param_groups()[0]["tolerance_change"]);
  return {found.rate, found.loss, gradients[found.number]};
}

Tensor LBFGS::step(const Closure& closure) {
  const Closure evaluate = [&] {
    enable_grad guard;
    return closure();
  };
  no_grad guard;
  const ParamGroup& group = param_groups()[0];
  const double lr = group["lr"], tolerance = group["tolerance_change"];
  const bool searches = group["strong_wolfe"] != 0;
  const auto iterations = static_cast<int64_t>(group["max_iter"]), calls = static_cast<int64_t>(group["max_eval"]);
  const Tensor first = evaluate();
  Point now{0, first.item<double>(), flat_gradient()};
  const auto is_flat = [&] { return amax(abs(now.gradient)).item<double>() <= group["tolerance_grad"]; };
  if (is_flat()) return first;
  Curvature c = read_curvature();
  int64_t evaluations = 1;
  for (int64_t i = 1; i <= iterations; ++i) {
    bool started = false;
    for (const Parameter& p : group.params) started = state_of(p).step++ > 0;
    if (c.last_step.defined()) {
      const Tensor change = sub(now.gradient, c.last_gradient);
      if (product(change, c.last_step) > 1e-10) {  // otherwise the curvature would not be positive
        if (c.pairs.size() == static_cast<std::size_t>(group["history_size"])) c.pairs.erase(c.pairs.begin());
        c.pairs.emplace_back(c.last_step, change);
      }
    }
    const Tensor direction = c.direction(now.gradient);
    c.last_gradient = now.gradient;
    const double before = now.loss, slope = product(now.gradient, direction);
    now.rate = started ? lr : std::min(1.0, 1.0 / sum(abs(now.gradient)).item<double>()) * lr;
    c.last_step = mul(direction, now.rate);
    if (slope > -tolerance) break;
    if (searches) {
      now = search(evaluate, direction, now.rate, now, evaluations);
      c.last_step = mul(direction, now.rate);
    }
    move_parameters(direction, now.rate);
    if (i == iterations) break;
    if (!searches) {
      now.loss = evaluate().item<double>();
      now.gradient = flat_gradient();
      ++evaluations;
    }
    if (evaluations >= calls || is_flat() || amax(abs(c.last_step)).item<double>() <= tolerance ||
        std::abs(now.loss - before) < tolerance)
      break;
  }
  write_curvature(c);
  return first;
}

}  // namespace levin::optim
