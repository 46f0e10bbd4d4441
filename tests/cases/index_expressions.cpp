// Index expressions, read and written, against loops over the result's coordinates.
#include "cases/cases.h"
#include "cases/places.h"

#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace levin::test {

namespace {

/// One index; of a tensor, the number of its input.
struct Term {
  Index::Kind kind;
  int64_t integer = 0;
  Slice slice{};
  std::size_t tensor = 0;
};

struct Expression {
  std::vector<Term> terms{};
  std::vector<InputSpec> tensors{};

  void add(Index::Kind kind, int64_t integer = 0) { terms.push_back({.kind = kind, .integer = integer}); }
  void add(const Slice& s) { terms.push_back({.kind = Index::Kind::slice, .slice = s}); }
  void add(InputSpec spec) {
    terms.push_back({.kind = Index::Kind::tensor, .tensor = tensors.size()});
    tensors.push_back(std::move(spec));
  }
};

using Kind = Index::Kind;

InputSpec positions(const Shape& sizes, int64_t size, DType dtype = DType::i64) {
  return {.sizes = sizes, .values = integers(-size, size), .dtype = dtype, .differentiable = false};
}

/// The inputs from `first` on are the expression's tensors.
std::vector<Index> indices(const Expression& e, const Tensors& in, std::size_t first) {
  std::vector<Index> list;
  for (const Term& t : e.terms) {
    if (t.kind == Kind::integer) list.push_back(t.integer);
    if (t.kind == Kind::slice) list.push_back(t.slice);
    if (t.kind == Kind::ellipsis) list.push_back(Ellipsis);
    if (t.kind == Kind::new_axis) list.push_back(nil);
    if (t.kind == Kind::boolean) list.push_back(t.integer != 0);
    if (t.kind == Kind::tensor) list.push_back(in[first + t.tensor]);
  }
  return list;
}

std::string text(const Expression& e, std::size_t first, bool python) {
  const auto bound = [&](std::optional<int64_t> b) { return b ? std::to_string(*b) : python ? "" : "nil"; };
  std::string all;
  for (const Term& t : e.terms) {
    if (!all.empty()) all += ", ";
    if (t.kind == Kind::integer) all += std::to_string(t.integer);
    if (t.kind == Kind::slice)
      all += fmt::format(fmt::runtime(python ? "{}:{}:{}" : "Slice({}, {}, {})"), bound(t.slice.start),
                         bound(t.slice.stop), t.slice.step);
    if (t.kind == Kind::ellipsis) all += python ? "..." : "Ellipsis";
    if (t.kind == Kind::new_axis) all += python ? "None" : "nil";
    if (t.kind == Kind::boolean) all += t.integer != 0 ? (python ? "True" : "true") : (python ? "False" : "false");
    if (t.kind == Kind::tensor) all += fmt::format("x{}", first + t.tensor);
  }
  return all;
}

/// The result's sizes, and for each of its elements the coordinates in x.
class Reading {
 public:
  Reading(const Shape& x, const Expression& e, const Tensors& in, std::size_t first) : x_(x) {
    int taken = 0, axis = 0;
    for (const Term& t : e.terms) taken += axes_of(t, in, first);
    for (const Term& t : e.terms) {
      if (t.kind == Kind::integer) pick(axis++, {t.integer}, {});
      if (t.kind == Kind::slice) slice(axis++, t.slice);
      if (t.kind == Kind::new_axis) plain_.push_back({-1, 1, 0, 0});
      if (t.kind == Kind::ellipsis)
        for (int n = x.size() - taken; n > 0; --n) slice(axis++, {});
      if (t.kind == Kind::boolean) mark({t.integer});
      if (t.kind == Kind::tensor) axis += choose(axis, in[first + t.tensor]);
    }
    while (axis < x.size()) slice(axis++, {});
    const bool adjacent = std::ranges::count(marks_, marks_.empty() ? 0 : marks_[0]) == std::ssize(marks_);
    front_ = adjacent && !marks_.empty() ? marks_[0] : 0;
    for (int d = 0; d < front_; ++d) sizes.push_back(plain_[static_cast<std::size_t>(d)].size);
    for (const int64_t n : common_) sizes.push_back(n);
    for (std::size_t d = static_cast<std::size_t>(front_); d < plain_.size(); ++d) sizes.push_back(plain_[d].size);
  }

