#include "fuzz/edits.h"

#include "support/ops/op_runs.h"

#include <levin/autograd/engine.h>
#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace levin::fuzz {

namespace {

using Show = std::function<void(const std::string&)>;

/// An element's value and its derivatives by all elements of the leaf.
struct Cell {
  double value = 0;
  std::vector<double> slopes{};
};

/// A tensor and the positions of its elements in the oracle's memory.
struct Place {
  Tensor tensor;
  std::vector<std::size_t> cells;
  std::string name;

  /// True for expanded tensors, which are refused even if empty.
  bool repeats() const {
    for (int a = 0; a < tensor.dim(); ++a)
      if (tensor.sizes()[a] > 1 && tensor.strides()[a] == 0) return true;
    std::vector<std::size_t> sorted = cells;
    std::ranges::sort(sorted);
    return std::ranges::adjacent_find(sorted) != sorted.end();
  }
};

class Edits {
 public:
  Edits(Draw& d, const Show& show) : d_(d), show_(show) {
    dtype_ = d.of(std::array{DType::f64, DType::f32, DType::i64, DType::i32, DType::i16});
    recorded_ = is_floating(dtype_) && !d.chance(20);
    Shape sizes = d.shape(1, 3, 24);
    for (int64_t& n : sizes) n = std::max<int64_t>(1, n);
    count_ = static_cast<std::size_t>(sizes.numel());
    std::vector<double> values(count_);
    for (std::size_t i = 0; i < count_; ++i) values[i] = static_cast<double>(i % 5) - 2;
    leaf_ = from_data(values, sizes, {.dtype = dtype_});
    if (recorded_) leaf_.requires_grad_();
    add_memory("v0", clone(leaf_), values);
    for (std::size_t i = 0; i < count_; ++i) memory_[places_[0].cells[i]].slopes[i] = 1;
    say(fmt::format("const Tensor x = arange({}).remainder(5).sub(2).to(k{}).reshape({}){};", count_, name_of(dtype_),
                    test::braces(sizes), recorded_ ? ".requires_grad_()" : ""));
    say("const Tensor v0 = clone(x);");
  }

  std::string run() {
    for (int64_t n = d_.between(1, 10); n > 0; --n) {
      switch (d_.below(5)) {
        case 0:
          view();
          break;
        case 1:
          edit_by_number();
          break;
        case 2:
          edit_by_tensor();
          break;
        case 3:
          edit_by_mask();
          break;
        default:
          read();
          break;
      }
      if (std::string wrong = wrong_values(); !wrong.empty()) return wrong;
    }
    return recorded_ ? wrong_gradient() : std::string();
  }

 private:
  void say(const std::string& line) const {
    if (show_) show_("  " + line + "\n");
  }

  void add_memory(const std::string& name, const Tensor& t, const std::vector<double>& values) {
    Place p{t, {}, name};
    for (const double v : values) {
      p.cells.push_back(memory_.size());
      memory_.push_back({v, std::vector<double>(count_)});
    }
    places_.push_back(std::move(p));
  }

  /// Returns the cells of a view, found by applying the view to the elements' numbers.
  template <class F>
  void add_view(const Place& from, const std::string& call, const F& f) {
    Tensor numbers = arange(static_cast<int64_t>(from.cells.size())).reshape(from.tensor.sizes());
    const Tensor seen = f(from.tensor);
    if (!seen.shares_storage(from.tensor)) return;
    Place p{seen, {}, fmt::format("v{}", places_.size())};
    for (const int64_t i : f(numbers).template to_vector<int64_t>())
      p.cells.push_back(from.cells[static_cast<std::size_t>(i)]);
    say(fmt::format("const Tensor {} = {}.{};", p.name, from.name, call));
    places_.push_back(std::move(p));
  }

  void view() {
    const Place from = d_.of(places_);
    const Shape& x = from.tensor.sizes();
    if (x.empty()) return;
    const int axis = static_cast<int>(d_.below(x.size()));
    switch (d_.below(6)) {
      case 0: {
        const int other = static_cast<int>(d_.below(x.size()));
        return add_view(from, fmt::format("transpose({}, {})", axis, other),
                        [=](const Tensor& t) { return transpose(t, axis, other); });
      }
      case 1: {
        const int64_t start = d_.below(x[axis] + 1), stop = d_.between(start, x[axis]), step = d_.between(1, 3);
        return add_view(from, fmt::format("slice({}, Slice({}, {}, {}))", axis, start, stop, step),
                        [=](const Tensor& t) { return slice(t, axis, Slice(start, stop, step)); });
      }
      case 2: {
        if (x[axis] == 0) return;
        const int64_t i = d_.below(x[axis]);
        return add_view(from, fmt::format("select({}, {})", axis, i),
                        [=](const Tensor& t) { return select(t, axis, i); });
      }
      case 3:
        return add_view(from, "reshape({-1})", [n = x.numel()](const Tensor& t) { return reshape(t, {n}); });
      case 4: {
        const int64_t size = d_.below(x[axis] + 1), step = d_.between(1, 3);
        return add_view(from, fmt::format("unfold({}, {}, {})", axis, size, step),
                        [=](const Tensor& t) { return unfold(t, axis, size, step); });
      }
      default: {
        Shape wide = x;
        wide.insert(0, d_.between(1, 3));
        return add_view(from, fmt::format("expand({})", test::braces(wide)),
                        [=](const Tensor& t) { return expand(t, wide); });
      }
    }
  }

  /// Returns a place whose elements are distinct, which may be edited.
  std::optional<Place> target() {
    const Place p = d_.of(places_);
    if (p.repeats()) return std::nullopt;
    return p;
  }

