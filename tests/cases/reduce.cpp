#include "cases/cases.h"

#include <levin/autograd/ops.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace levin::test {

namespace {

using Line = std::vector<double>;
using ReduceFn = std::function<double(const Line&)>;
/// The operation under test with its axes.
using AxesOp = std::function<Tensor(const Tensor&, const Shape& axes, bool keepdim)>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Applies f to the values along `axes` (all, if empty) for each position of the other axes; f64.
Tensor reduce_by(const Tensor& x, const Shape& axes, bool keepdim, const ReduceFn& f) {
  const Shape wrapped = wrap_axes(axes, x.dim(), "reference");
  Shape kept = x.sizes();
  for (const int64_t a : wrapped) kept[static_cast<int>(a)] = 1;
  const Line values = x.to_vector<double>();
  std::vector<Line> lines(static_cast<std::size_t>(kept.numel()));
  for (int64_t i = 0; i < x.numel(); ++i) {
    int64_t rest = i, at = 0, step = 1;
    for (int d = x.dim() - 1; d >= 0; --d) {
      const int64_t k = rest % x.sizes()[d];
      rest /= x.sizes()[d];
      if (kept[d] != 1) at += k * step;
      step *= kept[d];
    }
    lines[static_cast<std::size_t>(at)].push_back(values[static_cast<std::size_t>(i)]);
  }
  Line result;
  for (const Line& line : lines) result.push_back(f(line));
  Shape sizes;
  for (int d = 0; d < x.dim(); ++d) {
    bool gone = false;
    for (const int64_t a : wrapped) gone |= a == d;
    if (!gone) sizes.push_back(x.sizes()[d]);
    if (gone && keepdim) sizes.push_back(1);
  }
  return from_data(result, sizes);
}

struct Form {
  Shape sizes, axes;
  bool keepdim = false;
};

const std::vector<Form> kForms = {{{1}, {}},           {{31}, {}},           {{33}, {0}},
                                  {{7, 13}, {}},       {{7, 13}, {0}},       {{7, 13}, {1}, true},
                                  {{5, 11}, {-1}},     {{2, 3, 5}, {0, 2}},  {{2, 3, 5}, {1}, true},
                                  {{2, 3, 2, 3}, {1, 3}}, {{3, 2, 4}, {2}},  {{3, 17}, {0}}};
/// Forms with no dimensions, no elements, or an axis of size 1.
const std::vector<Form> kEdgeForms = {{{}, {}}, {{0}, {}}, {{4, 0, 3}, {1}}, {{4, 0, 3}, {0}}, {{5, 1, 7}, {1}}};
const std::vector<Form> kLargeForms = {
    {{100003}, {}},    {{300, 517}, {0}}, {{300, 517}, {1}},     {{16, 33, 49, 11}, {0, 2, 3}},
    {{3, 40009}, {1}}, {{5000, 3}, {0}},  {{97, 2, 601}, {0, 2}}};
/// A parallel task has 32,768 elements or 512 columns: exactly as many, and one more.
const std::vector<Form> kLimitForms = {
    {{32768}, {}}, {{32769}, {}}, {{2, 32769}, {1}}, {{90, 512}, {0}}, {{90, 513}, {0}}};

Sample reduce_sample(const Form& form, const Values& values, const AxesOp& op, const ReduceFn& f, const char* torch) {
  Sample s = sample({form.sizes}, values);
  const int64_t outputs = reduced_sizes(form.sizes, wrap_axes(form.axes, form.sizes.size(), "sample"), true).numel();
  s.terms = std::max<int64_t>(1, outputs == 0 ? 1 : form.sizes.numel() / outputs);
  s.label = fmt::format("axes {}{}", to_string(form.axes), form.keepdim ? ", keepdim" : "");
  s.op = [=](const Tensors& x) -> Tensors { return {op(x[0], form.axes, form.keepdim)}; };
  s.reference = [=](const Tensors& x) -> Tensors { return {reduce_by(x[0], form.axes, form.keepdim, f)}; };
  s.code = fmt::format("(x0, {}, {})", braces(form.axes), form.keepdim);
  if (torch && form.sizes.numel() > 0) {
    Shape axes = form.axes;
    if (axes.empty())
      for (int d = 0; d < form.sizes.size(); ++d) axes.push_back(d);
    s.torch = fmt::format(fmt::runtime(torch), fmt::format("dim=({}{}), keepdim={}", fmt::join(axes, ", "),
                                                           axes.empty() ? "" : ",", form.keepdim ? "True" : "False"));
  }
  return s;
}

/// Draws a form with at least one element, because extrema refuse empty ones.
Form random_form(Draw& d) {
  Form form{d.shape(), {}};
  for (int64_t& n : form.sizes) n = std::max<int64_t>(1, n);
  form.axes = d.axes(form.sizes);
  form.keepdim = d.chance(40);
  return form;
}

/// `torch` contains {} for dim and keepdim; null for no expression.
OpCase reduction(const char* name, const AxesOp& op, const ReduceFn& f, const Values& values, const char* torch,
                 const std::vector<Form>& edges = kEdgeForms) {
  OpCase c{.name = name};
  for (const Form& form : kForms) c.samples.push_back(reduce_sample(form, values, op, f, torch));
  for (const Form& form : edges) c.samples.push_back(reduce_sample(form, values, op, f, torch));
  for (const Form& form : kLargeForms) c.large.push_back(reduce_sample(form, values, op, f, nullptr));
  c.draw = [=, expression = std::string(torch ? torch : "")](Draw& d) {
    return reduce_sample(random_form(d), values, op, f, expression.empty() ? nullptr : expression.c_str());
  };
  c.op = c.samples[0].op;
  c.torch = torch ? c.samples[0].torch : "";
  c.bench = {reduce_sample({{4096, 1024}, {1}}, values, op, f, nullptr),
             reduce_sample({{4096, 1024}, {0}}, values, op, f, nullptr),
             reduce_sample({{4}, {}}, values, op, f, nullptr)};
  return c;
}

/// For results whose error does not grow with the number of elements: means, which divide the error of their sum, and
/// functions of sums of positive numbers, whose errors are relative.
void without_growth(OpCase& c) {
  for (auto* list : {&c.samples, &c.large})
    for (Sample& s : *list) s.terms = 1;
  c.draw = [draw = std::move(c.draw)](Draw& d) {
    Sample s = draw(d);
    s.terms = 1;
    return s;
  };
}

double total(const Line& line) {
  double sum = 0.0;
  for (const double v : line) sum += v;
  return sum;
}
double average(const Line& line) { return total(line) / static_cast<double>(line.size()); }
double product(const Line& line) {
  double p = 1.0;
  for (const double v : line) p *= v;
  return p;
}
double largest(const Line& line) {
  double m = -kInfinity;
  for (const double v : line) m = std::isnan(v) || v > m ? v : m;
  return m;
}
double smallest(const Line& line) {
  double m = kInfinity;
  for (const double v : line) m = std::isnan(v) || v < m ? v : m;
  return m;
}
/// The mean of equal numbers is exact, since the root of its rounding error would be above the tolerance of std.
double variance(const Line& line, double correction) {
  long double all = 0;
  for (const double v : line) all += v;
  const auto m = static_cast<double>(all / static_cast<long double>(line.size()));
  double sum = 0.0;
  for (const double v : line) sum += (v - m) * (v - m);
  return sum / (static_cast<double>(line.size()) - correction);
}
double p_norm(const Line& line, double p) {
  Line magnitudes;
  for (const double v : line) magnitudes.push_back(std::abs(v));
  if (p == kInfinity) return largest(magnitudes);
  if (p == -kInfinity) return smallest(magnitudes);
  double sum = 0.0;
  for (const double v : magnitudes) sum += p == 0.0 ? (v != 0.0 ? 1.0 : 0.0) : std::pow(v, p);
  return p == 0.0 ? sum : std::pow(sum, 1.0 / p);
}
double log_total_exp(const Line& line) {
  const double m = largest(line);
  double sum = 0.0;
  if (std::isinf(m)) return m;
  for (const double v : line) sum += std::exp(v - m);
  return m + std::log(sum);
}
double first_place(const Line& line, bool largest_wanted) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < line.size(); ++i)
    if (!std::isnan(line[best]) &&
        (std::isnan(line[i]) || (largest_wanted ? line[i] > line[best] : line[i] < line[best])))
      best = i;
  return static_cast<double>(best);
}

