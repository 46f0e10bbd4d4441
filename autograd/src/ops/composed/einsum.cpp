// Einstein's summation: each pair of operands is contracted by permutation, reshape and a batched matrix product.

#include "../../errors.h"
#include "../values.h"

#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/products.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace levin {

namespace {

// Axes of "..." are named by digits, counted from the last: '0' is the last one.
constexpr std::string_view kDots = "...";

struct Operand {
  Tensor tensor;
  std::string axes;  ///< one name for each axis
};

struct Equation {
  std::vector<std::string> operands;
  std::string result;
  bool explicit_result = false;
};

[[noreturn]] void refuse(std::string_view equation, const std::string& reason) {
  fail<ValueError>("[einsum] \"{}\": {}.", equation, reason);
}

Equation parse(std::string_view equation) {
  std::string text;
  for (const char c : equation)
    if (c != ' ') text += c;
  Equation e;
  const std::size_t arrow = text.find("->");
  e.explicit_result = arrow != std::string::npos;
  if (e.explicit_result) e.result = text.substr(arrow + 2);
  std::string left = text.substr(0, arrow);
  for (std::size_t start = 0; start <= left.size();) {
    const std::size_t comma = std::min(left.find(',', start), left.size());
    e.operands.push_back(left.substr(start, comma - start));
    start = comma + 1;
  }
  for (const std::string* part : [&] {
         std::vector<const std::string*> parts{&e.result};
         for (const std::string& o : e.operands) parts.push_back(&o);
         return parts;
       }()) {
    std::string letters = *part;
    if (const std::size_t dots = letters.find(kDots); dots != std::string::npos) letters.erase(dots, kDots.size());
    for (const char c : letters)
      if (!std::isalpha(static_cast<unsigned char>(c)))
        refuse(equation, fmt::format("'{}' is not a letter, a comma, \"...\" or \"->\"", c));
  }
  return e;
}

/// Replaces "..." by the digits of `count` axes.
std::string with_digits(const std::string& axes, int count) {
  const std::size_t dots = axes.find(kDots);
  if (dots == std::string::npos) return axes;
  std::string digits;
  for (int i = count - 1; i >= 0; --i) digits += static_cast<char>('0' + i);
  return axes.substr(0, dots) + digits + axes.substr(dots + kDots.size());
}

/// Replaces a repeated name by the diagonal of its axes.
Operand without_repetitions(Operand o, std::string_view equation) {
  for (std::size_t i = 0; i < o.axes.size(); ++i)
    for (std::size_t j = i + 1; j < o.axes.size();) {
      if (o.axes[i] != o.axes[j]) {
        ++j;
        continue;
      }
      const auto a = static_cast<int64_t>(i), b = static_cast<int64_t>(j);
      if (o.tensor.size(a) != o.tensor.size(b))
        refuse(equation, fmt::format("'{}' has the sizes {} and {} in one operand", o.axes[i], o.tensor.size(a),
                                     o.tensor.size(b)));
      o.tensor = movedim(diagonal(o.tensor, 0, a, b), -1, a);
      o.axes.erase(j, 1);
    }
  return o;
}

bool has(const std::string& axes, char name) { return axes.find(name) != std::string::npos; }

/// Sums over the axes that are needed nowhere else.
Operand reduced(const Operand& o, const std::string& needed) {
  Axes gone;
  std::string kept;
  for (std::size_t i = 0; i < o.axes.size(); ++i) {
    if (has(needed, o.axes[i]))
      kept += o.axes[i];
    else
      gone.push_back(static_cast<int64_t>(i));
  }
  return gone.empty() ? o : Operand{sum(o.tensor, gone), kept};
}

int64_t size_in(const Operand& o, char name) {
  const std::size_t i = o.axes.find(name);
  return i == std::string::npos ? 1 : o.tensor.size(static_cast<int64_t>(i));
}

/// Permutes to the axes of `order`, of which those that are missing get size 1.
Tensor arranged(const Operand& o, const std::string& order) {
  Shape axes, sizes;
  for (const char name : order) {
    if (const std::size_t i = o.axes.find(name); i != std::string::npos) axes.push_back(static_cast<int64_t>(i));
    sizes.push_back(size_in(o, name));
  }
  return reshape(permute(o.tensor, axes), sizes);
}

/// Sizes of a contraction: axes of both that stay, of a alone, of b alone, and those that are summed.
struct Contraction {
  std::string batch, left, right, summed;

