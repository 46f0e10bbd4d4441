#pragma once
// Adds a differentiable operation to the graph:
//
//   Tensor mul(const Tensor& a, const Tensor& b) {
//     Tensor y = ...;                                              // compute
//     if (Context* c = record("mul", y, {a, b}, [](Context& k, const Tensor& g) -> Grads {
//           return {k.needs(0) ? g * k.saved(1) : Tensor(), k.needs(1) ? g * k.saved(0) : Tensor()};
//         }))
//       c->save(a, b);                                             // only when recorded
//     return y;
//   }
//
// Backward may return a gradient in the broadcast shape or in another float type: the engine reduces and converts it
// once.

#include <levin/autograd/node.h>

namespace levin {

/// A tensor argument that is passed without a copy.
struct InputRef {
  /// Refers to t, which must outlive the call.
  InputRef(const Tensor& t) : tensor(&t) {}  // NOLINT: implicit
  const Tensor* tensor;  ///< never null
};

/// Adds `output` (just computed, floating or complex) to the graph. Null if recording is off or no input requires grad.
/// Undefined inputs are allowed and get no gradient.
Context* record(const char* name, const Tensor& output, std::initializer_list<InputRef> inputs, BackwardFn backward);
Context* record(const char* name, const Tensor& output, std::span<const Tensor> inputs, BackwardFn backward);
/// Records an operation with several outputs; outputs that are not floating are not added to the graph.
Context* record(const char* name, std::initializer_list<InputRef> outputs, std::initializer_list<InputRef> inputs,
                MultiBackwardFn backward);
Context* record(const char* name, std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                MultiBackwardFn backward);

/// True if an operation on these inputs would be recorded.
bool would_record(std::initializer_list<InputRef> inputs);

/// Returns a view of `x`'s memory that knows its base, so that in-place operations on the view reach the base's
/// history. Follow it with record(), whose backward maps the view's gradient to x's. A `dtype` other than x's, for
/// views of complex numbers as real ones and back, has strides and offset in its own elements.
Tensor make_view(const Tensor& x, const Shape& sizes, const Shape& strides, int64_t offset,
                 std::optional<DType> dtype = std::nullopt);

/// Throws GradError if `x` must not be modified in place (a leaf that requires grad, a view of one, an expanded
/// tensor). Returns true if the operation has to be recorded because x or one of `others` requires grad.
bool begin_in_place(const char* name, const Tensor& x, std::initializer_list<InputRef> others = {});
/// True if nobody but this handle, not even the graph, will read x, so that an in-place operation may write a result to
/// its memory: a contiguous tensor that is the only one on memory of the engine, and not a leaf that requires grad.
bool is_spare(const Tensor& x);
/// Must be called after x's memory was changed without recording.
void end_in_place(const Tensor& x);

/// Replaces x by f(x) in place, recorded: `f` computes a new tensor from x's value with public operations, and the
/// result is copied into x.
const Tensor& replace_in_place(const char* name, const Tensor& x, const std::function<Tensor(const Tensor&)>& f);

}  // namespace levin
