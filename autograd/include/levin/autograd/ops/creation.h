#pragma once
// Creates tensors. Random numbers are functions of (seed, offset, element index) by Philox: the same on every device.

#include <levin/core/generator.h>
#include <levin/core/tensor.h>

namespace levin {

Tensor zeros(const Shape& sizes, const TensorOptions& options = {});
Tensor ones(const Shape& sizes, const TensorOptions& options = {});
/// Fills a new tensor with `value`. The default type is that of the value (int64 for integers).
Tensor full(const Shape& sizes, const Scalar& value, const TensorOptions& options = {});
/// Returns start, start + step, ... below end (above end for a negative step). The type is int64 if all three are
/// integers.
Tensor arange(const Scalar& end, const TensorOptions& options = {});
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step = 1, const TensorOptions& options = {});
/// Returns `steps` evenly spaced numbers from start to end, both included.
Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, const TensorOptions& options = {});
Tensor eye(int64_t n, std::optional<int64_t> m = std::nullopt, const TensorOptions& options = {});

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

Tensor empty_like(const Tensor& t, const TensorOptions& options = {});
Tensor zeros_like(const Tensor& t, const TensorOptions& options = {});
Tensor ones_like(const Tensor& t, const TensorOptions& options = {});
Tensor full_like(const Tensor& t, const Scalar& value, const TensorOptions& options = {});
Tensor rand_like(const Tensor& t, const TensorOptions& options = {});
Tensor randn_like(const Tensor& t, const TensorOptions& options = {});
Tensor randint_like(const Tensor& t, int64_t low, int64_t high, const TensorOptions& options = {});

/// Fill t in place with uniform numbers in [low, high) or with normal numbers. For initialisers; not recorded.
const Tensor& uniform_(const Tensor& t, double low = 0.0, double high = 1.0, Generator* generator = nullptr);
const Tensor& normal_(const Tensor& t, double mean = 0.0, double std = 1.0, Generator* generator = nullptr);

}  // namespace levin
