#include "cases/cases.h"

#include <levin/autograd/ops.h>

#include <array>
#include <cmath>
#include <limits>

namespace levin::test {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// Repeats each head of x (..., H, S, E) `group` times.
Tensor repeated_heads(const Tensor& x, int64_t group) {
  const std::vector<double> heads = x.to_vector<double>();
  const auto block = static_cast<std::size_t>(x.size(-2) * x.size(-1));
  std::vector<double> y;
  for (std::size_t begin = 0; begin < heads.size(); begin += block)
    for (int64_t r = 0; r < group; ++r)
      for (std::size_t i = begin; i < begin + block; ++i) y.push_back(heads[i]);
  Shape sizes = x.sizes();
  sizes[x.dim() - 3] *= group;
  return from_data(y, sizes);
}

/// Computes attention by the definition, with leading sizes that broadcast; inputs: q, k, v and optionally the mask.
Tensors attention_reference(Tensors in, const AttentionOptions& o) {
  if (o.enable_gqa)
    for (const std::size_t i : {1u, 2u}) in[i] = repeated_heads(in[i], in[0].size(-3) / in[i].size(-3));
  const int64_t rows = in[0].size(-2), columns = in[1].size(-2), width = in[0].size(-1), values = in[2].size(-1);
  const auto leading = [](const Tensor& t) { return Shape(t.sizes().begin(), t.sizes().end() - 2); };
  Shape lead = leading(in[0]);
  for (const Tensor& t : {in[1], in[2]}) lead = broadcast_shapes(lead, leading(t), "reference");
  const auto spread = [&](const Tensor& t, int64_t r, int64_t c) {
    Shape sizes = lead;
    sizes.push_back(r);
    sizes.push_back(c);
    return broadcast_values(t, sizes);
  };
  const auto q = spread(in[0], rows, width), k = spread(in[1], columns, width), v = spread(in[2], columns, values);
  const bool choice = in.size() > 3 && in[3].dtype() == kBool;
  const auto mask = in.size() > 3 ? spread(in[3].to(kDouble), rows, columns) : std::vector<double>();
  const double scale = o.scale.value_or(1.0 / std::sqrt(static_cast<double>(width)));
  const auto at = [](int64_t i) { return static_cast<std::size_t>(i); };
  std::vector<double> y;
  for (int64_t n = 0; n < lead.numel(); ++n)
    for (int64_t i = 0; i < rows; ++i) {
      std::vector<double> p(at(columns));
      double top = kMinusInfinity, sum = 0;
      bool attends = false;  // a fully masked row gives 0
      for (int64_t j = 0; j < columns; ++j) {
        double score = 0;
        for (int64_t e = 0; e < width; ++e)
          score += q[at((n * rows + i) * width + e)] * k[at((n * columns + j) * width + e)];
        score *= scale;
        const double m = mask.empty() ? 0 : mask[at((n * rows + i) * columns + j)];
        const bool masked = (o.is_causal && j > i) || (choice && m == 0) || (!choice && m == kMinusInfinity);
        attends |= !masked;
        score = masked ? kMinusInfinity : choice ? score : score + m;
        p[at(j)] = score;
        top = std::max(top, score);
      }
      for (double& s : p) sum += s = attends ? std::exp(s - top) : 0;
      for (int64_t e = 0; e < values; ++e) {
        double out = 0;
        for (int64_t j = 0; j < columns; ++j) out += p[at(j)] * v[at((n * columns + j) * values + e)];
        y.push_back(attends ? out / sum : 0);
      }
    }
  Shape sizes = lead;
  sizes.push_back(rows);
  sizes.push_back(values);
  return {from_data(y, sizes)};
}

enum class Mask { none, choice, added };

Sample attention_sample(const Shape& q, const Shape& k, const Shape& v, const AttentionOptions& o = {},
                        const Shape& mask = {}, Mask kind = Mask::none) {
  // A score is a sum of q.back() products; the weights of a row sum to 1, however many there are.
  Sample s = sample({q, k, v}, uniform(), q.back() + 1);
  if (kind == Mask::choice) s.inputs.push_back(bool_input(mask));
  if (kind == Mask::added) s.inputs.push_back({.sizes = mask});
  // Kernels may skip masked elements or multiply them by a weight of 0.
  if (o.is_causal || kind != Mask::none) s.inputs[2].finite = true;
  s.grad_terms = s.terms * 4;
  s.label = std::string(o.is_causal ? "causal " : "") + (o.scale ? "scaled " : "") +
            (o.enable_gqa ? "grouped " : "") + (kind == Mask::none ? "" : "masked");
  s.op = [o](const Tensors& in) -> Tensors {
    AttentionOptions with = o;
    if (in.size() > 3) with.attn_mask = in[3];
    return {scaled_dot_product_attention(in[0], in[1], in[2], with)};
  };
  s.reference = [o](const Tensors& in) { return attention_reference(in, o); };
  s.torch = std::string("F.scaled_dot_product_attention(x0, x1, x2, is_causal=") + (o.is_causal ? "True" : "False") +
            (kind == Mask::none ? "" : ", attn_mask=x3") + (o.scale ? ", scale=" + std::to_string(*o.scale) : "") + ")";
  if (o.enable_gqa) s.torch = "-";
  return s;
}

Sample random_attention(Draw& d) {
  const int64_t rows = d.size(12, false), columns = d.size(12, false);
  const int64_t width = d.size(9, false), values = d.size(9, false);
  const Shape lead = d.shape(0, 2, 6);
  const int64_t heads = d.chance(25) ? d.between(1, 3) : 0, group = d.between(1, 3);
  const auto with_lead = [&](int64_t r, int64_t c, int64_t h) {
    Shape sizes = d.chance(70) ? lead : d.broadcasting_to(lead);
    if (heads > 0) sizes.push_back(h);
    sizes.push_back(r);
    sizes.push_back(c);
    return sizes;
  };
  AttentionOptions o{.enable_gqa = heads > 0};
  if (d.chance(25)) o.scale = 0.25 * static_cast<double>(d.between(1, 8));
  const Mask kind = d.chance(30) ? d.of(std::array{Mask::choice, Mask::added}) : Mask::none;
  o.is_causal = kind == Mask::none && d.chance(40);
  const Shape q = with_lead(rows, width, heads * group), k = with_lead(columns, width, heads),
              v = with_lead(columns, values, heads);
  Shape mask{rows, columns};
  if (d.chance(30)) mask[0] = 1;
  else if (d.chance(20))
    mask[1] = 1;
  return attention_sample(q, k, v, o, mask, kind);
}

Work attention_work(const Tensors& in, const Tensors& out) {
  const double scores = static_cast<double>(out[0].numel() / out[0].size(-1)) * static_cast<double>(in[1].size(-2));
  double bytes = static_cast<double>(out[0].numel());
  for (const Tensor& t : in) bytes += static_cast<double>(t.numel());
  return {4 * bytes, 2 * scores * static_cast<double>(in[0].size(-1) + in[2].size(-1))};
}

}  // namespace

