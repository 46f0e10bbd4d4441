#include "program.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>

#include <fmt/format.h>

#include <cstring>
#include <unordered_set>

namespace levin::interop::onnx {

namespace {

/// One trace; its numbers are not yet functions of the batch size.
class Recorder : public Tracer {
 public:
  struct Call {
    TracedOperation operation;
    std::vector<int> inputs, outputs;
  };

  explicit Recorder(const Knows& knows) : knows_(knows) {}

  void add_input(const Tensor& t) { add(t, Origin::input); }
  void add_named(const std::string& name, const Tensor& t) { names_.emplace(t.impl(), name); }

  bool knows(const TracedOperation& operation) override { return knows_(operation); }

  void computed(const TracedOperation& operation, std::span<const Tensor> outputs) override {
    Call call{{operation.name, {}, operation.attributes}, {}, {}};
    for (const Tensor& t : operation.inputs) call.inputs.push_back(use(t, operation.name));
    const bool in_place = std::strcmp(operation.name, "copy_") == 0;
    for (const Tensor& t : outputs) {
      if (!t.defined()) {
        call.outputs.push_back(-1);
      } else if (const auto known = places_.find(t.impl()); known != places_.end() && !in_place) {
        call.outputs.push_back(known->second);  // the operation returned one of its inputs
      } else {
        call.outputs.push_back(add(t, Origin::step));
        computed_.insert(t.storage().get());
      }
    }
    calls.push_back(std::move(call));
  }

  /// Returns the number of a value that is read.
  int use(const Tensor& t, const char* op) {
    if (!t.defined()) return -1;
    const auto known = places_.find(t.impl());
    if (known == places_.end()) return add_outside(t, op);
    if (versions_[static_cast<std::size_t>(known->second)] != t.version())
      throw ValueError(
          fmt::format("[export_onnx] {} reads a tensor of shape {} that was edited in place through "
                      "another view of its memory, which ONNX cannot express. Use an operation that "
                      "returns a new tensor.",
                      op, to_string(t.sizes())));
    return known->second;
  }

  std::vector<ProgramValue> values;
  std::vector<Call> calls;

 private:
  int add(const Tensor& t, Origin origin, const std::string& name = {}) {
    const auto place = static_cast<int>(values.size());
    values.push_back({origin, t, {}, t.dtype(), name});
    versions_.push_back(t.version());
    places_[t.impl()] = place;
    return place;
  }

  int add_outside(const Tensor& t, const char* op) {
    if (const auto named = names_.find(t.impl()); named != names_.end())
      return add(t, Origin::parameter, named->second);
    const std::string made_by = t.grad_fn();
    if (!made_by.empty() || computed_.contains(t.storage().get()))
      throw ValueError(
          fmt::format("[export_onnx] {} reads the result of {}, which is not traced. Replace it by "
                      "operations that ONNX has.",
                      op, made_by.empty() ? "an operation" : made_by));
    return add(t, Origin::constant);
  }

  const Knows& knows_;
  std::unordered_map<const TensorImpl*, int> places_;
  std::vector<std::uint32_t> versions_;
  std::unordered_map<const TensorImpl*, std::string> names_;
  std::unordered_set<const Storage*> computed_;
};

struct Trace {
  explicit Trace(const Knows& knows) : recorder(knows) {}
  Recorder recorder;
  std::vector<int> outputs;
};

/// Inputs get a history, so that the results of operations that announce nothing can be told from constants.
std::vector<Tensor> with_history(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> result;
  for (const Tensor& t : inputs) {
    Tensor copy = t.detach().clone();
    if (t.is_floating()) copy = clone(copy.requires_grad_());
    result.push_back(copy);
  }
  return result;
}

void run(Trace& trace, const Forward& forward, const std::vector<Tensor>& given, const nn::Module* module) {
  const enable_grad guard;
  const std::vector<Tensor> inputs = with_history(given);
  if (module) {
    for (const auto& [name, t] : module->named_parameters()) trace.recorder.add_named(name, t);
    for (const auto& [name, t] : module->named_buffers()) trace.recorder.add_named(name, t);
  }
  for (const Tensor& t : inputs) trace.recorder.add_input(t);
  const TraceGuard tracing(&trace.recorder);
  for (const Tensor& t : forward(inputs))
    if (t.defined()) trace.outputs.push_back(trace.recorder.use(t, "the output"));
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.sizes() != b.sizes()) return false;
  const TraceGuard off(nullptr);
  const Tensor x = a.detach().cpu().contiguous(), y = b.detach().cpu().contiguous();
  return x.numel() == 0 ||
         std::memcmp(x.raw_data(), y.raw_data(), static_cast<std::size_t>(x.numel() * size_of(x.dtype()))) == 0;
}

/// Joins two traces.
class Joiner {
 public:
  Joiner(const Trace& a, const Trace& b) : a_(a), b_(b) {}