void add_sums(std::vector<OpCase>& cases) {
  const AxesOp sum_of = [](const Tensor& x, const Shape& a, bool k) { return sum(x, a, k); };
  OpCase c = reduction("sum", sum_of, total, uniform(), "torch.sum(x0, {})");
  c.dtypes = kAllTypes;
  c.outputs = {Output::accumulated};
  for (const Form& form : kLimitForms) c.limits.push_back(reduce_sample(form, uniform(), sum_of, total, nullptr));
  c.tolerance = {.ulps = 1, .scale = 2};
  c.errors = {{"[sum]", [] { sum(ones({2, 3}), {2}); }}, {"[sum]", [] { sum(ones({2, 3}), {0, 0}); }}};
  cases.push_back(c);

  c = reduction("mean", [](const Tensor& x, const Shape& a, bool k) { return mean(x, a, k); }, average, uniform(),
                "torch.mean(x0, {})");
  c.dtypes = kFloatTypes;
  c.tolerance = {.ulps = 1, .scale = 1};
  without_growth(c);
  c.errors = {{"[mean] needs floating-point values, x is int64", [] { mean(ones({2}, {.dtype = kInt64})); }}};
  cases.push_back(c);

  c = reduction(
      "prod", [](const Tensor& x, const Shape& a, bool k) { return prod(x, a, k); }, product, uniform(0.75, 1.25),
      nullptr);
  c.dtypes = kFloatTypes;
  c.large = {c.large[1], c.large[2]};
  const auto bounded = [](Sample& s) {  // each factor adds one rounding relative to the product
    s.tolerance = {.ulps = 1 + static_cast<double>(s.terms) / 2};
    s.grad_tolerance = {.ulps = 16 + static_cast<double>(s.terms) / 2};
  };
  for (auto* list : {&c.samples, &c.large})
    for (Sample& s : *list) bounded(s);
  c.draw = [bounded, draw = std::move(c.draw)](Draw& d) {
    Sample s = draw(d);
    bounded(s);
    return s;
  };
  cases.push_back(c);

  OpCase to_size{.name = "sum_to_size"};
  const auto sized = [](const Shape& from, const Shape& to_sizes, int64_t terms) {
    Sample s = sample({from}, uniform(), terms);
    s.label = "to " + to_string(to_sizes);
    s.code = "sum_to_size(x0, " + braces(to_sizes) + ")";
    s.op = [=](const Tensors& x) -> Tensors { return {sum_to_size(x[0], to_sizes)}; };
    s.reference = [=](const Tensors& x) -> Tensors {
      Shape axes;
      const int lead = from.size() - to_sizes.size();
      for (int d = 0; d < from.size(); ++d)
        if (d < lead || to_sizes[d - lead] != from[d]) axes.push_back(d);
      return {axes.empty() ? x[0] : reduce_by(x[0], axes, true, total).reshape(to_sizes)};
    };
    s.torch =
        fmt::format("x0.sum_to_size(({}))", to_sizes.empty() ? "" : fmt::format("{},", fmt::join(to_sizes, ", ")));
    return s;
  };
  to_size.samples = {sized({5, 7}, {7}, 5), sized({5, 7}, {5, 1}, 7), sized({2, 3, 5}, {3, 1}, 10),
                     sized({31}, {}, 31),   sized({5, 7}, {5, 7}, 1), sized({4, 1, 3}, {1, 1, 3}, 4),
                     sized({0, 3}, {3}, 1)};
  to_size.large = {sized({1000, 700}, {700}, 1000), sized({16, 24, 20, 20}, {24, 1, 1}, 6400)};
  to_size.draw = [sized](Draw& d) {
    const Shape whole = d.shape(), part = d.broadcasting_to(whole);
    return sized(whole, part, std::max<int64_t>(1, whole.numel() / std::max<int64_t>(1, part.numel())));
  };
  to_size.op = to_size.samples[0].op;
  to_size.torch = to_size.samples[0].torch;
  to_size.tolerance = {.ulps = 1, .scale = 0.25};
  to_size.dtypes = kFloatTypes;
  to_size.errors = {{"[sum_to_size] (4,) does not broadcast to (5, 7)", [] { sum_to_size(ones({5, 7}), {4}); }}};
  cases.push_back(to_size);
}