  void edit_by_number() {
    const auto p = target();
    if (!p) return;
    const int64_t n = d_.of(std::array<int64_t, 4>{1, 2, -1, 3});
    const auto each = [&](double factor, double add) {
      for (const std::size_t c : p->cells) {
        memory_[c].value = factor * memory_[c].value + add;
        for (double& s : memory_[c].slopes) s *= factor;
      }
    };
    const double v = static_cast<double>(n);
    switch (d_.below(5)) {
      case 0:
        p->tensor.add_(n);
        each(1, v);
        return say(fmt::format("{}.add_({});", p->name, n));
      case 1:
        p->tensor.mul_(n);
        each(v, 0);
        return say(fmt::format("{}.mul_({});", p->name, n));
      case 2:
        p->tensor.neg_();
        each(-1, 0);
        return say(fmt::format("{}.neg_();", p->name));
      case 3:
        p->tensor.fill_(n);
        each(0, v);
        return say(fmt::format("{}.fill_({});", p->name, n));
      default:
        p->tensor.zero_();
        each(0, 0);
        return say(fmt::format("{}.zero_();", p->name));
    }
  }

  /// Edits by another place, which may overlap: it is read completely before anything is written.
  void edit_by_tensor() {
    const auto p = target();
    if (!p) return;
    const Place other = d_.of(places_);
    const Shape &to = p->tensor.sizes(), &from = other.tensor.sizes();
    if (from.size() > to.size()) return;
    for (int a = 1; a <= from.size(); ++a)
      if (from[from.size() - a] != 1 && from[from.size() - a] != to[to.size() - a]) return;
    const std::vector<int64_t> numbers =
        arange(from.numel()).reshape(from).expand(to).contiguous().to_vector<int64_t>();
    std::vector<Cell> read;
    for (const int64_t i : numbers) read.push_back(memory_[other.cells[static_cast<std::size_t>(i)]]);
    const int64_t kind = d_.below(3);
    for (std::size_t i = 0; i < read.size(); ++i) {
      Cell& c = memory_[p->cells[i]];
      const double keep = kind == 2 ? 0 : 1, take = kind == 1 ? -1 : 1;
      c.value = keep * c.value + take * read[i].value;
      for (std::size_t e = 0; e < count_; ++e) c.slopes[e] = keep * c.slopes[e] + take * read[i].slopes[e];
    }
    if (kind == 0) p->tensor.add_(other.tensor);
    if (kind == 1) p->tensor.sub_(other.tensor);
    if (kind == 2) p->tensor.copy_(other.tensor);
    say(fmt::format("{}.{}({});", p->name, std::array{"add_", "sub_", "copy_"}[static_cast<std::size_t>(kind)],
                    other.name));
  }

  void edit_by_mask() {
    const auto p = target();
    if (!p) return;
    std::vector<double> chosen(p->cells.size());
    for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = i % 3 == 1;
    const Tensor mask = from_data(chosen, p->tensor.sizes(), {.dtype = kBool});
    p->tensor.masked_fill_(mask, 4);
    for (std::size_t i = 0; i < chosen.size(); ++i)
      if (chosen[i] != 0) memory_[p->cells[i]] = {4, std::vector<double>(count_)};
    say(fmt::format("{}.masked_fill_(arange({}).remainder(3).eq(1).reshape({}), 4);", p->name, chosen.size(),
                    test::braces(p->tensor.sizes())));
  }

  /// Computes a result with its own memory from a place's current values.
  void read() {
    const Place p = d_.of(places_);
    std::vector<Cell> cells;
    for (const std::size_t c : p.cells) cells.push_back(memory_[c]);
    const std::string name = fmt::format("v{}", places_.size());
    add_memory(name, mul(p.tensor, 2), std::vector<double>(cells.size()));
    say(fmt::format("const Tensor {} = mul({}, 2);", name, p.name));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      Cell& c = memory_[places_.back().cells[i]];
      c = cells[i];
      c.value *= 2;
      for (double& s : c.slopes) s *= 2;
    }
  }

  std::string wrong_values() const {
    for (const Place& p : places_) {
      const std::vector<double> values = p.tensor.to_vector<double>();
      for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i] != memory_[p.cells[i]].value)
          return fmt::format("element {} of {} is {}, expected {}", i, p.name, values[i], memory_[p.cells[i]].value);
    }
    return {};
  }

  std::string wrong_gradient() const {
    Tensors outputs, weights;
    std::vector<double> expected(count_);
    for (const Place& p : places_) {
      if (!p.tensor.requires_grad()) continue;
      outputs.push_back(p.tensor);
      std::vector<double> w(p.cells.size());
      for (std::size_t i = 0; i < w.size(); ++i) {
        w[i] = static_cast<double>(i % 4) - 1;
        for (std::size_t e = 0; e < count_; ++e) expected[e] += w[i] * memory_[p.cells[i]].slopes[e];
      }
      weights.push_back(from_data(w, p.tensor.sizes(), {.dtype = dtype_}));
    }
    const Tensor g = grad(outputs, Tensors{leaf_}, {.allow_unused = true}, weights)[0];
    const std::vector<double> actual = g.defined() ? g.to_vector<double>() : std::vector<double>(count_);
    for (std::size_t e = 0; e < count_; ++e)
      if (actual[e] != expected[e])
        return fmt::format("the gradient of element {} of x is {}, expected {}", e, actual[e], expected[e]);
    return {};
  }

  Draw& d_;
  DType dtype_ = DType::f64;
  bool recorded_ = false;
  std::size_t count_ = 0;
  Tensor leaf_;
  std::vector<Cell> memory_;
  std::vector<Place> places_;
  const Show& show_;
};

}  // namespace

std::string run_edits(Draw& d, const Show& show) {
  return test::guarded([&] { return Edits(d, show).run(); });
}

}  // namespace levin::fuzz
