// Outputs and gradients of the operation cases compared with values that PyTorch computed from the same inputs. With
// LEVIN_DUMP_INPUTS=FILE the inputs are written for tests/pytorch/make_values.py instead.

#include "cases/cases.h"
#include "support/stored_values.h"

#include <levin/autograd/engine.h>
#include <levin/autograd/ops/creation.h>
#include <levin/core/io.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

using namespace levin;
using namespace levin::test;

namespace {

constexpr int64_t kElements = 64;    // inputs of a stored sample at most
constexpr int64_t kMoreElements = 200;  // of the one larger sample of a case
constexpr int kSamples = 2;          // stored samples that share the case's expression, at most

struct StoredSample {
  const OpCase* op_case;
  const Sample* sample;
  std::string key;         ///< "softmax#1", "softmax#1/transposed", "softmax#1/float16"
  std::string expression;
  DType dtype;
  Tensors inputs;
};

bool has_type(const std::vector<DType>& types, DType t) { return std::ranges::find(types, t) != types.end(); }

/// Also stores the first stored sample of two elements or more for strided inputs and the 16-bit types.
void add_variants(std::vector<StoredSample>& list, const StoredSample& first) {
  const OpCase& c = *first.op_case;
  const auto add = [&](const std::string& name, DType dtype, Layout layout) {
    list.push_back({&c, first.sample, first.key + "/" + name, first.expression, dtype,
                    make_inputs(c, *first.sample, dtype, layout)});
  };
  for (const Layout layout : {Layout::transposed, Layout::sliced})
    if (std::ranges::find(c.layouts, layout) != c.layouts.end()) add(to_string(layout), first.dtype, layout);
  for (const DType dtype : {DType::f16, DType::bf16})
    if (has_type(c.dtypes, dtype)) add(std::string(name_of(dtype)), dtype, Layout::contiguous);
}

std::vector<StoredSample> stored_samples(const std::vector<OpCase>& cases) {
  std::vector<StoredSample> result;
  for (const OpCase& c : cases) {
    int shared = 0;
    bool varied = false, larger = false;
    for (std::size_t i = 0; i < c.samples.size(); ++i) {
      const Sample& s = c.samples[i];
      const std::string& expression = s.torch.empty() ? c.torch : s.torch;
      int64_t elements = 0;
      for (const InputSpec& input : s.inputs) elements += input.sizes.numel();
      if (expression.empty() || expression == "-" || elements < 2 || elements > kMoreElements) continue;
      if (elements > kElements) {
        if (std::exchange(larger, true)) continue;
      } else if (s.torch.empty() && ++shared > kSamples) {
        continue;
      }
      const DType dtype = has_type(c.dtypes, DType::f32) ? DType::f32 : c.dtypes[0];
      result.push_back({&c, &s, fmt::format("{}#{}", c.name, i), expression, dtype, make_inputs(c, s, dtype)});
      if (elements <= kElements && !std::exchange(varied, true)) add_variants(result, StoredSample(result.back()));
    }
  }
  return result;
}

bool wants_gradient(const StoredSample& s, std::size_t input) {
  const bool narrow = is_floating(s.dtype) && size_of(s.dtype) == 2;
  return s.op_case->differentiable && s.sample->inputs[input].differentiable && s.inputs[input].is_floating() &&
         (!narrow || has_type(s.op_case->grad_dtypes, s.dtype));
}

std::string dumped(const StoredSample& s) {
  std::string text = "eval " + s.expression + "\n";
  for (std::size_t i = 0; i < s.inputs.size(); ++i)
    text += fmt::format("input {} {}\n", wants_gradient(s, i) ? "grad" : "plain", stored_line(s.inputs[i]));
  return text;
}

/// Returns a hash of the inputs and the expression, to detect stored values of others.
int64_t fingerprint(const std::string& text) {
  return io::crc32(std::as_bytes(std::span(text.data(), text.size())));
}

Tolerance doubled(Tolerance t) { return {.ulps = 2 * t.ulps, .scale = 2 * t.scale}; }

std::string compare_stored(const StoredSample& s, const StoredValues& stored) {
  const auto mark = stored.find(s.key + "/inputs");
  if (mark == stored.end() || mark->second.item<int64_t>() != fingerprint(dumped(s)))
    return "no stored values for these inputs: run tests/pytorch/make_values.py";
  Tensors leaves, wanted;
  std::vector<std::size_t> wanted_index;
  for (std::size_t i = 0; i < s.inputs.size(); ++i) {
    leaves.push_back(s.inputs[i].detach());
    if (!wants_gradient(s, i)) continue;
    wanted.push_back(leaves.back().requires_grad_());
    wanted_index.push_back(i);
  }
  const Tensors outputs = op_of(*s.op_case, *s.sample)(leaves);
  Tensors sources, weights;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto expected = stored.find(fmt::format("{}/out{}", s.key, i));
    if (expected == stored.end()) return fmt::format("PyTorch has no output {}", i);
    std::string wrong =
        compare(outputs[i].detach(), expected->second, doubled(tolerance_of(*s.op_case, *s.sample)), s.sample->terms);
    if (!wrong.empty()) return fmt::format("output {} {}", i, wrong);
    if (!outputs[i].requires_grad()) continue;
    sources.push_back(outputs[i]);
    weights.push_back(
        formula(outputs[i].numel(), 1000 + static_cast<int64_t>(i)).to(outputs[i].dtype()).view(outputs[i].sizes()));
  }
  if (wanted.empty() || stored.contains(s.key + "/no_gradients")) return {};
  if (sources.empty()) return "no output requires grad although an input does";
  const Tensors gradients = grad(sources, wanted, {.allow_unused = true}, weights);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto expected = stored.find(fmt::format("{}/grad{}", s.key, wanted_index[i]));
    if (expected == stored.end()) return fmt::format("there is no stored gradient {}", wanted_index[i]);
    const Tensor gradient = gradients[i].defined() ? gradients[i] : zeros_like(wanted[i]);
    std::string wrong = compare(gradient, expected->second, doubled(grad_tolerance_of(*s.op_case, *s.sample)),
                                grad_terms_of(*s.sample));
    if (!wrong.empty()) return fmt::format("gradient {} {}", wanted_index[i], wrong);
  }
  return {};
}

}  // namespace

TEST_CASE("operations and gradients match PyTorch's stored values") {
  const std::vector<OpCase> cases = all_cases();
  const std::vector<StoredSample> samples = stored_samples(cases);
  if (const char* file = std::getenv("LEVIN_DUMP_INPUTS")) {
    std::string text;
    for (const StoredSample& s : samples)
      text += fmt::format("case {}\nfingerprint {}\n{}end\n", s.key, fingerprint(dumped(s)), dumped(s));
    io::write_file(file, text);
    return;
  }
  const StoredValues stored = read_stored_values("operations.txt");
  const char* filter = std::getenv("LEVIN_CASE");
  for (const StoredSample& s : samples) {
    if (filter && s.key.find(filter) == std::string::npos) continue;
    std::string wrong;
    try {
      wrong = compare_stored(s, stored);
    } catch (const std::exception& e) {
      wrong = e.what();
    }
    CHECK_MESSAGE(wrong.empty(), s.key, " (", s.expression, "): ", wrong);
  }
}
