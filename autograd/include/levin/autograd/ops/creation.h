#pragma once
// Creates tensors. Random numbers are functions of (seed, offset, element index) by Philox: the same on every device.

#include <levin/core/generator.h>
#include <levin/core/tensor.h>

namespace levin {

/// Return tensors of these sizes that are filled with 0 or 1.
Tensor zeros(const Shape& sizes, const TensorOptions& options = {});
Tensor ones(const Shape& sizes, const TensorOptions& options = {});
/// Fills a new tensor with `value`. The default type is that of the value (int64 for integers).
Tensor full(const Shape& sizes, const Scalar& value, const TensorOptions& options = {});
/// Returns start, start + step, ... below end (above end for a negative step). The type is int64 if all three are
/// integers.
Tensor arange(const Scalar& end, const TensorOptions& options = {});
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step = 1, const TensorOptions& options = {});
Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options);
/// Returns `steps` evenly spaced numbers from start to end, both included.
Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, const TensorOptions& options = {});
/// Returns base to the powers linspace(start, end, steps).
Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base = 10.0,
                const TensorOptions& options = {});
/// Returns a matrix (n, m), m = n by default, with ones on the diagonal and zeros elsewhere.
Tensor eye(int64_t n, std::optional<int64_t> m = std::nullopt, const TensorOptions& options = {});
Tensor eye(int64_t n, const TensorOptions& options);

/// Returns uniform random numbers in [0, 1).
Tensor rand(const Shape& sizes, const TensorOptions& options = {});
/// Returns standard normal random numbers (Box-Muller).
Tensor randn(const Shape& sizes, const TensorOptions& options = {});
/// Returns random integers in [low, high), int64 by default.
Tensor randint(int64_t low, int64_t high, const Shape& sizes, const TensorOptions& options = {});
/// Returns a random permutation of 0..n-1, shape (n), int64.
Tensor randperm(int64_t n, const TensorOptions& options = {});
/// Returns 1 with probability p (elementwise), else 0, in the type of p.
Tensor bernoulli(const Tensor& p, Generator* generator = nullptr);

/// As the functions without _like, of t's sizes. The dtype and the device are those of t unless the options name
/// others; requires_grad is not taken over.
Tensor empty_like(const Tensor& t, const TensorOptions& options = {});
Tensor zeros_like(const Tensor& t, const TensorOptions& options = {});
Tensor ones_like(const Tensor& t, const TensorOptions& options = {});
Tensor full_like(const Tensor& t, const Scalar& value, const TensorOptions& options = {});
Tensor rand_like(const Tensor& t, const TensorOptions& options = {});
Tensor randn_like(const Tensor& t, const TensorOptions& options = {});
Tensor randint_like(const Tensor& t, int64_t low, int64_t high, const TensorOptions& options = {});

// A dtype alone may stand for the options: ones({2}, kInt64). It is deduced, so that braces always mean the options.
inline Tensor zeros(const Shape& sizes, std::same_as<DType> auto dtype) { return zeros(sizes, {.dtype = dtype}); }
inline Tensor ones(const Shape& sizes, std::same_as<DType> auto dtype) { return ones(sizes, {.dtype = dtype}); }
inline Tensor full(const Shape& sizes, const Scalar& value, std::same_as<DType> auto dtype) {
  return full(sizes, value, {.dtype = dtype});
}
inline Tensor arange(const Scalar& end, std::same_as<DType> auto dtype) { return arange(end, {.dtype = dtype}); }
inline Tensor arange(const Scalar& start, const Scalar& end, std::same_as<DType> auto dtype) {
  return arange(start, end, {.dtype = dtype});
}
inline Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, std::same_as<DType> auto dtype) {
  return arange(start, end, step, {.dtype = dtype});
}
inline Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, std::same_as<DType> auto dtype) {
  return linspace(start, end, steps, {.dtype = dtype});
}
inline Tensor eye(int64_t n, std::same_as<DType> auto dtype) { return eye(n, {.dtype = dtype}); }
inline Tensor eye(int64_t n, int64_t m, std::same_as<DType> auto dtype) { return eye(n, m, {.dtype = dtype}); }
inline Tensor rand(const Shape& sizes, std::same_as<DType> auto dtype) { return rand(sizes, {.dtype = dtype}); }
inline Tensor randn(const Shape& sizes, std::same_as<DType> auto dtype) { return randn(sizes, {.dtype = dtype}); }
inline Tensor randint(int64_t low, int64_t high, const Shape& sizes, std::same_as<DType> auto dtype) {
  return randint(low, high, sizes, {.dtype = dtype});
}
inline Tensor randperm(int64_t n, std::same_as<DType> auto dtype) { return randperm(n, {.dtype = dtype}); }
inline Tensor empty_like(const Tensor& t, std::same_as<DType> auto dtype) { return empty_like(t, {.dtype = dtype}); }
inline Tensor zeros_like(const Tensor& t, std::same_as<DType> auto dtype) { return zeros_like(t, {.dtype = dtype}); }
inline Tensor ones_like(const Tensor& t, std::same_as<DType> auto dtype) { return ones_like(t, {.dtype = dtype}); }
inline Tensor full_like(const Tensor& t, const Scalar& value, std::same_as<DType> auto dtype) {
  return full_like(t, value, {.dtype = dtype});
}
inline Tensor rand_like(const Tensor& t, std::same_as<DType> auto dtype) { return rand_like(t, {.dtype = dtype}); }
inline Tensor randn_like(const Tensor& t, std::same_as<DType> auto dtype) { return randn_like(t, {.dtype = dtype}); }
inline Tensor randint_like(const Tensor& t, int64_t low, int64_t high, std::same_as<DType> auto dtype) {
  return randint_like(t, low, high, {.dtype = dtype});
}

/// As the functions of tensor.h, with a dtype alone.
template <class T>
Tensor from_data(std::span<const T> values, const Shape& sizes, std::same_as<DType> auto dtype) {
  return from_data(values, sizes, {.dtype = dtype});
}
template <class T>
Tensor from_data(const std::vector<T>& values, const Shape& sizes, std::same_as<DType> auto dtype) {
  return from_data(values, sizes, {.dtype = dtype});
}
template <class T>
Tensor from_data(std::initializer_list<T> values, const Shape& sizes, std::same_as<DType> auto dtype) {
  return from_data(values, sizes, {.dtype = dtype});
}
template <class T>
Tensor tensor(const std::vector<T>& values, std::same_as<DType> auto dtype) {
  return tensor(values, {.dtype = dtype});
}

/// Fill t in place with uniform numbers in [low, high) or with normal numbers. For initialisers; not recorded.
const Tensor& uniform_(const Tensor& t, double low = 0.0, double high = 1.0, Generator* generator = nullptr);
const Tensor& normal_(const Tensor& t, double mean = 0.0, double std = 1.0, Generator* generator = nullptr);

}  // namespace levin