void add_extrema(std::vector<OpCase>& cases) {
  const std::vector<Form> edges = {{{}, {}}, {{4, 0, 3}, {0}}, {{5, 1, 7}, {1}}};
  const AxesOp amax_of = [](const Tensor& x, const Shape& a, bool k) { return amax(x, a, k); };
  OpCase c = reduction("amax", amax_of, largest, distinct(), "torch.amax(x0, {})", edges);
  for (const Form& form : kLimitForms) c.limits.push_back(reduce_sample(form, distinct(), amax_of, largest, nullptr));
  c.dtypes = kNumericTypes;
  c.tolerance = {.ulps = 0};
  c.errors = {{"[amax] x is (0, 3): no elements", [] { amax(ones({0, 3}), {0}); }}};
  cases.push_back(c);
  c = reduction("amin", [](const Tensor& x, const Shape& a, bool k) { return amin(x, a, k); }, smallest, distinct(),
                "torch.amin(x0, {})", edges);
  c.dtypes = kNumericTypes;
  c.tolerance = {.ulps = 0};
  cases.push_back(c);

  for (const bool is_max : {true, false}) {
    OpCase along{.name = is_max ? "max_along" : "min_along"};
    OpCase where{.name = is_max ? "argmax" : "argmin"};
    const auto along_sample = [=](const Shape& sizes, int64_t axis, bool keepdim, bool values) {
      Sample s = sample({sizes}, distinct());
      s.label = fmt::format("axis {}{}", axis, keepdim ? ", keepdim" : "");
      s.code = fmt::format("{}{}(x0, {}, {})", values ? "" : "arg", is_max ? "max" : "min", axis, keepdim);
      s.op = [=](const Tensors& x) -> Tensors {
        if (!values) return {is_max ? argmax(x[0], axis, keepdim) : argmin(x[0], axis, keepdim)};
        const ValuesIndices r = is_max ? max(x[0], axis, keepdim) : min(x[0], axis, keepdim);
        return {r.values, r.indices};
      };
      s.reference = [=](const Tensors& x) -> Tensors {
        Tensors r;
        if (values) r.push_back(reduce_by(x[0], {axis}, keepdim, is_max ? largest : smallest));
        r.push_back(reduce_by(x[0], {axis}, keepdim, [=](const Line& line) { return first_place(line, is_max); }));
        return r;
      };
      s.torch = fmt::format("torch.{}{}(x0, dim={}, keepdim={})", values ? "" : "arg", is_max ? "max" : "min", axis,
                            keepdim ? "True" : "False");
      return s;
    };
    for (OpCase* target : {&along, &where}) {
      const bool values = target == &along;
      for (const auto& [sizes, axis, keepdim] : std::vector<std::tuple<Shape, int64_t, bool>>{
               {{1}, 0, false}, {{31}, 0, false}, {{7, 13}, 0, false}, {{7, 13}, 1, true}, {{2, 3, 5}, 1, false},
               {{2, 3, 5}, -1, true}, {{4, 0, 3}, 0, false}, {{3, 2, 70}, 1, false}})
        target->samples.push_back(along_sample(sizes, axis, keepdim, values));
      target->large = {along_sample({300, 517}, 0, false, values), along_sample({300, 517}, 1, false, values)};
      target->draw = [along_sample, values](Draw& d) {
        Form form = random_form(d);
        if (form.sizes.empty()) form.sizes = {1};
        const int64_t axis = d.axis(form.sizes);
        return along_sample(form.sizes, axis, form.keepdim, values);
      };
      target->op = target->samples[0].op;
      target->torch = target->samples[0].torch;
      target->dtypes = kNumericTypes;
      target->tolerance = {.ulps = 0};
    }
    along.outputs = {Output::same, Output::index};
    where.outputs = {Output::index};
    where.differentiable = false;
    Sample whole = sample({{7, 13}}, distinct());
    whole.label = "all axes";
    whole.op = [=](const Tensors& x) -> Tensors { return {is_max ? argmax(x[0]) : argmin(x[0])}; };
    whole.reference = [=](const Tensors& x) -> Tensors {
      return {reduce_by(x[0], {}, false, [=](const Line& line) { return first_place(line, is_max); })};
    };
    whole.torch = is_max ? "torch.argmax(x0)" : "torch.argmin(x0)";
    where.samples.push_back(whole);
    along.errors = {{"no elements", [=] { is_max ? max(ones({0, 3}), 0) : min(ones({0, 3}), 0); }}};
    where.errors = {{is_max ? "[argmax]" : "[argmin]", [=] { is_max ? argmax(ones({3}), 1) : argmin(ones({3}), 1); }}};
    cases.push_back(along);
    cases.push_back(where);
  }
}