std::vector<OpCase> attention_cases() {
  return {{.name = "scaled_dot_product_attention",
           .samples = {attention_sample({1, 1}, {1, 1}, {1, 1}, {.scale = 1.0}),
                       attention_sample({2, 3, 4}, {2, 5, 4}, {2, 5, 3}),
                       attention_sample({2, 2, 5, 3}, {2, 2, 5, 3}, {2, 2, 5, 3}, {.is_causal = true}),
                       attention_sample({5, 2}, {3, 2}, {3, 2}, {.is_causal = true}),
                       attention_sample({2, 3}, {5, 3}, {5, 2}, {.is_causal = true, .scale = 0.5}),
                       attention_sample({2, 1, 3, 2}, {1, 2, 4, 2}, {2, 1, 4, 3}),
                       attention_sample({2, 3, 4}, {2, 5, 4}, {2, 5, 3}, {}, {3, 5}, Mask::choice),
                       attention_sample({2, 3, 4}, {2, 5, 4}, {2, 5, 3}, {}, {2, 3, 5}, Mask::added),
                       attention_sample({2, 2, 1, 2}, {2, 1, 3, 2}, {2, 1, 3, 1}, {}, {2, 1, 1, 3}, Mask::choice),
                       attention_sample({2, 2, 2}, {2, 3, 2}, {1, 3, 1}, {}, {3}, Mask::added),
                       attention_sample({0, 3, 4}, {0, 5, 4}, {0, 5, 3}),
                       attention_sample({2, 6, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}, {.enable_gqa = true}),
                       attention_sample({3, 4, 2}, {1, 4, 2}, {1, 4, 2}, {.is_causal = true, .enable_gqa = true}),
                       attention_sample({2, 4, 3, 2}, {1, 2, 5, 2}, {1, 2, 5, 3}, {.enable_gqa = true}, {4, 3, 5},
                                        Mask::choice),
                       attention_sample({4, 3, 2}, {2, 5, 2}, {2, 5, 3}, {.scale = 0.5, .enable_gqa = true},
                                        {1, 3, 5}, Mask::added)},
           .draw = random_attention,
           .large = {attention_sample({3, 2, 131, 33}, {3, 2, 131, 33}, {3, 2, 131, 33}, {.is_causal = true}),
                     attention_sample({17, 100, 16}, {17, 67, 16}, {17, 67, 16}),
                     attention_sample({2, 340, 8}, {2, 530, 8}, {2, 530, 8}, {.is_causal = true}),
                     attention_sample({2, 2, 100, 8}, {2, 2, 340, 8}, {2, 2, 340, 5}, {}, {2, 1, 1, 340}, Mask::choice),
                     attention_sample({17, 100, 8}, {17, 67, 8}, {17, 67, 5}, {}, {100, 67}, Mask::added)},
           // On the CPU up to 95 rows and 320 columns are one block, on CUDA 64 rows: exactly as many, and one more.
           .limits = {attention_sample({64, 8}, {256, 8}, {256, 5}), attention_sample({65, 8}, {257, 8}, {257, 5}),
                      attention_sample({95, 8}, {320, 8}, {320, 5}), attention_sample({96, 8}, {321, 8}, {321, 5})},
           .dtypes = kFloatTypes,
           .tolerance = {.ulps = 8, .scale = 2},
           .grad_tolerance = {.ulps = 16, .scale = 4},
           .grad_dtypes = kRoundedFloats,
           // Weights sum to 1 and multiply values up to 2; their gradients sum to 12 and multiply queries and keys up
           // to 2.
           .rounded = 2,
           .grad_rounded = 24,
           .torch = "F.scaled_dot_product_attention(x0, x1, x2)",
           .errors = {{"the last sizes of q and k differ",
                       [] {
                         scaled_dot_product_attention(zeros({2, 3}), zeros({2, 4}), zeros({2, 3}));
                       }},
                      {"k and v differ in length",
                       [] {
                         scaled_dot_product_attention(zeros({2, 3}), zeros({2, 3}), zeros({4, 3}));
                       }},
                      {"nothing to attend to",
                       [] {
                         scaled_dot_product_attention(zeros({2, 3}), zeros({0, 3}), zeros({0, 3}));
                       }},
                      {"attn_mask and is_causal exclude each other",
                       [] {
                         scaled_dot_product_attention(zeros({2, 3}), zeros({2, 3}), zeros({2, 3}),
                                                      {.attn_mask = zeros({2, 2}), .is_causal = true});
                       }},
                      {"dropout_p 1.5 is no probability",
                       [] {
                         scaled_dot_product_attention(zeros({2, 3}), zeros({2, 3}), zeros({2, 3}), {.dropout_p = 1.5});
                       }},
                      {"attn_mask is (2, 3), which does not broadcast to the scores of shape (2, 2)",
                       [] {
                         scaled_dot_product_attention(zeros({2, 3}), zeros({2, 3}), zeros({2, 3}),
                                                      {.attn_mask = ones({2, 3}, {.dtype = kBool})});
                       }},
                      {"attn_mask is int64; bool or a floating type is needed",
                       [] {
                         scaled_dot_product_attention(zeros({2, 3}), zeros({2, 3}), zeros({2, 3}),
                                                      {.attn_mask = ones({2, 2}, {.dtype = kInt64})});
                       }},
                      {"q is (4, 2, 3), k (3, 2, 3), v (3, 2, 3): with enable_gqa, axis -3 holds the heads",
                       [] {
                         scaled_dot_product_attention(zeros({4, 2, 3}), zeros({3, 2, 3}), zeros({3, 2, 3}),
                                                      {.enable_gqa = true});
                       }},
                      {"q is float32, k is float64, v is float32: their types have to be equal",
                       [] {
                         scaled_dot_product_attention(zeros({2, 3}), zeros({2, 3}, {.dtype = kDouble}), zeros({2, 3}));
                       }},
                      {"needs floating-point values, q is int64",
                       [] {
                         const Tensor whole = zeros({2, 3}, {.dtype = kInt64});
                         scaled_dot_product_attention(whole, whole, whole);
                       }}},
           .bench = {attention_sample({8, 6, 128, 32}, {8, 6, 128, 32}, {8, 6, 128, 32}, {.is_causal = true})},
           .work = attention_work}};
}

}  // namespace levin::test
