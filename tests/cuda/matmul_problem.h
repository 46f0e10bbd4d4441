#pragma once
// A matrix product on a device and its exact value, for the tests of the ladders.

#include <levin/core/tensor.h>
#include <levin/kernels/matmul.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "support/comparison.h"

namespace levin::test {

inline std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

/// Copies a tensor to the device and back, byte by byte.
inline Tensor to_device(const Tensor& x) {
  const Tensor y = empty(x.sizes(), {.dtype = x.dtype(), .device = levin::cuda(0)});
  Stream stream = current_stream(y.device());
  device_backend(y.device())
      .copy(y.raw_data(), y.device(), x.raw_data(), kCpu, static_cast<std::size_t>(x.numel() * size_of(x.dtype())),
            stream);
  return y;
}
inline Tensor to_host(const Tensor& x) {
  const Tensor y = empty(x.sizes(), {.dtype = x.dtype()});
  Stream stream = current_stream(x.device());
  device_backend(x.device())
      .copy(y.raw_data(), kCpu, x.raw_data(), x.device(), static_cast<std::size_t>(x.numel() * size_of(x.dtype())),
            stream);
  device_backend(x.device()).synchronize(0);
  return y;
}
/// Returns the values rounded to the type.
inline Tensor host_tensor(const std::vector<double>& values, DType dtype) {
  return from_data(values, {static_cast<int64_t>(values.size())}, {.dtype = dtype});
}

struct Problem {
  int64_t m, n, k, batch = 1;
  bool transpose_a = false, transpose_b = false;
  int64_t multiple = 1;  ///< rows in memory start at multiples of this
  int64_t spread = 1;    ///< factor of all strides of the operands; with 2 there is no unit stride
  double alpha = 1, beta = 0;
  bool bias = false;
  bool shared_b = false;  ///< one B for the whole batch
};

inline std::string describe(const Problem& p) {
  return std::to_string(p.batch) + " x (" + std::to_string(p.m) + ", " + std::to_string(p.n) + ", " +
         std::to_string(p.k) + ")" + (p.transpose_a ? " A^T" : "") + (p.transpose_b ? " B^T" : "") + " multiple " +
         std::to_string(p.multiple) + " spread " + std::to_string(p.spread);
}

/// A batch of matrices (rows, columns), or transposed in memory.
struct Matrices {
  int64_t batch_stride, row_stride, column_stride, size;
  Matrices(int64_t rows, int64_t columns, int64_t batch, bool transposed, const Problem& p) {
    const int64_t inner = transposed ? rows : columns, outer = transposed ? columns : rows;
    const int64_t pitch = (inner + p.multiple - 1) / p.multiple * p.multiple * p.spread;
    row_stride = transposed ? p.spread : pitch, column_stride = transposed ? pitch : p.spread;
    batch_stride = outer * pitch;
    size = batch * batch_stride;
  }
};

/// The element of a product whose error is largest in relation to its allowed rounding error.
struct WorstElement {
  double ratio = 0;  ///< error over allowance; above 1 the element is wrong
  int64_t row = -1, column = -1;
  double got = 0, expected = 0;
  double product = 0;  ///< expected alpha A B alone, without beta C and the bias
};

class Product {
 public:
  static constexpr int64_t kGuard = 32;

  Product(const Problem& problem, DType dtype)
      : p(problem),
        a_(p.m, p.k, p.batch, p.transpose_a, p),
        b_(p.k, p.n, p.shared_b ? 1 : p.batch, p.transpose_b, p),
        random_(static_cast<unsigned>(p.m * 10007 + p.n * 101 + p.k)) {
    a = host_tensor(values(a_.size), dtype), b = host_tensor(values(b_.size), dtype);
    c = host_tensor(values(p.batch * p.m * p.n + kGuard), dtype);
    bias = host_tensor(values(p.n), dtype), residual = host_tensor(values(p.batch * p.m * p.n), dtype);
    if (p.beta == 0) {  // C must not be read
      std::vector<double> poison(at(c.numel()), std::numeric_limits<double>::quiet_NaN());
      for (int64_t i = c.numel() - kGuard; i < c.numel(); ++i) poison[at(i)] = 7;
      c = host_tensor(poison, dtype);
    }
    device_a_ = to_device(a), device_b_ = to_device(b), device_bias_ = to_device(bias);
    device_residual_ = to_device(residual);
  }