  Shape place(const Shape& at) const {
    Shape from = x_;
    for (std::size_t d = 0; d < plain_.size(); ++d) {
      const int own = static_cast<int>(d) + (static_cast<int>(d) < front_ ? 0 : common_.size());
      if (plain_[d].axis >= 0) from[plain_[d].axis] = plain_[d].start + plain_[d].step * at[own];
    }
    for (const Picked& p : picked_) {
      Shape own;
      for (int d = 0; d < p.sizes.size(); ++d) {
        const int64_t i = at[front_ + common_.size() - p.sizes.size() + d];
        own.push_back(p.sizes[d] == 1 ? 0 : i);
      }
      const int64_t i = p.positions[static_cast<std::size_t>(flat(p.sizes, own))];
      from[p.axis] = i < 0 ? i + x_[p.axis] : i;
    }
    return from;
  }

  Shape sizes;

 private:
  struct Plain {
    int axis;
    int64_t size, start, step;
  };
  struct Picked {
    int axis;
    std::vector<int64_t> positions;
    Shape sizes;
  };

  static int axes_of(const Term& t, const Tensors& in, std::size_t first) {
    if (t.kind == Kind::tensor && in[first + t.tensor].dtype() == kBool) return in[first + t.tensor].dim();
    return t.kind == Kind::integer || t.kind == Kind::slice || t.kind == Kind::tensor ? 1 : 0;
  }
  void mark(const Shape& sizes_of_index) {
    marks_.push_back(static_cast<int>(plain_.size()));
    common_ = broadcast_shapes(common_, sizes_of_index, "reference");
  }
  void pick(int axis, const std::vector<int64_t>& places, const Shape& sizes_of_index) {
    picked_.push_back({axis, places, sizes_of_index});
  }
  void slice(int axis, const Slice& s) {
    const int64_t n = x_[axis];
    const auto bound = [n](int64_t b) { return std::clamp<int64_t>(b < 0 ? b + n : b, 0, n); };
    int64_t count = 0;
    const int64_t start = bound(s.start.value_or(0)), stop = bound(s.stop.value_or(n));
    for (int64_t i = start; i < stop; i += s.step) ++count;
    plain_.push_back({axis, count, start, s.step});
  }
  /// Returns the number of axes that the tensor takes.
  int choose(int axis, const Tensor& t) {
    if (t.dtype() != kBool) {
      if (t.dim() > 0) mark(t.sizes());
      pick(axis, t.to_vector<int64_t>(), t.sizes());
      return 1;
    }
    std::vector<std::vector<int64_t>> chosen(static_cast<std::size_t>(t.dim()));
    int64_t count = 0;
    std::vector<double> mask = t.to_vector<double>();
    each_place(t.sizes(), [&](const Shape& at) {
      if (value_at(mask, t.sizes(), at) == 0) return;
      ++count;
      for (int d = 0; d < at.size(); ++d) chosen[static_cast<std::size_t>(d)].push_back(at[d]);
    });
    mark({count});
    for (int d = 0; d < t.dim(); ++d) pick(axis + d, chosen[static_cast<std::size_t>(d)], {count});
    return t.dim();
  }

