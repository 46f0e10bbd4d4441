#pragma once
// Sizes and strides of tensors with up to eight dimensions, stored inline.

#include <levin/core/dtype.h>

#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <span>

namespace levin {

inline constexpr int kMaxDims = 8;  ///< largest number of dimensions of a tensor

/// A short list of integers: the sizes or strides of a tensor, or a list of axes. It holds at most kMaxDims values;
/// more throw ShapeError. Positions in the list are not checked.
class Shape {
 public:
  constexpr Shape() = default;
  /// Lists these values.
  constexpr Shape(std::initializer_list<int64_t> values) {
    for (const int64_t v : values) push_back(v);
  }
  constexpr Shape(std::span<const int64_t> values) {  // NOLINT: implicit
    for (std::size_t i = 0; i < values.size(); ++i) push_back(values[i]);
  }
  template <std::input_iterator It>
  constexpr Shape(It first, It last) {
    for (; first != last; ++first) push_back(static_cast<int64_t>(*first));
  }
  /// Returns a list of `dims` times the value.
  static constexpr Shape filled(int dims, int64_t value) {
    Shape s;
    for (int i = 0; i < dims; ++i) s.push_back(value);
    return s;
  }

  /// Number of values, and whether there are none.
  constexpr int size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr int64_t& operator[](int i) { return values_[i]; }
  constexpr int64_t operator[](int i) const { return values_[i]; }
  /// Returns the last value; the list must not be empty.
  constexpr int64_t back() const { return values_[size_ - 1]; }

  constexpr const int64_t* begin() const { return values_; }
  constexpr const int64_t* end() const { return values_ + size_; }
  constexpr int64_t* begin() { return values_; }
  constexpr int64_t* end() { return values_ + size_; }
  /// Returns the values in the Shape's own memory.
  constexpr operator std::span<const int64_t>() const { return {values_, static_cast<std::size_t>(size_)}; }  // NOLINT

  /// Appends a value, or inserts it before position `at` (0 to size()); throws ShapeError beyond kMaxDims values.
  constexpr void push_back(int64_t v) {
    if (size_ == kMaxDims) too_many();
    values_[size_++] = v;
  }
  constexpr void insert(int at, int64_t v) {
    push_back(v);
    for (int i = size_ - 1; i > at; --i) values_[i] = values_[i - 1];
    values_[at] = v;
  }
  /// Removes the value at position `at`.
  constexpr void erase(int at) {
    for (int i = at; i + 1 < size_; ++i) values_[i] = values_[i + 1];
    --size_;
  }

  /// Returns the product of all values; 1 when empty.
  constexpr int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < size_; ++i) n *= values_[i];
    return n;
  }

  friend constexpr bool operator==(const Shape& a, const Shape& b) {
    if (a.size_ != b.size_) return false;
    for (int i = 0; i < a.size_; ++i)
      if (a.values_[i] != b.values_[i]) return false;
    return true;
  }

 private:
  [[noreturn]] static void too_many();
  int64_t values_[kMaxDims] = {};
  int size_ = 0;
};

/// Returns "(64, 784)", "(3,)", "()", as PyTorch and NumPy print shapes.
std::string to_string(const Shape& shape);
std::ostream& operator<<(std::ostream& out, const Shape& shape);

/// Returns row-major strides, in elements; a size of 0 counts as 1.
Shape contiguous_strides(const Shape& sizes);
/// True if the strides are the row-major ones; the strides of axes of size 1 do not count, and a tensor without
/// elements is contiguous.
bool is_contiguous(const Shape& sizes, const Shape& strides);

/// Maps an axis in [-dims, dims) to [0, dims); throws IndexError that names `op`. With dims 0, -1 and 0 are accepted.
int wrap_axis(int64_t axis, int dims, const char* op);
/// Wraps each axis; an empty list means all axes. Throws IndexError for axes that are repeated or out of range.
Shape wrap_axes(const Shape& axes, int dims, const char* op);

/// Returns the shape to which both broadcast (PyTorch's rules); throws ShapeError that names `op`.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op);
/// Returns strides that read a tensor of `sizes`/`strides` as if it had shape `target`; throws ShapeError.
Shape broadcast_strides(const Shape& sizes, const Shape& strides, const Shape& target, const char* op);

/// Replaces one -1 by the size that follows from `numel`; throws ShapeError when the shape does not fit.
Shape infer_size(const Shape& requested, int64_t numel, const char* op);
/// Writes the strides of a view with `target` sizes (of the same number of elements) on the same memory to `result`;
/// returns false when a copy is needed.
bool view_strides(const Shape& sizes, const Shape& strides, const Shape& target, Shape& result);

/// Returns the sizes after a reduction: `axes` (of wrap_axes) become 1 with `keepdim`, otherwise they are removed.
Shape reduced_sizes(const Shape& sizes, const Shape& axes, bool keepdim);

}  // namespace levin