  Contraction(const Operand& a, const Operand& b, const std::string& needed) {
    for (const char name : a.axes) {
      // An axis of size 1 broadcasts, so it is not part of a product.
      const bool shared = has(b.axes, name);
      (shared && !has(needed, name) ? summed : shared ? batch : left) += name;
    }
    for (const char name : b.axes)
      if (!has(a.axes, name)) right += name;
  }
  double result_size(const Operand& a, const Operand& b) const {
    double n = 1;
    for (const char name : batch + left + right) n *= static_cast<double>(std::max(size_in(a, name), size_in(b, name)));
    return n;
  }
};

Operand contract(const Operand& a, const Operand& b, const std::string& needed) {
  const Contraction c(a, b, needed);
  Shape batch;
  for (const char name : c.batch) batch.push_back(std::max(size_in(a, name), size_in(b, name)));
  Shape summed;
  for (const char name : c.summed) summed.push_back(std::max(size_in(a, name), size_in(b, name)));
  const auto matrix = [&](const Operand& o, const std::string& own, bool own_first) {
    const Tensor t = arranged(o, c.batch + (own_first ? own + c.summed : c.summed + own));
    Shape sizes = batch;
    Shape free;
    for (const char name : own) free.push_back(size_in(o, name));
    for (const Shape& part : own_first ? std::array{free, summed} : std::array{summed, free})
      for (const int64_t n : part) sizes.push_back(n);
    const Tensor whole = expand(t, sizes);
    return own_first ? reshape(whole, {batch.numel(), free.numel(), summed.numel()})
                     : reshape(whole, {batch.numel(), summed.numel(), free.numel()});
  };
  const Tensor x = matrix(a, c.left, true), y = matrix(b, c.right, false);
  Shape sizes = batch;
  for (const char name : c.left) sizes.push_back(size_in(a, name));
  for (const char name : c.right) sizes.push_back(size_in(b, name));
  const Tensor product =
      c.summed.empty() || !x.is_floating() ? sum(mul(unsqueeze(x, 3), unsqueeze(y, 1)), 2) : bmm(x, y);
  return {reshape(product, sizes), c.batch + c.left + c.right};
}

/// Without "->" the result has the axes of "..." and the letters that occur once, in alphabetical order.
std::string implied_result(const std::vector<std::string>& operands, int dots) {
  std::string letters;
  for (const std::string& o : operands)
    for (const char c : o)
      if (std::isalpha(static_cast<unsigned char>(c))) letters += c;
  std::string result = with_digits(std::string(kDots), dots), once;
  for (const char c : letters)
    if (std::ranges::count(letters, c) == 1) once += c;
  std::ranges::sort(once);
  return result + once;
}

void check_sizes(std::string_view equation, const std::vector<Operand>& operands) {
  for (const Operand& a : operands)
    for (const Operand& b : operands)
      for (const char name : a.axes) {
        const int64_t m = size_in(a, name), n = size_in(b, name);
        if (has(b.axes, name) && m != n && m != 1 && n != 1)
          fail<ShapeError>("[einsum] \"{}\": axis '{}' has the sizes {} and {}.", equation, name, m, n);
      }
}

void check_result(std::string_view equation, const std::string& result, const std::vector<Operand>& operands) {
  for (const char name : result) {
    if (std::ranges::count(result, name) > 1) refuse(equation, fmt::format("the result has '{}' twice", name));
    if (std::ranges::none_of(operands, [&](const Operand& o) { return has(o.axes, name); }))
      refuse(equation, fmt::format("the result has '{}', which no operand has", name));
  }
}

}  // namespace

Tensor einsum(std::string_view equation, std::span<const Tensor> tensors) {
  const Equation e = parse(equation);
  if (e.operands.size() != tensors.size())
    refuse(equation, fmt::format("it names {} operands, and {} are given", e.operands.size(), tensors.size()));
  std::vector<Operand> operands;
  int dots = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string& axes = e.operands[i];
    const bool with_dots = axes.find(kDots) != std::string::npos;
    const int named = static_cast<int>(axes.size()) - (with_dots ? static_cast<int>(kDots.size()) : 0);
    const int more = tensors[i].dim() - named;
    if (more < 0 || (more > 0 && !with_dots))
      refuse(equation,
             fmt::format("operand {} is {}, which has not the axes \"{}\"", i, to_string(tensors[i].sizes()), axes));
    dots = std::max(dots, more);
    operands.push_back(without_repetitions({tensors[i], with_digits(axes, more)}, equation));
  }
  const std::string result = e.explicit_result ? with_digits(e.result, dots) : implied_result(e.operands, dots);
  check_sizes(equation, operands);
  check_result(equation, result, operands);
  const auto needed_without = [&](std::size_t i, std::size_t j) {
    std::string needed = result;
    for (std::size_t k = 0; k < operands.size(); ++k)
      if (k != i && k != j) needed += operands[k].axes;
    return needed;
  };
  for (std::size_t i = 0; i < operands.size(); ++i) operands[i] = reduced(operands[i], needed_without(i, i));
  while (operands.size() > 1) {
    std::size_t first = 0, second = 1;
    double smallest = -1;
    for (std::size_t i = 0; i < operands.size(); ++i)
      for (std::size_t j = i + 1; j < operands.size(); ++j) {
        const double size =
            Contraction(operands[i], operands[j], needed_without(i, j)).result_size(operands[i], operands[j]);
        if (smallest >= 0 && size >= smallest) continue;
        smallest = size;
        first = i;
        second = j;
      }
    Operand product = contract(operands[first], operands[second], needed_without(first, second));
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(second));
    operands[first] = std::move(product);
  }
  return arranged(operands[0], result);
}
Tensor einsum(std::string_view equation, std::initializer_list<Tensor> tensors) {
  return einsum(equation, std::span<const Tensor>(tensors));
}

}  // namespace levin