  Program join(std::size_t inputs) {
    const auto &calls = a_.recorder.calls, &others = b_.recorder.calls;
    for (std::size_t i = 0; i < std::max(calls.size(), others.size()); ++i) {
      if (i >= calls.size() || i >= others.size() || !same_call(calls[i], others[i])) {
        const char* name = i < calls.size() ? calls[i].operation.name : "the end";
        const char* other = i < others.size() ? others[i].operation.name : "the end";
        refuse(i, std::strcmp(name, other) == 0 ? fmt::format("calls {} with other tensors", name)
                                                : fmt::format("calls {} in one and {} in the other", name, other));
      }
    }
    if (a_.outputs != b_.outputs) refuse(calls.size(), "returns other tensors");
    for (std::size_t v = 0; v < a_.recorder.values.size(); ++v) join_value(v);
    for (std::size_t i = 0; i < calls.size(); ++i) join_call(i, calls[i], others[i]);
    program_.outputs = a_.outputs;
    for (std::size_t i = 0; i < inputs; ++i) program_.inputs.push_back(static_cast<int>(i));
    for (ProgramValue& v : program_.values)
      if (v.origin == Origin::input || v.origin == Origin::step) v.tensor = {};
    return std::move(program_);
  }

 private:
  [[noreturn]] static void refuse(std::size_t step, const std::string& difference) {
    throw ValueError(
        fmt::format("[export_onnx] with batches of {} and {}, and other values, forward {} as operation "
                    "{}. Export with .dynamic_batch = false, or let forward not depend on sizes and "
                    "values.",
                    kTracedBatches[0], kTracedBatches[1], difference, step + 1));
  }

  static bool same_call(const Recorder::Call& a, const Recorder::Call& b) {
    bool same = std::strcmp(a.operation.name, b.operation.name) == 0 && a.inputs == b.inputs &&
                a.outputs == b.outputs && a.operation.attributes.size() == b.operation.attributes.size();
    for (std::size_t i = 0; same && i < a.operation.attributes.size(); ++i) {
      const auto &x = a.operation.attributes[i].value, &y = b.operation.attributes[i].value;
      same = x.index() == y.index();
      if (const auto* list = std::get_if<std::vector<int64_t>>(&x))
        same = same && list->size() == std::get<std::vector<int64_t>>(y).size();
    }
    return same;
  }

  static Extent join(int64_t a, int64_t b) {
    const int64_t slope = (b - a) / (kTracedBatches[1] - kTracedBatches[0]);
    return {slope, a - slope * kTracedBatches[0]};
  }

  void join_value(std::size_t v) {
    ProgramValue value = a_.recorder.values[v];
    const Tensor &x = value.tensor, &y = b_.recorder.values[v].tensor;
    if (value.origin != b_.recorder.values[v].origin || x.dim() != y.dim() || x.dtype() != y.dtype())
      throw ValueError(
          fmt::format("[export_onnx] a tensor is {} {} with a batch of {}, and {} {} with one of {}. Export "
                      "with .dynamic_batch = false.",
                      name_of(x.dtype()), to_string(x.sizes()), kTracedBatches[0], name_of(y.dtype()),
                      to_string(y.sizes()), kTracedBatches[1]));
    for (int d = 0; d < x.dim(); ++d) value.sizes.push_back(join(x.sizes()[d], y.sizes()[d]));
    if (value.origin == Origin::constant && !same_bits(x, y))
      throw ValueError(
          fmt::format("[export_onnx] a tensor of shape {} depends on the inputs, but no operation that is "
                      "traced computed it. Compute it by operations on tensors.",
                      to_string(x.sizes())));
    program_.values.push_back(std::move(value));
  }

  void join_call(std::size_t number, const Recorder::Call& a, const Recorder::Call& b) {
    Step step{a.operation.name, a.inputs, a.outputs};
    for (std::size_t i = 0; i < a.operation.attributes.size(); ++i) {
      const TraceAttribute &x = a.operation.attributes[i], &y = b.operation.attributes[i];
      auto& joined = step.attributes[x.name];
      if (const auto* real = std::get_if<double>(&x.value)) {
        if (std::memcmp(real, &std::get<double>(y.value), sizeof *real) != 0)
          refuse(number, fmt::format("calls {} with {} {} in one and {} in the other", step.op, x.name, *real,
                                     std::get<double>(y.value)));
        joined = *real;
      } else if (const auto* integer = std::get_if<int64_t>(&x.value)) {
        joined = Extents{join(*integer, std::get<int64_t>(y.value))};
      } else {
        const auto &xs = std::get<2>(x.value), &ys = std::get<2>(y.value);
        Extents list;
        for (std::size_t k = 0; k < xs.size(); ++k) list.push_back(join(xs[k], ys[k]));
        joined = list;
      }
    }
    if (!folded(step)) program_.steps.push_back(std::move(step));
  }

  /// Turns the results of a step that reads constants only, and whose values are the same in both traces, into
  /// constants.
  bool folded(const Step& step) {
    for (const int i : step.inputs)
      if (i >= 0 && program_.values[static_cast<std::size_t>(i)].origin != Origin::constant) return false;
    for (const int o : step.outputs) {
      if (o < 0) continue;
      const auto at = static_cast<std::size_t>(o);
      if (program_.values[at].origin == Origin::parameter) return false;
      if (!same_bits(a_.recorder.values[at].tensor, b_.recorder.values[at].tensor)) return false;
    }
    for (const int o : step.outputs)
      if (o >= 0) program_.values[static_cast<std::size_t>(o)].origin = Origin::constant;
    return true;
  }

  const Trace &a_, &b_;
  Program program_;
};

}  // namespace

Program trace_program(const Forward& forward, const TwoBatches& inputs, const nn::Module* module, const Knows& knows) {
  Trace first(knows), second(knows);
  run(first, forward, inputs[0], module);
  run(second, forward, inputs[1], module);
  return Joiner(first, second).join(inputs[0].size());
}

}  // namespace levin::interop::onnx
