#include "cases/cases.h"

#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace levin::test {

namespace {

using Line = std::vector<double>;

/// Losses per sample, and the divisor of `mean`.
struct Losses {
  Line values;
  Shape sizes;
  double norm = 0.0;
};

Tensor reduced(const Losses& l, Reduction r) {
  if (r == Reduction::none) return from_data(l.values, l.sizes);
  double sum = 0.0;
  for (const double v : l.values) sum += v;
  return from_data({r == Reduction::mean ? sum / l.norm : sum}, {});
}

const char* name_of(Reduction r) { return r == Reduction::none ? "none" : r == Reduction::mean ? "mean" : "sum"; }

/// Returns how many of n losses accumulate their errors in one result; a mean divides the error by n again.
int64_t added_up(Reduction r, int64_t n) { return r == Reduction::sum ? std::max<int64_t>(1, n) : 1; }

/// Returns the losses of x (B, C, ...), computing -log_softmax unless x holds log-probabilities.
Losses class_losses(const Tensors& in, bool weighted, int64_t ignore_index, double smoothing, bool logits) {
  const Tensor& x = in[0];
  const int64_t classes = x.size(1), spatial = x.numel() / std::max<int64_t>(1, x.size(0) * classes);
  const Line v = x.to_vector<double>(), t = in[1].to_vector<double>();
  const Line w = weighted ? in[2].to_vector<double>() : Line(static_cast<std::size_t>(classes), 1.0);
  const bool labels = in[1].dim() < x.dim();
  Losses l;
  l.sizes = x.sizes();
  l.sizes.erase(1);
  for (int64_t i = 0; i < l.sizes.numel(); ++i) {
    const auto at = [&](int64_t c) {
      return static_cast<std::size_t>((i / spatial * classes + c) * spatial + i % spatial);
    };
    double log_sum = 0.0, loss = 0.0, top = -std::numeric_limits<double>::infinity();
    for (int64_t c = 0; logits && c < classes; ++c) top = std::max(top, v[at(c)]);
    for (int64_t c = 0; logits && c < classes; ++c) log_sum += std::exp(v[at(c)] - top);
    log_sum = logits ? std::log(log_sum) : 0.0;
    if (!logits) top = 0.0;
    const int64_t label = labels ? static_cast<int64_t>(t[static_cast<std::size_t>(i)]) : -1;
    if (labels && label == ignore_index) {
      l.values.push_back(0.0);
      continue;
    }
    for (int64_t c = 0; c < classes; ++c) {
      const double below = (top - v[at(c)]) + log_sum, weight = w[static_cast<std::size_t>(c)];
      const double spread = smoothing / static_cast<double>(classes);
      if (!labels) loss += (t[at(c)] * (1 - smoothing) + spread) * weight * below;
      if (labels && c == label) loss += (1 - smoothing) * weight * below;  // in two parts, as in PyTorch
      if (labels && smoothing != 0) loss += spread * weight * below;
    }
    l.values.push_back(loss);
    l.norm += labels ? w[static_cast<std::size_t>(label)] : 1.0;
  }
  return l;
}

struct ClassForm {
  Shape sizes;
  bool weighted = false;
  int64_t ignore_index = -100;
  double smoothing = 0.0;
  Reduction reduction = Reduction::mean;
  bool probabilities = false;
};

InputSpec weights(const Shape& sizes) {
  return {.sizes = sizes, .values = uniform(0.5, 2), .differentiable = false, .factor = true};
}

InputSpec target_of(const ClassForm& f) {
  Shape sizes = f.sizes;
  if (f.probabilities) return {.sizes = sizes, .values = uniform(0.05, 1), .finite = true};  // a probability
  const int64_t classes = sizes[1];
  sizes.erase(1);
  return index_input(sizes, classes);
}

Sample class_sample(const ClassForm& f, bool logits) {
  Sample s{.inputs = {{.sizes = f.sizes, .values = uniform(-3, 3)}, target_of(f)}};
  if (f.weighted) s.inputs.push_back(weights({f.sizes[1]}));
  // Probabilities times logarithms are summed over the classes; the sum of exponentials has a relative error of its
  // own.
  const int64_t classes = f.probabilities ? f.sizes[1] : 1;
  s.terms = classes * added_up(f.reduction, f.sizes.numel() / f.sizes[1]);
  s.grad_terms = classes;
  s.label =
      fmt::format("{}{}{}{}, {}", f.probabilities ? "probabilities" : "labels", f.weighted ? ", weights" : "",
                  f.ignore_index >= 0 ? ", ignoring" : "", f.smoothing > 0 ? ", smoothed" : "", name_of(f.reduction));
  s.op = [=](const Tensors& x) -> Tensors {
    const Tensor weight = f.weighted ? x[2] : Tensor();
    if (!logits)
      return {nll_loss(x[0], x[1], {.weight = weight, .ignore_index = f.ignore_index, .reduction = f.reduction})};
    return {cross_entropy(
        x[0], x[1],
        {.weight = weight, .ignore_index = f.ignore_index, .reduction = f.reduction, .label_smoothing = f.smoothing})};
  };
  s.reference = [=](const Tensors& x) -> Tensors {
    return {reduced(class_losses(x, f.weighted, f.ignore_index, f.smoothing, logits), f.reduction)};
  };
  s.torch = fmt::format("F.{}(x0, x1, {}ignore_index={}, reduction='{}'{})", logits ? "cross_entropy" : "nll_loss",
                        f.weighted ? "weight=x2, " : "", f.ignore_index, name_of(f.reduction),
                        logits ? fmt::format(", label_smoothing={}", f.smoothing) : "");
  return s;
}

/// Replaces a batch of one, (1, C), by (C) with a target () or (C).
Sample single_sample(Sample s) {
  for (const std::size_t i : {0u, 1u}) s.inputs[i].sizes.erase(0);
  s.label += ", unbatched";
  s.torch = "-";
  s.reference = [batched = s.reference](const Tensors& in) -> Tensors {
    Tensors with_batch = in;
    for (const std::size_t i : {0u, 1u}) with_batch[i] = in[i].unsqueeze(0);
    return {batched(with_batch)[0].reshape({})};
  };
  return s;
}

Sample with_int32_labels(Sample s) {
  s.inputs[1].dtype = DType::i32;
  s.label += ", int32";
  s.torch = "-";
  return s;
}

Sample random_classes(Draw& d, bool logits) {
  ClassForm f{.sizes = {d.size(8), d.size(12, false)}};
  for (const int64_t n : d.shape(0, 2, 12)) f.sizes.push_back(n);
  f.reduction = d.of(std::array{Reduction::mean, Reduction::sum, Reduction::none});
  f.weighted = d.chance(40);
  if (logits && d.chance(30)) f.smoothing = 0.1 * static_cast<double>(d.between(1, 10));
  f.probabilities = logits && d.chance(30);
  if (!f.probabilities && d.chance(40)) f.ignore_index = d.below(f.sizes[1]);
  return class_sample(f, logits);
}

OpCase class_case(bool logits) {
  OpCase c{.name = logits ? "cross_entropy" : "nll_loss"};
  const auto add = [&](const ClassForm& f) { c.samples.push_back(class_sample(f, logits)); };
  add({{5, 7}});
  add({.sizes = {5, 7}, .reduction = Reduction::sum});
  add({.sizes = {5, 7}, .reduction = Reduction::none});
  add({.sizes = {4, 6}, .weighted = true});
  add({.sizes = {8, 3}, .ignore_index = 1});
  add({.sizes = {8, 3}, .weighted = true, .ignore_index = 0, .reduction = Reduction::none});
  add({{2, 4, 5}});
  add({.sizes = {2, 3, 2, 3}, .weighted = true, .ignore_index = 2});
  add({{3, 131}});
  add({.sizes = {0, 3}, .reduction = Reduction::sum});
  if (logits) {
    add({.sizes = {5, 7}, .smoothing = 0.2});
    add({.sizes = {6, 4}, .weighted = true, .ignore_index = 3, .smoothing = 0.1});
    add({.sizes = {2, 4, 3}, .smoothing = 0.3, .reduction = Reduction::none});
    add({.sizes = {4, 5}, .probabilities = true});
    add({.sizes = {4, 5}, .weighted = true, .smoothing = 0.1, .reduction = Reduction::sum, .probabilities = true});
    add({.sizes = {2, 3, 4}, .weighted = true, .reduction = Reduction::none, .probabilities = true});
  }
  c.samples.push_back(single_sample(class_sample({{1, 5}}, logits)));
  c.samples.push_back(
      single_sample(class_sample({.sizes = {1, 5}, .weighted = true, .reduction = Reduction::none}, logits)));
  c.samples.push_back(with_int32_labels(class_sample({.sizes = {2, 3, 4}, .weighted = true}, logits)));
  if (logits)
    c.samples.push_back(
        single_sample(class_sample({.sizes = {1, 5}, .smoothing = 0.1, .probabilities = true}, logits)));
  c.draw = [logits](Draw& d) { return random_classes(d, logits); };
  c.large = {class_sample({{9000, 11}}, logits), class_sample({{300, 517}}, logits),
             class_sample({{7, 5, 40, 33}}, logits)};
  c.limits = {class_sample({{2048, 8}}, logits), class_sample({{2049, 8}}, logits)};  // a task has 16,384 elements
  c.op = c.samples[0].op;
  c.torch = c.samples[0].torch;
  c.layouts = {Layout::contiguous, Layout::transposed, Layout::sliced};
  c.tolerance = {.ulps = 4, .scale = 1};
  c.grad_tolerance = {.ulps = 16, .scale = 1};
  c.bench = {class_sample({{128, 10}}, logits), class_sample({{4096, 1024}}, logits)};
  const std::string tag = logits ? "[cross_entropy]" : "[nll_loss]", name = logits ? "logits" : "log_probabilities";
  const auto call = [=](const Tensor& x, const Tensor& t) { logits ? cross_entropy(x, t) : nll_loss(x, t); };
  c.errors = {{tag + " target 12 at position 7 is outside [0, 10)",
               [=] {
                 call(ones({8, 10}), tensor<int64_t>({0, 1, 2, 3, 4, 5, 6, 12}));
               }},
              {tag + " target -1 at position 0",
               [=] {
                 call(ones({1, 10}), tensor<int64_t>({-1}));
               }},
              {tag + " target is (4,), expected (5,) for " + name + " of (5, 3)",
               [=] {
                 call(ones({5, 3}), zeros({4}, {.dtype = kInt64}));
               }},
              {tag + " target is (1,), expected () for " + name + " of (3,)",
               [=] {
                 call(ones({3}), zeros({1}, {.dtype = kInt64}));
               }},
              {tag + " target is float32; int32 or int64 is needed",
               [=] {
                 call(ones({5, 3}), zeros({5}));
               }},
              {tag + " needs floating-point values, " + name + " is int64", [=] {
                 call(ones({5, 3}, {.dtype = kInt64}), zeros({5}, {.dtype = kInt64}));
               }}};
  if (logits) {
    c.dtypes = kFloatTypes;
    c.grad_dtypes = kRoundedFloats;
    c.errors.push_back({"label_smoothing is 1.5", [] {
                          cross_entropy(ones({2, 3}), zeros({2}, {.dtype = kInt64}), {.label_smoothing = 1.5});
                        }});
    c.errors.push_back({"[cross_entropy] weight is (2,), but 3 classes need (3,)", [] {
                          cross_entropy(ones({2, 3}), zeros({2}, {.dtype = kInt64}), {.weight = ones({2})});
                        }});
    c.errors.push_back({"[cross_entropy] logits is float32, weight is float64", [] {
                          cross_entropy(ones({2, 3}), zeros({2}, {.dtype = kInt64}),
                                        {.weight = ones({3}, {.dtype = kFloat64})});
                        }});
  }
  return c;
}

/// Losses f(x, t) of pairs, with inputs whose differences stay away from 0.
OpCase pair_case(const char* name, Tensor (*op)(const Tensor&, const Tensor&, Reduction), double (*f)(double, double)) {
  OpCase c{.name = name};
  const auto make = [=](const Shape& sizes, Reduction r) {
    Sample s{.inputs = {{.sizes = sizes, .values = uniform(0.2, 2)}, {.sizes = sizes, .values = uniform(-2, -0.2)}}};
    s.terms = added_up(r, sizes.numel());
    s.grad_terms = 1;
    s.label = name_of(r);
    s.op = [=](const Tensors& x) -> Tensors { return {op(x[0], x[1], r)}; };
    s.reference = [=](const Tensors& x) -> Tensors {
      const Line a = x[0].to_vector<double>(), b = x[1].to_vector<double>();
      Losses l{{}, x[0].sizes(), static_cast<double>(a.size())};
      for (std::size_t i = 0; i < a.size(); ++i) l.values.push_back(f(a[i], b[i]));
      return {reduced(l, r)};
    };
    s.torch = fmt::format("F.{}(x0, x1, reduction='{}')", name, name_of(r));
    s.code = fmt::format("{}(x0, x1, Reduction::{})", name, name_of(r));
    return s;
  };
  const std::array reductions{Reduction::mean, Reduction::sum, Reduction::none};
  for (const Shape& sizes : {Shape{}, {1}, {31}, {5, 6}, {2, 3, 5}})
    for (const Reduction r : reductions) c.samples.push_back(make(sizes, r));
  c.draw = [=](Draw& d) { return make(d.shape(), d.of(reductions)); };
  c.op = c.samples[0].op;
  c.torch = c.samples[0].torch;
  c.tolerance = {.ulps = 4, .scale = 1};
  return c;
}

double softplus_of(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

struct BceForm {
  Shape sizes;
  Reduction reduction = Reduction::mean;
  bool weighted = false, positive = false;
  std::optional<double> number{};
};

Sample bce_sample(const BceForm& f) {
  Sample s{.inputs = {{.sizes = f.sizes, .values = uniform(-6, 6)}}};
  if (!f.number) s.inputs.push_back({.sizes = f.sizes, .values = uniform(0, 1), .finite = true});  // a probability
  if (f.weighted) s.inputs.push_back(weights(f.sizes));
  if (f.positive) s.inputs.push_back(weights({f.sizes.back()}));
  s.terms = added_up(f.reduction, f.sizes.numel());
  s.grad_terms = 1;
  s.label = fmt::format("{}{}{}{}", name_of(f.reduction), f.weighted ? ", weight" : "",
                        f.positive ? ", pos_weight" : "", f.number ? ", number" : "");
  s.op = [=](const Tensors& x) -> Tensors {
    BceOptions o{.reduction = f.reduction};
    if (f.weighted) o.weight = x[f.number ? 1 : 2];
    if (f.positive) o.pos_weight = x.back();
    return {f.number ? bce_with_logits(x[0], *f.number, o) : bce_with_logits(x[0], x[1], o)};
  };
  s.reference = [=](const Tensors& x) -> Tensors {
    const Line v = x[0].to_vector<double>(), p = f.positive ? x.back().to_vector<double>() : Line{1.0};
    const Line targets = f.number ? Line(v.size(), *f.number) : x[1].to_vector<double>();
    const Line weights = f.weighted ? x[f.number ? 1 : 2].to_vector<double>() : Line(v.size(), 1.0);
    Losses l{{}, f.sizes, static_cast<double>(v.size())};
    for (std::size_t i = 0; i < v.size(); ++i) {
      const double t = targets[i], w = weights[i];
      l.values.push_back(w * (t * p[i % p.size()] * softplus_of(-v[i]) + (1 - t) * softplus_of(v[i])));
    }
    return {reduced(l, f.reduction)};
  };
  s.torch = fmt::format("F.binary_cross_entropy_with_logits(x0, {}, weight={}, pos_weight={}, reduction='{}')",
                        f.number ? fmt::format("torch.full_like(x0, {})", *f.number) : "x1",
                        !f.weighted ? "None"
                        : f.number  ? "x1"
                                    : "x2",
                        !f.positive ? "None" : fmt::format("x{}", s.inputs.size() - 1), name_of(f.reduction));
  return s;
}

Sample random_bce(Draw& d) {
  BceForm f{.sizes = d.shape()};
  f.reduction = d.of(std::array{Reduction::mean, Reduction::sum, Reduction::none});
  f.weighted = d.chance(30);
  f.positive = !f.sizes.empty() && d.chance(30);
  if (d.chance(25)) f.number = 0.25 * static_cast<double>(d.below(5));
  return bce_sample(f);
}

OpCase bce_case() {
  OpCase c{.name = "bce_with_logits"};
  for (const BceForm& f : std::vector<BceForm>{{{31}},
                                               {{5, 6}, Reduction::sum},
                                               {{2, 3, 5}, Reduction::none},
                                               {{}},
                                               {.sizes = {33}, .number = 1.0},
                                               {.sizes = {5, 1}, .number = 0.0},
                                               {{4, 3}, Reduction::sum, false, false, 0.9},
                                               {{4, 3}, Reduction::none, false, false, 0.25},
                                               {{4, 5}, Reduction::mean, true, false},
                                               {{4, 5}, Reduction::none, false, true},
                                               {{4, 5}, Reduction::sum, true, true},
                                               {{4, 5}, Reduction::mean, true, true, 0.75},
                                               {{0, 3}, Reduction::sum}})
    c.samples.push_back(bce_sample(f));
  c.draw = random_bce;
  c.large = {bce_sample({{100003}}), bce_sample({.sizes = {100003}, .number = 1.0}),
             bce_sample({.sizes = {100003}, .reduction = Reduction::none})};
  c.limits = {bce_sample({{16384}}), bce_sample({{16385}})};  // a task has 16,384 elements
  c.op = c.samples[0].op;
  c.torch = c.samples[0].torch;
  c.dtypes = kFloatTypes;
  c.grad_dtypes = kRoundedFloats;
  c.tolerance = {.ulps = 8, .scale = 1};
  c.errors = {{"[bce_with_logits] target is (3,), logits are (4,)", [] { bce_with_logits(ones({4}), ones({3})); }},
              {"[bce_with_logits] needs floating-point values",
               [] { bce_with_logits(ones({4}, {.dtype = kInt64}), ones({4})); }}};
  return c;
}

Tensor mse(const Tensor& a, const Tensor& b, Reduction r) { return mse_loss(a, b, r); }
Tensor l1(const Tensor& a, const Tensor& b, Reduction r) { return l1_loss(a, b, r); }

}  // namespace

std::vector<OpCase> loss_cases() {
  return {class_case(true), class_case(false),
          pair_case("mse_loss", mse, [](double a, double b) { return (a - b) * (a - b); }),
          pair_case("l1_loss", l1, [](double a, double b) { return std::abs(a - b); }), bce_case()};
}

}  // namespace levin::test