  Shape x_, common_;
  std::vector<Plain> plain_;
  std::vector<Picked> picked_;
  std::vector<int> marks_;  ///< for each tensor, the number of plain axes before it
  int front_ = 0;           ///< the number of plain axes before those of the tensors
};

Expression random_expression(Draw& d, const Shape& x) {
  Expression e;
  const bool masks = d.chance(30);
  bool masked = false, ellipsis = false;
  const Shape common = d.shape(1, 2, 6);
  for (int axis = 0, more = 2; axis < x.size() || more > 0;) {
    const int64_t kind = axis == x.size() ? d.below(2) * 6 : d.below(8);
    if (kind == 0 && (axis == x.size() || !ellipsis)) break;
    if (kind == 1 && x[axis] > 0) {
      e.add(Kind::integer, d.between(-x[axis], x[axis] - 1)), ++axis;
    } else if (kind <= 2) {
      const auto bound = [&] { return d.chance(40) ? std::nullopt : std::optional(d.between(-x[axis], x[axis] + 1)); };
      Slice s;
      s.start = bound(), s.stop = bound(), s.step = d.between(1, 3);
      e.add(s), ++axis;
    } else if (kind == 7 && masks && !masked) {
      const int axes = static_cast<int>(d.between(1, x.size() - axis));
      e.add(bool_input(Shape(x.begin() + axis, x.begin() + axis + axes)));
      axis += axes, masked = true;
    } else if (kind == 6) {
      if (more > 0 && d.chance(70)) e.add(Kind::new_axis), --more;
      else if (more > 0 && d.chance(30)) e.add(Kind::boolean, 1), --more;
      else if (ellipsis && axis == x.size()) break;
      else if (!std::exchange(ellipsis, true))
        e.add(Kind::ellipsis), axis += static_cast<int>(d.below(x.size() - axis + 1));
    } else if (x[axis] > 0) {
      e.add(positions(masks ? Shape{1} : d.broadcasting_to(common), x[axis], d.chance(30) ? DType::i32 : DType::i64));
      ++axis;
    } else {
      e.add(Slice()), ++axis;
    }
  }
  if (e.terms.empty()) e.add(Kind::ellipsis);
  return e;
}

Sample read_sample(const Shape& x, const Expression& e, const std::string& torch = "-") {
  Sample s{.inputs = {{.sizes = x}}, .terms = 8, .grad_terms = 64, .label = text(e, 1, true), .torch = torch};
  s.inputs.insert(s.inputs.end(), e.tensors.begin(), e.tensors.end());
  s.code = "x0(" + text(e, 1, false) + ")";
  s.op = [e](const Tensors& in) -> Tensors { return {in[0].index(indices(e, in, 1))}; };
  s.reference = [e](const Tensors& in) -> Tensors {
    const Reading r(in[0].sizes(), e, in, 1);
    return {moved(in[0], r.sizes, [&](const Shape& at) -> std::optional<Shape> { return r.place(at); })};
  };
  return s;
}

enum class Writing { put, assign, assign_number, accumulate, add };

Sample write_sample(const Shape& x, const Expression& e, const Shape& value, Writing how) {
  const bool number = how == Writing::assign_number, sums = how == Writing::accumulate;
  const std::size_t first = number ? 1 : 2;
  Sample s{.inputs = {{.sizes = x}}, .terms = 8, .grad_terms = 64, .label = text(e, first, true)};
  if (!number) s.inputs.push_back({.sizes = value});
  s.inputs.insert(s.inputs.end(), e.tensors.begin(), e.tensors.end());
  const std::string list = text(e, first, false);
  s.code = how == Writing::put          ? fmt::format("index_put(x0, {{{}}}, x1)", list)
           : how == Writing::accumulate ? fmt::format("index_put(x0, {{{}}}, x1, {{.accumulate = true}})", list)
                                        : fmt::format("[&] {{ auto y = clone(x0); y({}) {} {}; return y; }}()", list,
                                                      how == Writing::add ? "+=" : "=", number ? "1" : "x1");
  s.op = [=](const Tensors& in) -> Tensors {
    const std::vector<Index> at = indices(e, in, first);
    if (how == Writing::put || sums) return {index_put(in[0], at, in[1], {.accumulate = sums})};
    const Tensor y = clone(in[0]);
    if (number) IndexedTensor(y, at) = 1;
    if (how == Writing::assign) IndexedTensor(y, at) = in[1];
    if (how == Writing::add) IndexedTensor(y, at) += in[1];
    return {y};
  };
  s.reference = [=](const Tensors& in) -> Tensors {
    const Reading r(in[0].sizes(), e, in, first);
    const std::vector<double> old = in[0].to_vector<double>();
    std::vector<double> y = old, before = old;
    Shape own = number ? Shape{} : in[1].sizes();
    while (own.size() > r.sizes.size()) own.erase(0);
    const std::vector<double> v = number ? std::vector<double>(static_cast<std::size_t>(r.sizes.numel()), 1.0)
                                         : broadcast_values(in[1].reshape(own), r.sizes);
    std::size_t i = 0;
    each_place(r.sizes, [&](const Shape& at) {
      const Shape to = r.place(at);
      const double start = sums                  ? value_at(y, in[0].sizes(), to)
                           : how == Writing::add ? value_at(before, in[0].sizes(), to)
                                                 : 0.0;
      value_at(y, in[0].sizes(), to) = start + v[i++];
    });
    return {from_data(y, in[0].sizes())};
  };
  return s;
}

/// Draws a value that broadcasts to what the expression selects: 0-dim where that depends on a mask's elements.
Sample random_write(Draw& d, std::initializer_list<Writing> kinds) {
  const Shape x = d.shape();
  const Expression e = random_expression(d, x);
  Tensors in{zeros(x)};
  for (const InputSpec& t : e.tensors) in.push_back(zeros(t.sizes, {.dtype = *t.dtype}));
  const Shape sizes = Reading(x, e, in, 1).sizes;
  const bool masked = std::ranges::any_of(e.tensors, [](const InputSpec& t) { return t.dtype == DType::boolean; });
  const Shape value = masked || sizes.numel() == 0 ? Shape{} : d.broadcasting_to(sizes);
  return write_sample(x, e, value, d.of(kinds));
}

/// Every third element: the number of places does not depend on the layout.
InputSpec thirds(const Shape& sizes) {
  InputSpec mask = bool_input(sizes);
  mask.values = cycle({1, 0, 0});
  mask.rearrange = false;
  return mask;
}

Expression of(std::initializer_list<InputSpec> tensors) {
  Expression e;
  for (const InputSpec& t : tensors) e.add(t);
  return e;
}

/// x[:, i, :, j]: what tensors select comes in front, because a slice separates them.
Expression separated(int64_t n, int64_t m) {
  Expression e;
  e.add(Slice());
  e.add(positions({2, 1}, n));
  e.add(Slice(0, nil, 2));
  e.add(positions({3}, m, DType::i32));
  return e;
}

/// x[1, ..., i, None]
Expression mixed(int64_t n) {
  Expression e;
  e.add(Kind::integer, 1);
  e.add(Kind::ellipsis);
  e.add(positions({4}, n));
  e.add(Kind::new_axis);
  return e;
}

OpCase index_case() {
  return {.name = "index",
          .samples = {read_sample({5}, of({positions({7}, 5)})), read_sample({4, 3}, of({positions({2, 3}, 4)})),
                      read_sample({4, 3, 2}, of({positions({5}, 4), positions({5}, 3, DType::i32)})),
                      read_sample({4, 3}, of({bool_input({4, 3})})), read_sample({4, 3}, of({bool_input({4})})),
                      read_sample({2, 3, 4, 2}, separated(3, 2)), read_sample({2, 3, 5}, mixed(5)),
                      read_sample({3, 2}, of({positions({0}, 3)})), read_sample({3, 2}, of({bool_input({})}))},
          .draw =
              [](Draw& d) {
                const Shape x = d.shape();
                const Expression e = random_expression(d, x);
                return read_sample(x, e, "x0[" + text(e, 1, true) + "]");
              },
          .large = {read_sample({300, 70}, of({positions({290}, 300)})),
                    read_sample({40000}, of({bool_input({40000})}))},
          .dtypes = kAllTypes,
          .tolerance = {.ulps = 0},
          .grad_tolerance = {.ulps = 2, .scale = 2},
          .errors = {{"[index] index 5 is out of range for axis 1 of size 5: use -5 to 4",
                      [] { zeros({2, 5})(Slice(), tensor<int64_t>({0, 5})); }},
                     {"[index] index -3 is out of range for axis 0 of size 2: use -2 to 1",
                      [] { zeros({2, 5})(tensor<int64_t>({-3})); }},
                     {"[index] the indices take 3 axes, but the tensor of shape (2, 5) has 2; leave some out",
                      [] { zeros({2, 5})(tensor<int64_t>({0}), 0, 0); }},
                     {"[index] a mask of shape (5, 2) does not fit a tensor of shape (2, 5) from axis 0 on",
                      [] { zeros({2, 5})(zeros({5, 2}, {.dtype = kBool})); }},
                     {"[index] an index tensor is float32; use int64 or int32 positions, or a bool mask",
                      [] { zeros({2, 5})(zeros({2})); }},
                     {"[index] shapes (2,) and (3,) do not broadcast",
                      [] { zeros({2, 5})(tensor<int64_t>({0, 1}), tensor<int64_t>({0, 1, 2})); }},
                     {"more than one Ellipsis; use one",
                      [] { zeros({2, 5})(Ellipsis, tensor<int64_t>({0}), Ellipsis); }},
                     {"undefined", [] { zeros({2})(Tensor()); }}}};
}

OpCase index_put_case() {
  return {.name = "index_put",
          .samples = {write_sample({5}, of({positions({7}, 5)}), {7}, Writing::put),
                      write_sample({4, 3}, of({positions({2, 3}, 4)}), {3, 3}, Writing::put),
                      write_sample({4, 3}, of({positions({2, 3}, 4)}), {1, 1, 2, 1, 3}, Writing::assign),
                      write_sample({4, 3}, of({thirds({4, 3})}), {4}, Writing::assign),
                      write_sample({4, 3}, of({thirds({4})}), {2, 1}, Writing::put),
                      write_sample({4, 3}, of({bool_input({4})}), {}, Writing::assign_number),
                      write_sample({2, 3, 4, 2}, separated(3, 2), {2, 3, 2, 1}, Writing::assign),
                      write_sample({2, 3, 5}, mixed(5), {3, 4, 1}, Writing::put),
                      write_sample({3, 2}, of({positions({0}, 3)}), {0, 2}, Writing::assign)},
          .draw = [](Draw& d) { return random_write(d, {Writing::put, Writing::assign, Writing::assign_number}); },
          .large = {write_sample({300, 70}, of({positions({290}, 300)}), {290, 70}, Writing::put)},
          .dtypes = kAllTypes,
          .tolerance = {.ulps = 0},
          .errors = {{"[index_put] a value of shape (3,) does not broadcast to the shape (2, 5) of its places",
                      [] { index_put(zeros({4, 5}), {tensor<int64_t>({0, 1})}, zeros({3})); }},
                     {"[index_put] types differ: x is float32, values are float64",
                      [] { index_put(zeros({4}), {tensor<int64_t>({0})}, zeros({1}, {.dtype = kDouble})); }},
                     {"[index_put_] a value of shape (2, 5) does not broadcast to the shape (5,) of its places",
                      [] { zeros({4, 5}).index_put_({0}, zeros({2, 5})); }}}};
}

OpCase index_put_sums_case() {
  return {.name = "index_put with accumulate",
          .samples = {write_sample({3}, of({positions({7}, 3)}), {7}, Writing::accumulate),
                      write_sample({4, 3}, of({positions({9}, 4)}), {3}, Writing::accumulate),
                      write_sample({2, 3, 4, 2}, separated(3, 2), {2, 3, 2, 2}, Writing::accumulate),
                      write_sample({4, 3}, of({thirds({4, 3})}), {4}, Writing::add),
                      write_sample({4, 3}, of({positions({9}, 4)}), {9, 1}, Writing::add)},
          .draw = [](Draw& d) { return random_write(d, {Writing::accumulate, Writing::add}); },
          .large = {write_sample({65, 192}, of({positions({500}, 65)}), {500, 192}, Writing::accumulate)},
          .dtypes = kNumericTypes,
          .tolerance = {.ulps = 2, .scale = 2},
          .grad_tolerance = {.ulps = 2, .scale = 2},
          .errors = {{"bool", [] {
                        index_put(zeros({2}, {.dtype = kBool}), {tensor<int64_t>({0})}, zeros({1}, {.dtype = kBool}),
                                  {.accumulate = true});
                      }}}};
}

}  // namespace

std::vector<OpCase> index_expression_cases() { return {index_case(), index_put_case(), index_put_sums_case()}; }

}  // namespace levin::test
