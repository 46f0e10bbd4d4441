#pragma once
// Axes and options of reductions and scans.

#include <levin/core/shape.h>

#include <concepts>
#include <optional>

namespace levin {

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

}  // namespace levin
