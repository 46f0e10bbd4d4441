// The modes in which an operation case is run.

#include "support/ops/op_runs.h"
#include "support/small_cases.h"

#include <levin/autograd/engine.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>
#include <levin/core/allocator.h>
#include <levin/core/parallel.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace levin::test {

namespace {

constexpr int64_t kJacobianElements = 64;  // a sample with more is not differentiated by finite differences

std::string forward_once(const OpCase& c, const Sample& s, DType dtype, Layout layout) {
  const Tensors inputs = make_inputs(c, s, dtype, layout);
  const TensorFunction& reference = s.reference ? s.reference : c.reference;
  const Tensors actual = op_of(c, s)(inputs);
  const Tensors expected = reference(reference_inputs(s, inputs));
  if (actual.size() != expected.size())
    return fmt::format("gives {} outputs, the reference {}", actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const Output rule = c.outputs[std::min(i, c.outputs.size() - 1)];
    const DType type = expected_type(rule, dtype);
    if (rule != Output::any && actual[i].dtype() != type)
      return fmt::format("output {} is {}, expected {}", i, name_of(actual[i].dtype()), name_of(type));
    const std::string difference = compare(actual[i], expected[i], tolerance_of(c, s), s.terms);
    if (!difference.empty()) return fmt::format("output {} {}", i, difference);
  }
  return {};
}

/// f64 leaves, and the function of the differentiable ones.
struct Differentiable {
  TensorFunction f;
  Tensors inputs;
};

Differentiable differentiable(const OpCase& c, const Sample& s, Layout layout) {
  Differentiable d;
  d.inputs = make_bases(c, s, DType::f64, layout);
  for (std::size_t i = 0; i < d.inputs.size(); ++i)
    if (wants_gradient(s.inputs[i], DType::f64)) d.inputs[i].requires_grad_();
  d.f = [&c, &s, layout](const Tensors& bases) { return op_of(c, s)(arrange(s, bases, layout)); };
  return d;
}

/// Samples small enough for finite differences.
std::vector<const Sample*> jacobian_samples(const OpCase& c) {
  std::vector<const Sample*> result;
  for (const Sample& s : c.samples) {
    int64_t elements = 0;
    bool empty = false;
    for (const InputSpec& i : s.inputs)
      if (wants_gradient(i, DType::f64)) {
        elements += i.sizes.numel();
        empty |= i.sizes.numel() == 0;
      }
    if (elements > 0 && !empty && elements <= kJacobianElements) result.push_back(&s);
  }
  return result;
}

/// A single sample may have a gradient of zeros (relu of one negative number), a whole case may not.
class ZeroCount {
 public:
  /// Passes errors on, except for zeros.
  std::string sift(std::string wrong) {
    const bool zeros = wrong.find("proves nothing") != std::string::npos;
    proved_ |= !zeros;
    return zeros ? std::string() : std::move(wrong);
  }
  std::string verdict(const OpCase& c) const {
    return proved_ ? std::string() : c.name + ": every gradient of every sample is zero, which proves nothing";
  }

 private:
  bool proved_ = false;
};

/// The layouts of a case's sample i for finite differences; with small_cases() the samples share them out.
std::vector<Layout> layouts_of(const OpCase& c, std::size_t i) {
  if (!small_cases()) return c.layouts;
  return {c.layouts[i % c.layouts.size()]};
}

bool has_type(const OpCase& c, DType t) { return std::find(c.dtypes.begin(), c.dtypes.end(), t) != c.dtypes.end(); }

std::string zero_gradients(const OpCase& c, const Sample& s) {
  for (const Tensor& g : gradients(c, s, make_inputs(c, s, DType::f64), DType::f64, DType::f64))
    if (g.defined())
      for (const double v : g.to_vector<double>())
        if (v != 0) return fmt::format("has a gradient of {} where it is zero by definition", v);
  return {};
}

std::uint64_t hash_bits(const Tensors& tensors) {
  std::uint64_t h = 0xcbf29ce484222325ull;
  for (const Tensor& t : tensors) {
    if (!t.defined()) continue;
    const Tensor whole = t.contiguous();
    const auto* bytes = static_cast<const unsigned char*>(whole.raw_data());
    const int64_t size = whole.numel() * size_of(whole.dtype());
    for (int64_t i = 0; i < size; ++i) h = (h ^ bytes[i]) * 0x100000001b3ull;
  }
  return h;
}

}  // namespace

