#pragma once
// Tracing: public operations announce themselves to the thread's Tracer, which learns name, inputs, outputs and
// attributes. Exporters write graphs with it.
//
// A primitive operation announces itself when it has computed:
//
//   LEVIN_TRACE("cumsum", {x}, {y}, {{"axis", axis}});
//
// An operation that consists of others announces itself in its first line. If the tracer knows it, the others stay
// hidden; if not, they announce themselves:
//
//   Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dOptions& o) {
//     LEVIN_TRACE_CALL(conv1d(x, weight, bias, o), "conv1d", {x, weight, bias}, {{"stride", o.stride}});
//
// While nothing is traced, either line costs one branch.

#include <levin/autograd/record.h>
#include <levin/core/scalar.h>

#include <string_view>
#include <variant>

namespace levin {

/// A named argument of an operation that is no tensor: whole numbers (also bool, enumerators and DType), real numbers,
/// or a list of whole numbers.
struct TraceAttribute {
  /// The value of an attribute.
  using Value = std::variant<int64_t, double, std::vector<int64_t>>;

  /// Takes a whole number, a bool, an enumerator or a DType, a real number, a Scalar of either kind, or a list.
  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  TraceAttribute(const char* name_, T v) : name(name_), value(static_cast<int64_t>(v)) {}
  TraceAttribute(const char* name_, double v) : name(name_), value(v) {}
  TraceAttribute(const char* name_, const Scalar& v);
  TraceAttribute(const char* name_, std::span<const int64_t> v) : name(name_), value(std::vector(v.begin(), v.end())) {}
  TraceAttribute(const char* name_, const Shape& v) : TraceAttribute(name_, std::span<const int64_t>(v)) {}
  template <template <std::size_t> class Tuple, std::size_t N>
  TraceAttribute(const char* name_, const Tuple<N>& v) : name(name_), value(std::vector<int64_t>()) {
    for (std::size_t i = 0; i < N; ++i) std::get<2>(value).push_back(v[i]);
  }

  const char* name;  ///< as the operation's argument: "axis"
  Value value;       ///< a Scalar is a whole or a real number, as it was given
};

/// An operation that announces itself.
struct TracedOperation {
  const char* name;                        ///< that of the public function: "conv2d"
  std::vector<Tensor> inputs;              ///< absent ones are undefined
  std::vector<TraceAttribute> attributes;  ///< arguments that are no tensors
};

/// Base class of what listens to operations, such as an exporter.
class Tracer {
 public:
  virtual ~Tracer() = default;
  /// Asked before an operation that consists of others runs: true if it is to be announced as one.
  virtual bool knows(const TracedOperation& operation) = 0;
  /// Called after a primitive operation, or one that the tracer knows, has run. An in-place operation announces a
  /// "copy_" whose output is the edited tensor.
  virtual void computed(const TracedOperation& operation, std::span<const Tensor> outputs) = 0;
};

namespace detail {
struct TraceState {
  Tracer* tracer = nullptr;
  bool entering = false;  ///< the operation that announced itself calls itself now, to run
};
inline constinit thread_local TraceState trace_state{};
}  // namespace detail

/// True where operations of this thread are announced: a tracer is set, and no operation that it knows is running.
inline bool tracing() { return detail::trace_state.tracer != nullptr; }

/// Operations of this thread are announced to the tracer, or to none, for a scope: `TraceGuard guard(&tracer);`
class TraceGuard {
 public:
  explicit TraceGuard(Tracer* tracer) : before_(detail::trace_state) { detail::trace_state = {tracer, false}; }
  ~TraceGuard() { detail::trace_state = before_; }
  TraceGuard(const TraceGuard&) = delete;
  TraceGuard& operator=(const TraceGuard&) = delete;

 private:
  detail::TraceState before_;
};

/// Announces a primitive operation; called by LEVIN_TRACE.
void trace_operation(const char* name, std::initializer_list<InputRef> inputs, std::initializer_list<InputRef> outputs,
                     std::initializer_list<TraceAttribute> attributes = {});
void trace_operation(const char* name, std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                     std::initializer_list<TraceAttribute> attributes = {});

/// Announces an operation that consists of others; used by LEVIN_TRACE_CALL.
class TraceScope {
 public:
  TraceScope() = default;
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

  /// Returns false inside the call that an open scope makes, which has to run the operation.
  bool opens(const char* name, std::initializer_list<InputRef> inputs,
             std::initializer_list<TraceAttribute> attributes = {});
  Tensor closes(Tensor output);
  std::vector<Tensor> closes(std::vector<Tensor> outputs);

 private:
  std::optional<TracedOperation> hidden_{};
  detail::TraceState before_{};
  bool open_ = false;
};

}  // namespace levin

#define LEVIN_TRACE(...)         \
  if (tracing()) [[unlikely]]    \
  trace_operation(__VA_ARGS__)

#define LEVIN_TRACE_CALL(call, ...) \
  if (tracing()) [[unlikely]]       \
    if (TraceScope trace_scope; trace_scope.opens(__VA_ARGS__)) return trace_scope.closes(call)
