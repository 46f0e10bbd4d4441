// Every rung of the attention ladders compared with the definition in double precision, on tails, masks and views.

#include "kernels/cuda/attention/ladder.h"

#include "cuda/gate.h"
#include "support/tolerance.h"

#include <levin/autograd/ops.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <utility>

using namespace levin;
using kernels::AttentionArgs;
using kernels::AttentionBackwardArgs;
using levin::test::epsilon;

namespace {

std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

struct Sizes {
  int64_t batch, rows, columns, width, values;
  bool causal = false;
  double scale = 0.3;

  std::string text(DType t) const {
    return std::to_string(batch) + " x " + std::to_string(rows) + " x " + std::to_string(columns) + ", " +
           std::to_string(width) + " and " + std::to_string(values) + " wide, " + std::string(name_of(t)) +
           (causal ? ", causal" : "");
  }
};

/// A result and, for each element, the sum of the magnitudes of its terms.
struct Result {
  std::vector<double> value, magnitude;
  explicit Result(int64_t n) : value(at(n)), magnitude(at(n)) {}
  void add(int64_t i, double term, double size) {
    value[at(i)] += term;
    magnitude[at(i)] += std::abs(size);
  }
};

struct Inputs {
  std::vector<double> q, k, v, g;
};

struct Expected {
  explicit Expected(const Sizes& s)
      : out(s.batch * s.rows * s.values),
        lse(s.batch * s.rows),
        dq(s.batch * s.rows * s.width),
        dk(s.batch * s.columns * s.width),
        dv(s.batch * s.columns * s.values) {}
  Result out, lse, dq, dk, dv;
};

double dot(const std::vector<double>& a, int64_t i, const std::vector<double>& b, int64_t j, int64_t n, bool sizes) {
  double sum = 0;
  for (int64_t e = 0; e < n; ++e) {
    const double term = a[at(i * n + e)] * b[at(j * n + e)];
    sum += sizes ? std::abs(term) : term;
  }
  return sum;
}

/// Computes attention by the definition. The magnitudes hold the factors of the terms' rounding errors.
Expected reference(const Sizes& s, const Inputs& x) {
  Expected y(s);
  for (int64_t row = 0; row < s.batch * s.rows; ++row) {
    const int64_t first = row / s.rows * s.columns, i = row % s.rows;
    const int64_t n = s.causal ? std::min(s.columns, i + 1) : s.columns;
    std::vector<double> p(at(n));
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      p[at(j)] = s.scale * dot(x.q, row, x.k, first + j, s.width, false);
      y.lse.magnitude[at(row)] =
          std::max(y.lse.magnitude[at(row)], 1 + std::abs(s.scale) * dot(x.q, row, x.k, first + j, s.width, true));
      top = std::max(top, p[at(j)]);
    }
    for (double& w : p) sum += w = std::exp(w - top);
    y.lse.value[at(row)] = top + std::log(sum);
    for (double& w : p) w /= sum;
    for (int64_t j = 0; j < n; ++j)
      for (int64_t e = 0; e < s.values; ++e) {
        const double term = p[at(j)] * x.v[at((first + j) * s.values + e)];
        y.out.add(row * s.values + e, term, term);
      }
    const double delta = dot(x.g, row, y.out.value, row, s.values, false);
    const double delta_size = dot(x.g, row, y.out.value, row, s.values, true);
    for (int64_t j = 0; j < n; ++j) {
      const int64_t column = first + j;
      const double ds = s.scale * p[at(j)] * (dot(x.g, row, x.v, column, s.values, false) - delta);
      const double size = s.scale * p[at(j)] * (dot(x.g, row, x.v, column, s.values, true) + delta_size);
      for (int64_t e = 0; e < s.width; ++e) {
        const double k = x.k[at(column * s.width + e)], q = x.q[at(row * s.width + e)];
        y.dq.add(row * s.width + e, ds * k, size * k);
        y.dk.add(column * s.width + e, ds * q, size * q);
      }
      for (int64_t e = 0; e < s.values; ++e) {
        const double term = p[at(j)] * x.g[at(row * s.values + e)];
        y.dv.add(column * s.values + e, term, term);
      }
    }
  }
  return y;
}

/// Returns numbers in [-1, 1] that `t` represents exactly.
Tensor numbers(const Shape& sizes, DType t, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> values(at(sizes.numel()));
  for (double& v : values) v = static_cast<double>(random()) / 2147483648.0 - 1.0;
  return from_data(values, sizes).to(t);
}