bool is_true(double v) { return v != 0; }

void add_logic(std::vector<OpCase>& cases) {
  const Values rare = cycle({0, 0, 0, 0, 0, 0, 1}), often = cycle({1, 2, 1, 1, 3, 1, 1, 0});
  OpCase c = reduction("any", [](const Tensor& x, const Shape& a, bool k) { return any(x, a, k); },
                       [](const Line& line) { return std::ranges::any_of(line, is_true) ? 1.0 : 0.0; }, rare,
                       "torch.any(x0, {})");
  c.differentiable = false;
  c.dtypes = kAllTypes;
  c.outputs = {Output::boolean};
  cases.push_back(c);
  c = reduction("all", [](const Tensor& x, const Shape& a, bool k) { return all(x, a, k); },
                [](const Line& line) { return std::ranges::all_of(line, is_true) ? 1.0 : 0.0; }, often,
                "torch.all(x0, {})");
  c.differentiable = false;
  c.dtypes = kAllTypes;
  c.outputs = {Output::boolean};
  cases.push_back(c);
}

void add_moments(std::vector<OpCase>& cases) {
  const std::vector<Form> forms = {
      {{31}, {}},           {{33}, {0}},         {{7, 13}, {}},    {{7, 13}, {0}},
      {{5, 11}, {1}, true}, {{2, 3, 5}, {0, 2}}, {{2, 3, 5}, {1}}, {{2, 3, 2, 3}, {1, 3}, true}};
  for (const bool root : {false, true})
    for (const double correction : {1.0, 0.0}) {
      OpCase c{.name = fmt::format("{}{}", root ? "std" : "var", correction == 0.0 ? "_biased" : "")};
      const AxesOp op = [=](const Tensor& x, const Shape& a, bool k) {
        return root ? levin::std(x, a, correction, k) : var(x, a, correction, k);
      };
      const ReduceFn f = [=](const Line& line) {
        return root ? std::sqrt(variance(line, correction)) : variance(line, correction);
      };
      const std::string torch = fmt::format("torch.{}(x0, {{}}, correction={})", root ? "std" : "var", correction);
      for (const Form& form : forms) c.samples.push_back(reduce_sample(form, uniform(), op, f, torch.c_str()));
      c.draw = [=](Draw& d) { return reduce_sample(random_form(d), uniform(), op, f, torch.c_str()); };
      for (const std::size_t i : {0u, 1u, 2u, 3u})
        c.large.push_back(reduce_sample(kLargeForms[i], uniform(), op, f, nullptr));
      c.op = c.samples[0].op;
      c.torch = c.samples[0].torch;
      c.dtypes = kFloatTypes;
      c.layouts = {Layout::contiguous, Layout::transposed, Layout::sliced};  // equal elements have no gradient
      c.tolerance = {.ulps = 4, .scale = 0.5};
      without_growth(c);
      c.errors = {{"needs floating-point values", [=] { op(ones({3}, {.dtype = kInt64}), {}, false); }}};
      cases.push_back(c);
    }
}

