#include "cases/cases.h"

#include <levin/autograd/ops.h>

#include <algorithm>

namespace levin::test {

namespace {

/// Multiplies (..., M, K) by (..., K, N) with leading axes that broadcast, by the definition.
Tensor product(const Tensor& a, const Tensor& b) {
  const int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  const Shape lead = broadcast_shapes(Shape(a.sizes().begin(), a.sizes().end() - 2),
                                      Shape(b.sizes().begin(), b.sizes().end() - 2), "reference");
  Shape as = lead, bs = lead, ys = lead;
  for (const int64_t s : {m, k}) as.push_back(s);
  for (const int64_t s : {k, n}) bs.push_back(s);
  for (const int64_t s : {m, n}) ys.push_back(s);
  const auto av = broadcast_values(a, as), bv = broadcast_values(b, bs);
  std::vector<double> y(static_cast<std::size_t>(ys.numel()), 0.0);
  for (int64_t i = 0; i < lead.numel(); ++i)
    for (int64_t r = 0; r < m; ++r)
      for (int64_t c = 0; c < n; ++c)
        for (int64_t p = 0; p < k; ++p)
          y[static_cast<std::size_t>((i * m + r) * n + c)] +=
              av[static_cast<std::size_t>((i * m + r) * k + p)] * bv[static_cast<std::size_t>((i * k + p) * n + c)];
  return from_data(y, ys);
}

/// Treats vectors as matrices and drops the added axis again.
Tensor matmul_reference(const Tensor& a, const Tensor& b) {
  const Tensor a2 = a.dim() == 1 ? a.reshape({1, a.size(0)}) : a, b2 = b.dim() == 1 ? b.reshape({b.size(0), 1}) : b;
  Tensor y = product(a2, b2);
  Shape sizes = y.sizes();
  if (b.dim() == 1) sizes.erase(sizes.size() - 1);
  if (a.dim() == 1) sizes.erase(sizes.size() - (b.dim() == 1 ? 1 : 2));
  return y.reshape(sizes);
}

Tensor linear_reference(const Tensors& in) {
  const Tensor& x = in[0];
  const auto w = in[1].to_vector<double>(), xs = x.to_vector<double>();
  const int64_t outputs = in[1].size(0), inputs = in[1].size(1), rows = inputs == 0 ? 0 : x.numel() / inputs;
  std::vector<double> y;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t o = 0; o < outputs; ++o) {
      double total = in.size() > 2 ? in[2].to_vector<double>()[static_cast<std::size_t>(o)] : 0.0;
      for (int64_t i = 0; i < inputs; ++i)
        total += xs[static_cast<std::size_t>(r * inputs + i)] * w[static_cast<std::size_t>(o * inputs + i)];
      y.push_back(total);
    }
  Shape sizes = x.sizes();
  sizes[x.dim() - 1] = outputs;
  return from_data(y, sizes);
}

Sample matrices(const Shape& a, const Shape& b) {
  Sample s = sample({a, b}, uniform(), std::max<int64_t>(1, a.back()));
  // a's gradient sums over b's columns, b's over a's rows; broadcast operands also sum over the other's batch.
  const auto columns = [](const Shape& x) { return x.size() > 1 ? x.back() : 1; };
  const auto matrix = [](const Shape& x) { return x.size() > 1 ? x.back() * x[x.size() - 2] : x.back(); };
  const auto batch = [&](const Shape& x) { return matrix(x) > 0 ? x.numel() / matrix(x) : 0; };
  const int64_t rows = a.size() > 1 ? a[a.size() - 2] : 1;
  s.grad_terms = std::max({int64_t{1}, rows * batch(a), columns(b) * batch(b)});
  return s;
}

Work product_work(const Tensors& in, const Tensors& out) {
  const double k = static_cast<double>(in[0].size(-1)), elements = static_cast<double>(out[0].numel());
  const double bytes = static_cast<double>(size_of(in[0].dtype()));
  return {bytes * (static_cast<double>(in[0].numel() + in[1].numel()) + elements), 2.0 * elements * k};
}

/// Draws vectors, matrices or batches of them.
Sample random_product(Draw& d) {
  const int64_t m = d.size(), k = d.size(), n = d.size();
  const Shape lead = d.chance(40) ? d.shape(0, 2, 6) : Shape{};
  Shape a = d.chance(50) ? lead : d.broadcasting_to(lead), b = d.chance(50) ? lead : d.broadcasting_to(lead);
  if (!a.empty() || !d.chance(15)) a.push_back(m);
  a.push_back(k);
  b.push_back(k);
  if (b.size() > 1 || !d.chance(15)) b.push_back(n);
  return matrices(a, b);
}

Sample random_matrices(Draw& d, int64_t batch) {
  const int64_t m = d.size(), k = d.size(), n = d.size();
  return batch < 0 ? matrices({m, k}, {k, n}) : matrices({batch, m, k}, {batch, k, n});
}

OpCase matmul_case() {
  return {.name = "matmul",
          .op = [](const Tensors& x) -> Tensors { return {matmul(x[0], x[1])}; },
          .reference = [](const Tensors& x) -> Tensors { return {matmul_reference(x[0], x[1])}; },
          .samples = {matrices({2, 3}, {3, 4}), matrices({1, 1}, {1, 1}), matrices({31, 33}, {33, 17}),
                      matrices({7}, {7}), matrices({5}, {5, 3}), matrices({3, 5}, {5}), matrices({2, 3, 4}, {2, 4, 5}),
                      matrices({2, 3, 4}, {4, 5}), matrices({3, 4}, {2, 4, 5}), matrices({2, 1, 3, 4}, {5, 4, 2}),
                      matrices({0, 3}, {3, 2}), matrices({2, 0}, {0, 3}), matrices({3, 2}, {2, 0}),
                      matrices({0, 2, 3}, {0, 3, 2}), matrices({2, 3, 4}, {4, 0}), matrices({2, 3, 0}, {0, 4})},
          .draw = random_product,
          .large = {matrices({130, 257}, {257, 139}), matrices({12, 40, 33}, {12, 33, 50})},
          .dtypes = kNumericTypes,
          .tolerance = {.ulps = 2, .scale = 4},
          .grad_tolerance = {.ulps = 16, .scale = 4},
          .torch = "torch.matmul(x0, x1)",
          .errors = {{"inner sizes differ: a is (64, 784), b is (512, 784). Transpose b?",
                      [] {
                        matmul(zeros({64, 784}), zeros({512, 784}));
                      }},
                     {"[matmul] a is float32, b is float64: their types have to be equal",
                      [] {
                        matmul(zeros({2, 2}), zeros({2, 2}, {.dtype = kFloat64}));
                      }},
                     {"bool matrices",
                      [] {
                        matmul(zeros({2, 2}, {.dtype = kBool}), zeros({2, 2}, {.dtype = kBool}));
                      }},
                     {"both need a dimension",
                      [] {
                        matmul(zeros({}), zeros({2, 2}));
                      }},
                     {"[matmul]",
                      [] {
                        matmul(zeros({2, 3, 4}), zeros({3, 4, 5}));
                      }}},
          .bench = {matrices({128, 128}, {128, 128}), matrices({512, 512}, {512, 512}),
                    matrices({1024, 1024}, {1024, 1024}), matrices({48, 128, 32}, {48, 32, 128})},
          .work = product_work};
}

OpCase mm_case() {
  return {.name = "mm",
          .op = [](const Tensors& x) -> Tensors { return {mm(x[0], x[1])}; },
          .reference = [](const Tensors& x) -> Tensors { return {product(x[0], x[1])}; },
          .samples = {matrices({4, 3}, {3, 2}), matrices({13, 31}, {31, 5})},
          .draw = [](Draw& d) { return random_matrices(d, -1); },
          .tolerance = {.ulps = 2, .scale = 4},
          .grad_tolerance = {.ulps = 16, .scale = 4},
          .torch = "torch.mm(x0, x1)",
          .errors = {{"two matrices are needed", [] { mm(zeros({2, 2, 2}), zeros({2, 2})); }}}};
}

OpCase bmm_case() {
  return {.name = "bmm",
          .op = [](const Tensors& x) -> Tensors { return {bmm(x[0], x[1])}; },
          .reference = [](const Tensors& x) -> Tensors { return {product(x[0], x[1])}; },
          .samples = {matrices({3, 2, 4}, {3, 4, 2}), matrices({1, 7, 33}, {1, 33, 3})},
          .draw = [](Draw& d) { return random_matrices(d, d.size(4)); },
          .tolerance = {.ulps = 2, .scale = 4},
          .grad_tolerance = {.ulps = 16, .scale = 4},
          .torch = "torch.bmm(x0, x1)",
          .errors = {{"two batches of the same size", [] { bmm(zeros({2, 2, 2}), zeros({3, 2, 2})); }}}};
}

OpCase addmm_case() {
  const auto run = [](const Tensors& x, double beta, double alpha) -> Tensors {
    return {addmm(x[0], x[1], x[2], beta, alpha)};
  };
  const auto reference = [](const Tensors& x, double beta, double alpha) -> Tensors {
    Tensor y = product(x[1], x[2]);
    const auto bias = broadcast_values(x[0], y.sizes());
    for (std::size_t i = 0; i < bias.size(); ++i) y.data<double>()[i] = beta * bias[i] + alpha * y.data<double>()[i];
    return {y};
  };
  Sample plain = sample({{3, 2}, {3, 4}, {4, 2}}, uniform(), 5);
  Sample scaled = sample({{2}, {3, 4}, {4, 2}}, uniform(), 5);
  scaled.label = "beta 0.5, alpha 2";
  scaled.op = [run](const Tensors& x) { return run(x, 0.5, 2.0); };
  scaled.reference = [reference](const Tensors& x) { return reference(x, 0.5, 2.0); };
  scaled.torch = "torch.addmm(x0, x1, x2, beta=0.5, alpha=2)";
  scaled.code = "addmm(x0, x1, x2, 0.5, 2)";
  return {.name = "addmm",
          .op = [run](const Tensors& x) { return run(x, 1.0, 1.0); },
          .reference = [reference](const Tensors& x) { return reference(x, 1.0, 1.0); },
          .samples = {plain, scaled},
          .draw =
              [plain, scaled](Draw& d) {
                Sample s = d.chance(40) ? scaled : plain;
                const int64_t m = d.size(), k = d.size(), n = d.size();
                s.inputs[0].sizes = d.broadcasting_to({m, n});
                s.inputs[1].sizes = {m, k};
                s.inputs[2].sizes = {k, n};
                s.terms = k + 1;
                s.grad_terms = std::max({int64_t{1}, m, n, m * n / std::max<int64_t>(1, s.inputs[0].sizes.numel())});
                return s;
              },
          .tolerance = {.ulps = 2, .scale = 8},
          .grad_tolerance = {.ulps = 16, .scale = 8},
          .torch = "torch.addmm(x0, x1, x2)",
          .errors = {{"[addmm] the bias is (2, 1, 2), which does not broadcast to the product's shape (3, 2)",
                      [] {
                        addmm(zeros({2, 1, 2}), zeros({3, 4}), zeros({4, 2}));
                      }},
                     {"[addmm] inner sizes differ", [] {
                        addmm(zeros({2}), zeros({3, 4}), zeros({5, 2}));
                      }}}};
}

/// Products of 257 and 2049, which bfloat16 and float16 round, minus 256 and 2048. All of it is exact in float32.
OpCase cancelling_addmm_case() {
  OpCase c = addmm_case();
  const Sample scaled = c.samples[1];
  c.name = "addmm_cancelling";
  c.draw = nullptr;
  c.torch.clear();
  c.errors.clear();
  c.samples.clear();
  c.dtypes = kFloatTypes;
  for (const Shape& bias : {Shape{2}, {1, 2}, {3, 2}})
    for (const bool factors : {false, true}) {
      Sample s = sample({bias, {3, 4}, {4, 2}}, uniform(), 5);
      if (factors) {
        s = scaled;  // beta 0.5, alpha 2
        s.torch.clear();
        s.inputs[0].sizes = bias;
      }
      s.inputs[0].values = factors ? cycle({-1024, -8192}) : cycle({-256, -2048});
      s.inputs[1].values = cycle({16, 1, 45, 24});
      s.inputs[2].values = cycle({16, 0, 1, 0, 0, 45, 0, 1});
      c.samples.push_back(s);
    }
  return c;
}

OpCase linear_case() {
  const auto shapes = [](const std::vector<Shape>& sizes) {
    Sample s = sample(sizes, uniform(), sizes[1].back() + 1);
    s.grad_terms = std::max({int64_t{1}, sizes[1][0], sizes[0].numel() / sizes[0].back()});  // outputs, rows
    return s;
  };
  return {
      .name = "linear",
      .op = [](const Tensors& x) -> Tensors { return {linear(x[0], x[1], x.size() > 2 ? x[2] : Tensor())}; },
      .reference = [](const Tensors& x) -> Tensors { return {linear_reference(x)}; },
      .samples = {shapes({{3, 4}, {2, 4}, {2}}), shapes({{3, 4}, {2, 4}}), shapes({{5}, {3, 5}, {3}}),
                  shapes({{2, 3, 7}, {5, 7}, {5}}), shapes({{0, 4}, {2, 4}, {2}}), shapes({{17, 31}, {33, 31}, {33}})},
      .draw =
          [shapes](Draw& d) {
            Shape x = d.shape(1, 3);
            const int64_t outputs = d.size(20, false);
            x[x.size() - 1] = std::max<int64_t>(1, x.back());
            return d.chance(50) ? shapes({x, {outputs, x.back()}, {outputs}}) : shapes({x, {outputs, x.back()}});
          },
      .large = {shapes({{128, 300}, {140, 300}, {140}}), shapes({{300}, {140, 300}, {140}}),
                shapes({{4, 1000}, {1, 1000}}), shapes({{8, 130}, {300, 130}, {300}}), shapes({{9, 130}, {300, 130}})},
      .dtypes = kFloatTypes,
      .tolerance = {.ulps = 2, .scale = 4},
      .grad_tolerance = {.ulps = 16, .scale = 4},
      .torch = "F.linear(x0, x1, x2 if n > 2 else None)",
      .errors = {{"[linear] x is uint8, weight is float32: their types have to be equal",
                  [] {
                    linear(zeros({2, 5}, {.dtype = kUInt8}), zeros({4, 5}));
                  }},
                 {"[linear] x is float32, bias is float64: their types have to be equal",
                  [] {
                    linear(zeros({2, 5}), zeros({4, 5}), zeros({4}, {.dtype = kFloat64}));
                  }},
                 {"[linear] x is (2, 3), weight is (4, 5)",
                  [] {
                    linear(zeros({2, 3}), zeros({4, 5}));
                  }},
                 {"bias needs one value an output, (4,)",
                  [] {
                    linear(zeros({2, 5}), zeros({4, 5}), zeros({5}));
                  }}},
      .bench = {shapes({{128, 784}, {512, 784}, {512}}), shapes({{1024, 192}, {576, 192}, {576}})},
      .work = product_work};
}

}  // namespace

std::vector<OpCase> matmul_cases() {
  return {matmul_case(), mm_case(), bmm_case(), addmm_case(), cancelling_addmm_case(), linear_case()};
}

}  // namespace levin::test
