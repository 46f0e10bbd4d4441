// Prints a program as lines of C++.

#include "fuzz/program.h"
#include "support/text/pattern.h"

#include <fmt/format.h>

#include <cmath>

namespace levin::fuzz {

namespace {

constexpr std::size_t kShown = 24;  // number of values shown

std::string number(double v) {
  if (std::isnan(v)) return "NAN";
  if (std::isinf(v)) return v > 0 ? "INFINITY" : "-INFINITY";
  return fmt::format("{}", v);
}

std::string type_of(DType t) {
  switch (t) {
    case DType::f64:
      return "kFloat64";
    case DType::f32:
      return "kFloat32";
    case DType::f16:
      return "kHalf";
    case DType::bf16:
      return "kBFloat16";
    case DType::i64:
      return "kInt64";
    case DType::i32:
      return "kInt32";
    case DType::i16:
      return "kInt16";
    case DType::i8:
      return "kInt8";
    case DType::u8:
      return "kUInt8";
    case DType::boolean:
      return "kBool";
    case DType::c64:
      return "kComplex64";
    case DType::c128:
      return "kComplex128";
  }
  return {};
}

std::string leaf_code(const Leaf& leaf) {
  std::string values;
  for (std::size_t i = 0; i < leaf.memory.size() && i < kShown; ++i)
    values += (i > 0 ? ", " : "") + number(leaf.memory[i]);
  if (leaf.memory.size() > kShown) values += fmt::format(" /* {} more */", leaf.memory.size() - kShown);
  const bool dense = leaf.strides == contiguous_strides(leaf.sizes) && leaf.offset == 0 &&
                     static_cast<int64_t>(leaf.memory.size()) == leaf.sizes.numel();
  const std::string from =
      fmt::format("from_data<double>({{{}}}, {}, {{.dtype = {}}})", values,
                  dense ? test::braces(leaf.sizes) : fmt::format("{{{}}}", leaf.memory.size()), type_of(leaf.dtype));
  return dense ? from
               : fmt::format("as_strided({}, {}, {}, {}).detach()", from, test::braces(leaf.sizes),
                             test::braces(leaf.strides), leaf.offset);
}

/// Replaces x0, x1, ... in a sample's expression by the program's names.
std::string with_names(const std::string& expression, const std::vector<std::string>& names) {
  static const test::Pattern input(R"(\bx(\d+)\b)");
  return input.replace_all(expression, [&](const test::Pattern::Match& m) {
    const auto i = static_cast<std::size_t>(std::stoul(m[1]));
    return i < names.size() ? names[i] : m[0];
  });
}

std::string call_code(const Step& step, const std::vector<std::string>& names) {
  const OpCase& c = *step.op_case;
  std::string code = step.sample.code;
  if (code.empty()) {
    for (std::size_t i = 0; i < names.size(); ++i) code += (i > 0 ? ", x" : "(x") + std::to_string(i);
    code += names.empty() ? "()" : ")";
  }
  if (code.front() == '(') code = c.name + code;
  const std::string& torch = step.sample.torch.empty() ? c.torch : step.sample.torch;
  return fmt::format("{};  // case {}{}{}{}", with_names(code, names), c.name, step.sample.label.empty() ? "" : ", ",
                     step.sample.label,
                     torch.empty() || torch == "-" ? "" : "; in PyTorch " + with_names(torch, names));
}

}  // namespace

std::string to_code(const Program& p) {
  std::string lines;
  const auto name_of_value = [&](std::size_t i) {
    return i < p.leaves.size() ? fmt::format("x{}", i) : fmt::format("y{}", i - p.leaves.size());
  };
  for (std::size_t i = 0; i < p.leaves.size(); ++i)
    lines += fmt::format("  const Tensor x{} = {}{};\n", i, leaf_code(p.leaves[i]),
                         p.leaves[i].differentiable && !p.cotangents.empty() ? ".requires_grad_()" : "");
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    const Step& step = p.steps[s];
    std::vector<std::string> names;
    for (std::size_t i = 0; i < step.sources.size(); ++i) {
      const std::string name = name_of_value(step.sources[i]);
      const bool leaf = step.sources[i] < p.leaves.size();
      const bool fits = leaf && p.leaves[step.sources[i]].sizes == step.sample.inputs[i].sizes;
      names.push_back(fits || p.steps.size() == 1
                          ? name
                          : fmt::format("{} /* as {} */", name, to_string(step.sample.inputs[i].sizes)));
    }
    lines += fmt::format("  const Tensor y{} = {}\n", s, call_code(step, names));
  }
  for (std::size_t i = 0; i < p.cotangents.size(); ++i)
    lines +=
        fmt::format("  const Tensor g{} = {};  // incoming gradient of output {}\n", i, leaf_code(p.cotangents[i]), i);
  return lines;
}

}  // namespace levin::fuzz