void add_norms(std::vector<OpCase>& cases) {
  // No two values have the same magnitude.
  const Values unequal = [steps = distinct(0.3)](int64_t i, int64_t n, Generator& g) { return steps(i, n, g) + 0.1; };
  const std::vector<Form> edges = {{{}, {}}, {{5, 1, 7}, {1}}};
  struct Order {
    const char* name;
    double p;
    const char* torch;
  };
  for (const Order& order :
       {Order{"norm_2", 2.0, "2"}, Order{"norm_1", 1.0, "1"}, Order{"norm_inf", kInfinity, "float('inf')"},
        Order{"norm_minus_inf", -kInfinity, "float('-inf')"}, Order{"norm_3", 3.0, "3"}, Order{"norm_half", 0.5, "0.5"},
        Order{"norm_0", 0.0, "0"}}) {
    const double p = order.p;
    const std::string torch = fmt::format("torch.linalg.vector_norm(x0, ord={}, {{}})", order.torch);
    OpCase c = reduction(order.name, [=](const Tensor& x, const Shape& a, bool k) { return norm(x, p, a, k); },
                         [=](const Line& line) { return p_norm(line, p); },
                         std::isinf(p) ? unequal : away_from(uniform(), {0.0}, 0.3), torch.c_str(),
                         edges);
    c.dtypes = kFloatTypes;
    c.tolerance = {.ulps = 8};
    c.grad_tolerance = {.ulps = 64};
    c.zero_gradient = p == 0.0;
    c.large = {c.large[0], c.large[1], c.large[2]};
    without_growth(c);
    cases.push_back(c);
  }

  OpCase c = reduction("logsumexp", [](const Tensor& x, const Shape& a, bool k) { return logsumexp(x, a, k); },
                       log_total_exp, uniform(-8, 8), "torch.logsumexp(x0, {})",
                       {{{5, 1, 7}, {1}}, {{}, {}}, {{0}, {}}, {{4, 0, 3}, {1}}, {{4, 0, 3}, {0}}});
  c.dtypes = kFloatTypes;
  c.tolerance = {.ulps = 4, .scale = 1};
  without_growth(c);
  cases.push_back(c);
}

}  // namespace

std::vector<OpCase> reduce_cases() {
  std::vector<OpCase> cases;
  add_sums(cases);
  add_extrema(cases);
  add_logic(cases);
  add_moments(cases);
  add_norms(cases);
  return cases;
}

}  // namespace levin::test