std::string check_forward(const OpCase& c) {
  const auto checked = [&](const Sample& s, DType dtype, Layout layout) -> std::string {
    if (!s.reference && !c.reference) return {};
    const std::size_t before = cpu_allocator::guard_violations();
    cpu_allocator::set_guards(true);
    std::string wrong = guarded([&] { return forward_once(c, s, dtype, layout); });
    cpu_allocator::set_guards(false);
    if (wrong.empty() && cpu_allocator::guard_violations() != before) wrong = "writes outside of a buffer";
    return wrong.empty() ? wrong : describe(c, s, dtype, layout) + ": " + wrong;
  };
  const auto chosen = variants(c);
  for (std::size_t i = 0; i < c.samples.size(); ++i)
    for (const auto& [dtype, layout] : chosen[i])
      if (std::string wrong = checked(c.samples[i], dtype, layout); !wrong.empty()) return wrong;
  for (const std::vector<Sample>* list : {&c.large, &c.limits})
    for (const Sample& s : *list)
      if (std::string wrong = checked(s, has_type(c, DType::f32) ? DType::f32 : c.dtypes[0], Layout::contiguous);
          !wrong.empty())
        return wrong;
  return {};
}

std::string check_gradients(const OpCase& c) {
  if (!c.differentiable) return {};
  const auto samples = jacobian_samples(c);
  if (samples.empty())
    return fmt::format("{} is differentiable but has no sample of 1 to {} differentiable elements", c.name,
                       kJacobianElements);
  ZeroCount zeros;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Sample* const s = samples[i];
    for (const Layout layout : layouts_of(c, i)) {
      const std::string wrong = zeros.sift(guarded([&]() -> std::string {
        if (c.zero_gradient) return zero_gradients(c, *s);
        const Differentiable d = differentiable(c, *s, layout);
        return gradcheck(d.f, d.inputs);
      }));
      if (!wrong.empty()) return describe(c, *s, DType::f64, layout) + ": " + wrong;
    }
  }
  if (std::string wrong = zeros.verdict(c); !wrong.empty()) return wrong;
  if (c.zero_gradient) return {};
  for (const DType dtype : c.grad_dtypes) {
    if (!has_type(c, dtype)) continue;
    for (const Sample& s : c.samples)
      if (std::string wrong = guarded([&] { return narrow_gradients(c, s, dtype); }); !wrong.empty())
        return describe(c, s, dtype, Layout::contiguous) + ": " + wrong;
  }
  return {};
}

std::string check_second_gradients(const OpCase& c) {
  if (!c.differentiable || !c.twice || c.zero_gradient) return {};
  ZeroCount zeros;
  for (const Sample* s : jacobian_samples(c)) {
    const std::string wrong = zeros.sift(guarded([&] {
      const Differentiable d = differentiable(c, *s, Layout::contiguous);
      return gradgradcheck(d.f, d.inputs);
    }));
    if (!wrong.empty()) return describe(c, *s, DType::f64, Layout::contiguous) + ", second derivative: " + wrong;
    if (small_cases() && zeros.verdict(c).empty()) break;
  }
  return zeros.verdict(c);
}

std::string check_thread_counts(const OpCase& c) {
  const int before = num_threads();
  const DType dtype = has_type(c, DType::f32) ? DType::f32 : c.dtypes[0];
  std::string wrong;
  for (const Sample& s : c.large.empty() ? c.samples : c.large) {
    if (small_cases() && !c.large.empty() && &s != c.large.data()) break;
    wrong = guarded([&]() -> std::string {
      const Tensors inputs = make_inputs(c, s, dtype);
      std::uint64_t first = 0;
      for (const int threads : small_cases() ? std::vector{1, 3} : std::vector{1, 2, 3, 7}) {
        set_num_threads(threads);
        manual_seed(1);
        Tensors all = [&] {
          no_grad guard;
          return op_of(c, s)(inputs);
        }();
        if (c.differentiable && is_floating(dtype))
          for (const Tensor& g : gradients(c, s, inputs, dtype, dtype)) all.push_back(g);
        const std::uint64_t h = hash_bits(all);
        if (threads == 1) first = h;
        if (h != first) return fmt::format("has other bits with {} threads than with 1", threads);
      }
      return {};
    });
    if (!wrong.empty()) {
      wrong = describe(c, s, dtype, Layout::contiguous) + ": " + wrong;
      break;
    }
  }
  set_num_threads(before);
  return wrong;
}

std::string check_errors(const OpCase& c) {
  for (const ErrorSample& e : c.errors) {
    try {
      e.run();
    } catch (const Error& error) {
      if (std::string(error.what()).find(e.expected) != std::string::npos) continue;
      return fmt::format("{}: refuses with \"{}\", expected \"{}\"", c.name, error.what(), e.expected);
    } catch (const std::exception& error) {
      return fmt::format("{}: throws \"{}\", which is no levin::Error", c.name, error.what());
    }
    return fmt::format("{}: accepts what it should refuse with \"{}\"", c.name, e.expected);
  }
  return {};
}

}  // namespace levin::test
