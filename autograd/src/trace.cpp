#include <levin/autograd/trace.h>

namespace levin {

using detail::trace_state;

TraceAttribute::TraceAttribute(const char* name_, const Scalar& v) : name(name_) {
  if (v.is_floating())
    value = v.to<double>();
  else
    value = v.to<int64_t>();
}

namespace {

std::vector<Tensor> tensors_of(std::initializer_list<InputRef> list) {
  std::vector<Tensor> tensors;
  for (const InputRef& r : list) tensors.push_back(*r.tensor);
  return tensors;
}

}  // namespace

void trace_operation(const char* name, std::initializer_list<InputRef> inputs, std::initializer_list<InputRef> outputs,
                     std::initializer_list<TraceAttribute> attributes) {
  trace_state.tracer->computed({name, tensors_of(inputs), attributes}, tensors_of(outputs));
}

void trace_operation(const char* name, std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                     std::initializer_list<TraceAttribute> attributes) {
  trace_state.tracer->computed({name, {inputs.begin(), inputs.end()}, attributes}, outputs);
}

bool TraceScope::opens(const char* name, std::initializer_list<InputRef> inputs,
                       std::initializer_list<TraceAttribute> attributes) {
  if (trace_state.entering) {
    trace_state.entering = false;
    return false;
  }
  before_ = trace_state;
  open_ = true;
  TracedOperation operation{name, tensors_of(inputs), attributes};
  if (before_.tracer->knows(operation)) {
    hidden_ = std::move(operation);
    trace_state.tracer = nullptr;
  } else {
    trace_state.entering = true;
  }
  return true;
}

TraceScope::~TraceScope() {
  if (open_) trace_state = before_;
}

Tensor TraceScope::closes(Tensor output) { return closes(std::vector{std::move(output)})[0]; }

std::vector<Tensor> TraceScope::closes(std::vector<Tensor> outputs) {
  trace_state = before_;
  open_ = false;
  if (hidden_) trace_state.tracer->computed(*hidden_, outputs);
  return outputs;
}

}  // namespace levin
