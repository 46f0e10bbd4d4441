#pragma once
// A number that is not a tensor. It keeps its category, so that it never widens a tensor of the same category.

#include <levin/core/dtype.h>

namespace levin {

/// A bool, an integer (held as int64) or a floating-point number (held as double).
class Scalar {
 public:
  /// Convert from a number; the category is that of its C++ type.
  Scalar(bool v) : integer_(v), kind_(Kind::boolean) {}  // NOLINT: implicit, so that literals work in expressions
  template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  Scalar(T v) : integer_(static_cast<int64_t>(v)), kind_(Kind::integer) {}  // NOLINT
  template <class T>
    requires(std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
  Scalar(T v) : floating_(static_cast<double>(v)), kind_(Kind::floating) {}  // NOLINT

  /// True for the category in the name; bool is not integral.
  bool is_floating() const { return kind_ == Kind::floating; }
  bool is_integral() const { return kind_ == Kind::integer; }
  bool is_bool() const { return kind_ == Kind::boolean; }

  /// Returns the value as T; a floating value is truncated towards zero for integer T, and compared with zero for bool.
  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, bool>) {
      return is_floating() ? floating_ != 0.0 : integer_ != 0;
    } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      return T(is_floating() ? static_cast<float>(floating_) : static_cast<float>(integer_));
    } else {
      return is_floating() ? static_cast<T>(floating_) : static_cast<T>(integer_);
    }
  }

  /// Returns the result type of an operation between a tensor of type `tensor` and this number (PyTorch's rule).
  DType promote_with(DType tensor) const {
    if (is_floating()) return is_differentiable(tensor) ? tensor : default_dtype();
    if (is_integral()) return tensor == DType::boolean ? DType::i64 : tensor;
    return tensor;
  }

 private:
  enum class Kind : std::uint8_t { boolean, integer, floating };
  union {
    double floating_;
    int64_t integer_;
  };
  Kind kind_;
};

}  // namespace levin