/// Returns the first error, or an empty string. 16-bit rungs round weights and results to T; all accumulate `terms` in
/// the wider type, whose rounding affects each score, weight and sum.
std::string difference(const Tensor& actual, const Result& expected, DType t, int64_t terms) {
  const double wide = epsilon(t == DType::f64 ? t : DType::f32) * static_cast<double>(terms + 16);
  const double narrow = size_of(t) == 2 ? 2 * epsilon(t) : 0;
  const std::vector<double> values = actual.cpu().to_vector<double>();
  if (values.size() != expected.value.size()) return "wrong number of elements";
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double allowed = 2 * epsilon(actual.dtype()) * std::abs(expected.value[i]) +
                           (wide + narrow) * expected.magnitude[i] + (size_of(t) == 2 ? 0x1p-24 : 0);
    if (std::abs(values[i] - expected.value[i]) <= allowed) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(values[i]) + ", expected " +
           std::to_string(expected.value[i]) + " within " + std::to_string(allowed);
  }
  return {};
}

Tensor on_device(const Tensor& x) { return x.to(cuda(0)); }
Tensor unset(const Shape& sizes, DType t) {
  return on_device(full(sizes, std::numeric_limits<double>::quiet_NaN(), {.dtype = t}));
}
/// Returns x (2, heads, rows, width) with the heads of a row side by side in memory.
Tensor side_by_side(const Tensor& x) { return x.transpose(1, 2).contiguous().transpose(1, 2); }
DType wide_type(DType t) { return t == DType::f64 ? DType::f64 : DType::f32; }

/// Inputs on the device and the expected results.
struct Trial {
  Trial(const Sizes& sizes, DType dtype)
      : Trial(sizes, dtype, numbers({sizes.batch, sizes.rows, sizes.width}, dtype, 1),
              numbers({sizes.batch, sizes.columns, sizes.width}, dtype, 2),
              numbers({sizes.batch, sizes.columns, sizes.values}, dtype, 3)) {}
  Trial(const Sizes& sizes, DType dtype, const Tensor& q_, const Tensor& k_, const Tensor& v_)
      : s(sizes),
        t(dtype),
        g_host(numbers({s.batch, s.rows, s.values}, t, 4)),
        expected(reference(
            s, {q_.to_vector<double>(), k_.to_vector<double>(), v_.to_vector<double>(), g_host.to_vector<double>()})),
        q(on_device(q_)),
        k(on_device(k_)),
        v(on_device(v_)),
        g(on_device(g_host)) {}

  void forward(const kernels::cuda::AttentionRung& rung) const {
    Stream stream = current_stream(cuda(0));
    const Tensor out = unset_rows(s.rows, s.values), lse = unset({s.batch, s.rows}, wide_type(t));
    const AttentionArgs a{out.tensor_view(), lse.tensor_view(), q.tensor_view(), k.tensor_view(),
                          v.tensor_view(),   s.scale,           s.causal};
    if (!rung.can(a)) return;
    rung.run(a, stream);
    const int64_t terms = s.width + s.columns;
    check(rung.name, "out", difference(out, expected.out, t, terms));
    check(rung.name, "lse", difference(lse, expected.lse, wide_type(t), terms));
  }

  /// Returns the three gradients, or none if the rung does not support the problem.
  std::vector<Tensor> gradients(const kernels::cuda::AttentionBackwardRung& rung) const {
    Stream stream = current_stream(cuda(0));
    Tensor out = on_device(from_data(expected.out.value, {s.batch, s.rows, s.values}).to(t));
    if (q.dim() == 4) out = side_by_side(out.view({2, -1, s.rows, s.values}));
    const Tensor lse = on_device(from_data(expected.lse.value, {s.batch, s.rows}).to(wide_type(t)));
    const Tensor dq = unset_rows(s.rows, s.width), dk = unset_rows(s.columns, s.width),
                 dv = unset_rows(s.columns, s.values);
    const AttentionBackwardArgs a{dq.tensor_view(),  dk.tensor_view(),  dv.tensor_view(), g.tensor_view(),
                                  out.tensor_view(), lse.tensor_view(), q.tensor_view(),  k.tensor_view(),
                                  v.tensor_view(),   s.scale,           s.causal};
    if (!rung.can(a)) return {};
    rung.run(a, stream);
    return {dq, dk, dv};
  }

  void backward(const kernels::cuda::AttentionBackwardRung& rung) const {
    const std::vector<Tensor> found = gradients(rung);
    if (found.empty()) return;
    const int64_t terms = s.width + s.values + s.rows + s.columns;
    check(rung.name, "dq", difference(found[0], expected.dq, t, terms));
    check(rung.name, "dk", difference(found[1], expected.dk, t, terms));
    check(rung.name, "dv", difference(found[2], expected.dv, t, terms));
  }

