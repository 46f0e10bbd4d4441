#pragma once
// Axes of reductions and scans, and options of operations.

#include <levin/core/device.h>
#include <levin/core/shape.h>

#include <concepts>
#include <optional>

namespace levin {

class Generator;

/// Axes of an operation, negative ones counted from the end. A single one needs no braces: sum(x, 1), sum(x, {0, 2}).
class Axes : public Shape {
 public:
  /// Takes the arguments of a Shape, another list of axes, or a single axis. The range is checked where they are used.
  using Shape::Shape;
  constexpr Axes() = default;
  constexpr Axes(const Shape& axes) : Shape(axes) {}  // NOLINT: implicit
  template <std::integral I>
    requires(!std::same_as<I, bool>)  // sum(x, true) would take a keepdim for an axis
  constexpr Axes(I axis) : Shape({static_cast<int64_t>(axis)}) {}  // NOLINT: implicit
};

/// Arguments of reductions beside the axes.
struct ReduceOptions {
  bool keepdim = false;           ///< reduced axes stay, with size 1
  std::optional<DType> dtype{};   ///< x is converted to it first; the result has it
};

/// A dtype that must be named, so that `sum(x, {})` means no axes rather than no options.
struct RequiredDType {
  DType value;  ///< the dtype
  /// Converts from a dtype.
  constexpr RequiredDType(DType t) : value(t) {}  // NOLINT: implicit
};
/// The dtype of a result: sum(x, {.dtype = kFloat64}). x is converted to it first.
struct DTypeOptions {
  RequiredDType dtype;
};

/// Arguments of var and std beside the axes.
struct VarOptions {
  double correction = 1.0;  ///< Bessel's; the sum is divided by n - correction
  bool keepdim = false;     ///< reduced axes stay, with size 1
};

/// Options of creation functions; absent fields have default values.
struct TensorOptions {
  std::optional<DType> dtype{};    ///< default_dtype(), or the data's own type; of x in zeros_like(x) and the others
  std::optional<Device> device{};  ///< the CPU; x's device in zeros_like(x) and the others
  bool requires_grad = false;      ///< the new tensor is a leaf for which gradients are computed
  Generator* generator = nullptr;  ///< default_generator(); random functions only
};

/// Arguments of Tensor::backward and levin::backward.
struct BackwardOptions {
  bool retain_graph = false;  ///< keeps what the graph saved, so that backward can run again; implied by create_graph
  bool create_graph = false;  ///< records the backward itself, for gradients of gradients
};

/// How scatter_reduce combines values.
enum class ScatterReduce { sum, mean, prod, amax, amin };

/// Arguments of index_put.
struct IndexPutOptions {
  bool accumulate = false;  ///< adds the values instead; positions that repeat are summed, in a fixed order
};

}  // namespace levin