  /// Returns the arguments with a new C.
  kernels::MatmulArgs args() {
    device_c_ = to_device(c);
    kernels::MatmulArgs g;
    const auto view = [this](const Tensor& t, int64_t rows, int64_t columns, int64_t batch_stride, int64_t row_stride,
                             int64_t column_stride) {
      TensorView v = t.tensor_view();
      v.sizes = {p.batch, rows, columns};
      v.strides = {batch_stride, row_stride, column_stride};
      return v;
    };
    g.out = view(device_c_, p.m, p.n, p.m * p.n, p.n, 1);
    g.a = view(device_a_, p.m, p.k, a_.batch_stride, a_.row_stride, a_.column_stride);
    g.b = view(device_b_, p.k, p.n, p.shared_b ? 0 : b_.batch_stride, b_.row_stride, b_.column_stride);
    if (p.bias) g.bias = device_bias_.tensor_view();
    g.alpha = p.alpha, g.beta = p.beta;
    return g;
  }
  TensorView residual_view() const { return device_residual_.tensor_view(); }

  /// Returns the element with the worst error relative to the allowed rounding error. `operand_unit` is the relative
  /// rounding of the operands, `product_unit` the one of alpha A B before anything is added to it; after(x, i) is the
  /// epilogue of element i.
  template <class F>
  WorstElement worst_element(double operand_unit, double product_unit, F after) const {
    const std::vector<double> got = to_host(device_c_).to_vector<double>(), before = c.to_vector<double>();
    const std::vector<double> av = a.to_vector<double>(), bv = b.to_vector<double>(), shift = bias.to_vector<double>();
    for (int64_t i = c.numel() - kGuard; i < c.numel(); ++i) {
      if (got[at(i)] != before[at(i)]) return {.ratio = std::numeric_limits<double>::infinity(), .got = got[at(i)]};
    }
    const double unit = c.dtype() == DType::f64 ? 0x1p-53 : 0x1p-24;
    const double rounding = c.dtype() == DType::f16 ? 0x1p-11 : c.dtype() == DType::bf16 ? 0x1p-8 : unit;
    WorstElement worst;  // stays 0 for an empty product, which only compares the guards
    for (int64_t e = 0; e < p.batch * p.m * p.n; ++e) {
      const int64_t item = e / (p.m * p.n), i = e / p.n % p.m, j = e % p.n;
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < p.k; ++k) {
        const double x = av[at(item * a_.batch_stride + i * a_.row_stride + k * a_.column_stride)];
        const double y = bv[at((p.shared_b ? 0 : item * b_.batch_stride) + k * b_.row_stride + j * b_.column_stride)];
        sum += x * y;
        magnitude += std::abs(x * y);
      }
      sum *= p.alpha, magnitude *= std::abs(p.alpha);
      const double product = sum;
      if (p.beta != 0) sum += p.beta * before[at(e)], magnitude += std::abs(p.beta * before[at(e)]);
      if (p.bias) sum += shift[at(j)], magnitude += std::abs(shift[at(j)]);
      const double expected = after(sum, e);
      const double allowed = (static_cast<double>(p.k + 6) * unit + 2 * operand_unit) * (magnitude + 1e-6) +
                             rounding * std::abs(expected) + product_unit * std::abs(product) + 0x1p-25;
      double ratio = std::abs(got[at(e)] - expected) / allowed;
      if (!std::isfinite(ratio)) ratio = std::numeric_limits<double>::infinity();
      if (ratio > worst.ratio) worst = {ratio, i, j, got[at(e)], expected, product};
    }
    return worst;
  }
  template <class F>
  double worst(double operand_unit, F after) const {
    return worst_element(operand_unit, 0, after).ratio;
  }
  double worst(double operand_unit = 0) const { return worst_element(operand_unit, 0).ratio; }
  WorstElement worst_element(double operand_unit, double product_unit) const {
    return worst_element(operand_unit, product_unit, [](double x, int64_t) { return x; });
  }

  Problem p;
  Tensor a, b, c, bias, residual;

 private:
  std::vector<double> values(int64_t count) {
    std::vector<double> v(at(count));
    std::uniform_real_distribution<double> draw(-1, 1);
    for (double& x : v) x = draw(random_);
    return v;
  }

  Matrices a_, b_;
  std::mt19937 random_;
  Tensor device_a_, device_b_, device_c_, device_bias_, device_residual_;
};

}  // namespace levin::test