  /// Returns memory for a result, with the heads of a row side by side if q has an axis of heads.
  Tensor unset_rows(int64_t rows, int64_t width) const {
    if (q.dim() == 3) return unset({s.batch, rows, width}, t);
    return side_by_side(unset({2, s.batch / 2, rows, width}, t));
  }

  void every_rung() const {
    for (const auto& rung : kernels::cuda::attention_rungs()) forward(rung);
    for (const auto& rung : kernels::cuda::attention_backward_rungs()) backward(rung);
  }

  void check(const std::string& rung, const std::string& what, const std::string& wrong) const {
    CHECK_MESSAGE(wrong.empty(), rung << ", " << what << ", " << s.text(t) << ": " << wrong);
  }

  Sizes s;
  DType t;
  Tensor g_host;
  Expected expected;
  Tensor q, k, v, g;
};

/// Sets another order of blocks and threads in the emulator.
struct Seed {
#if LEVIN_TEST_EMULATED
  explicit Seed(std::uint64_t seed) : before(std::exchange(emulator::config().seed, seed)) {}
  ~Seed() { emulator::config().seed = before; }
  std::uint64_t before;
#else
  explicit Seed(std::uint64_t) {}
  ~Seed() {}
#endif
  Seed(const Seed&) = delete;
  Seed& operator=(const Seed&) = delete;
};

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

}  // namespace

TEST_CASE("every rung of attention matches the definition") {
  constexpr Sizes kSizes[] = {
      {1, 1, 1, 1, 1}, {2, 5, 3, 4, 3}, {1, 70, 67, 33, 20}, {1, 65, 130, 16, 64}, {1, 66, 40, 24, 72},
  };
  for (Sizes s : kSizes)
    for (const DType t : kTypes)
      for (const bool causal : {false, true}) {
        s.causal = causal;
        Trial(s, t).every_rung();
      }
}

TEST_CASE("attention's rungs support heads of 128 and wider, and scales that are not positive") {
  for (const DType t : {DType::f32, DType::f16, DType::bf16}) {
    Trial({1, 35, 97, 128, 128, true}, t).every_rung();
    Trial({1, 3, 5, 136, 8}, t).every_rung();
    Trial({2, 9, 7, 8, 8, false, -0.5}, t).every_rung();
    Trial({2, 9, 7, 8, 8, true, 0.0}, t).every_rung();
  }
}

TEST_CASE("attention's rungs on more tiles of rows and columns than they hold at once") {
  for (const DType t : {DType::f16, DType::bf16})
    for (const bool causal : {false, true}) {
      Trial({1, 150, 470, 16, 24, causal, 1.5}, t).every_rung();
      Trial({1, 330, 140, 8, 16, causal, 1.5}, t).every_rung();
    }
}

TEST_CASE("attention's rungs read views of one projection in place, and write results that are such views") {
  for (const DType t : kTypes)
    for (const int64_t width : {8, 6}) {  // rows that are and are not multiples of 16 bytes
      constexpr int64_t length = 70;  // two tiles
      const Tensor projection = numbers({2, length, 3, 2, width}, t, 9), heads = projection.permute({2, 0, 3, 1, 4});
      const auto part = [&](const Tensor& x, int64_t i) { return x.select(0, i); };  // (batch, heads, length, width)
      const auto flat = [&](int64_t i) { return part(heads, i).contiguous().view({4, length, width}); };
      Trial trial({4, length, length, width, width, true}, t, flat(0), flat(1), flat(2));
      const Tensor device_heads = on_device(projection).permute({2, 0, 3, 1, 4});
      trial.q = part(device_heads, 0), trial.k = part(device_heads, 1), trial.v = part(device_heads, 2);
      trial.g = side_by_side(trial.g.view({2, 2, length, width}));
      trial.every_rung();
    }
}

TEST_CASE("attention's gradients are correct and have the same bits in any order of blocks and threads") {
  for (const DType t : {DType::f32, DType::f16}) {
    const Trial trial({1, 200, 210, 16, 16, true}, t);  // spans several tiles
    for (const auto& rung : kernels::cuda::attention_backward_rungs()) {
      std::vector<std::vector<double>> first;
      for (const std::uint64_t seed : {1u, 2u, 3u}) {
        const Seed other_order(seed);
        trial.backward(rung);
        std::vector<std::vector<double>> now;
        for (const Tensor& x : trial.gradients(rung)) now.push_back(x.cpu().to_vector<double>());
        if (first.empty()) first = now;
        CHECK_MESSAGE(now == first, std::string(rung.name));
      }
    }
  }
}
