#include <levin/nn/layers.h>

#include "layer_checks.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/nn/init.h>

#include <fmt/format.h>

#include <cmath>

namespace levin::nn {

void reset_weight_and_bias(const Tensor& weight, const Tensor& bias) {
  init::kaiming_uniform_(weight, {.a = std::sqrt(5.0)});
  if (!bias.defined()) return;
  const auto fan_in = static_cast<double>(init::calculate_fans(weight).in);
  const double bound = fan_in > 0 ? 1.0 / std::sqrt(fan_in) : 0.0;
  init::uniform_(bias, -bound, bound);
}

Linear::Linear(int64_t in, int64_t out, const Options& options)
    : in_features(in), out_features(out), weight(register_parameter("weight", empty({out, in}))),
      bias(register_parameter("bias", options.bias ? empty({out}) : Tensor())) {
  reset_parameters();
}

void Linear::reset_parameters() { reset_weight_and_bias(weight, bias); }
Tensor Linear::forward(const Tensor& x) {
  if (!int8) return linear(x, weight, bias);
  return int8.mode == QuantizeMode::dynamic_int8 ? linear_int8_dynamic(x, weight, int8.scale, bias)
                                                 : linear_int8_weight_only(x, weight, int8.scale, bias);
}
std::string Linear::extra_repr() const {
  const std::string mode = int8 ? ", " + to_string(int8.mode) : std::string();
  return fmt::format("in_features={}, out_features={}, bias={}{}", in_features, out_features, yes_no(bias.defined()),
                     mode);
}

Flatten::Flatten(int64_t start, int64_t end) : start_dim(start), end_dim(end) {}
Tensor Flatten::forward(const Tensor& x) { return flatten(x, start_dim, end_dim); }
std::string Flatten::extra_repr() const { return fmt::format("start_dim={}, end_dim={}", start_dim, end_dim); }

detail::DropoutBase::DropoutBase(const char* layer, double probability) : p(probability) {
  if (!(p >= 0 && p <= 1)) throw ValueError(fmt::format("[{}] p is {}. Give a probability between 0 and 1.", layer, p));
}
std::string detail::DropoutBase::extra_repr() const { return fmt::format("p={}", p); }

Dropout::Dropout(double probability) : Layer("Dropout", probability) {}
Tensor Dropout::forward(const Tensor& x) { return dropout(x, p, is_training()); }
FeatureDropout::FeatureDropout(double probability) : Layer("FeatureDropout", probability) {}
Tensor FeatureDropout::forward(const Tensor& x) { return feature_dropout(x, p, is_training()); }
Dropout1d::Dropout1d(double probability) : Layer(probability) {}
Tensor Dropout1d::forward(const Tensor& x) { return dropout1d(x, p, is_training()); }
Dropout2d::Dropout2d(double probability) : Layer(probability) {}
Tensor Dropout2d::forward(const Tensor& x) { return dropout2d(x, p, is_training()); }
Dropout3d::Dropout3d(double probability) : Layer(probability) {}
Tensor Dropout3d::forward(const Tensor& x) { return dropout3d(x, p, is_training()); }
AlphaDropout::AlphaDropout(double probability) : Layer("AlphaDropout", probability) {}
Tensor AlphaDropout::forward(const Tensor& x) { return alpha_dropout(x, p, is_training()); }
FeatureAlphaDropout::FeatureAlphaDropout(double probability) : Layer("FeatureAlphaDropout", probability) {}
Tensor FeatureAlphaDropout::forward(const Tensor& x) { return feature_alpha_dropout(x, p, is_training()); }

Embedding::Embedding(int64_t rows, int64_t columns, const Options& o)
    : num_embeddings(rows),
      embedding_dim(columns),
      options(o),
      padding_idx(o.padding_idx && *o.padding_idx < 0 ? std::optional(*o.padding_idx + rows) : o.padding_idx),
      weight(register_parameter("weight", empty({rows, columns}))) {
  if (padding_idx && (*padding_idx < 0 || *padding_idx >= rows))
    throw IndexError(fmt::format("[Embedding] padding_idx {} is outside of {} rows.", *o.padding_idx, rows));
  reset_parameters();
}

void Embedding::reset_parameters() {
  init::normal_(weight);
  if (!padding_idx) return;
  no_grad guard;
  weight.select(0, *padding_idx).zero_();
}
Tensor Embedding::forward(const Tensor& index) {
  if (options.max_norm) embedding_renorm_(weight, index, *options.max_norm, options.norm_type);
  return embedding(weight, index, padding_idx, options.sparse);
}
std::string Embedding::extra_repr() const {
  const std::string text = fmt::format("{}, {}", num_embeddings, embedding_dim);
  const char* sparse = options.sparse ? ", sparse=True" : "";
  return text + (padding_idx ? fmt::format(", padding_idx={}", *padding_idx) : "") + sparse;
}

L2Norm::L2Norm(int64_t channels, double factor)
    : scale(factor), weight(register_parameter("weight", full({channels}, factor, {.dtype = default_dtype()}))) {
  require_positive("L2Norm", "channels", channels);
}
Tensor L2Norm::forward(const Tensor& x) {
  if (x.dim() < 2 || x.size(1) != weight.numel())
    throw ShapeError(
        fmt::format("[L2Norm] the input is {}, expected is (B, {}, ...).", to_string(x.sizes()), weight.numel()));
  Shape sizes = Shape::filled(x.dim(), 1);
  sizes[1] = weight.numel();
  return mul(normalize(x, 2.0, 1, 1e-10), reshape(weight, sizes));
}
std::string L2Norm::extra_repr() const { return fmt::format("{}, scale={}", weight.numel(), scale); }

namespace {

Tensor sine_table(int64_t steps, int64_t columns) {
  std::vector<double> values;
  for (int64_t t = 0; t < steps; ++t)
    for (int64_t i = 0; i < columns; ++i) {
      const double angle =
          static_cast<double>(t) * std::pow(10000.0, -static_cast<double>(i - i % 2) / static_cast<double>(columns));
      values.push_back(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  return from_data(values, {steps, 1, columns}, {.dtype = default_dtype()});
}

}  // namespace

PositionalEncoding::PositionalEncoding(int64_t width, const Options& o)
    : d_model(width), options(o), table_(register_buffer("pe", sine_table(o.max_len, width))) {
  require_positive("PositionalEncoding", "d_model", width);
}
Tensor PositionalEncoding::forward(const Tensor& x) {
  const int axis = options.batch_first ? 1 : 0;
  if (x.dim() != 3 || x.size(2) != d_model || x.size(axis) > options.max_len)
    throw ShapeError(
        fmt::format("[PositionalEncoding] the input is {}, expected is {} with T up to {}.", to_string(x.sizes()),
                    options.batch_first ? fmt::format("(B, T, {})", d_model) : fmt::format("(T, B, {})", d_model),
                    options.max_len));
  const Tensor rows = narrow(table_, 0, 0, x.size(axis));  // (T, 1, E)
  return dropout(x + (options.batch_first ? transpose(rows, 0, 1) : rows), options.dropout, is_training());
}
std::string PositionalEncoding::extra_repr() const {
  return fmt::format("{}, dropout={}, max_len={}", d_model, options.dropout, options.max_len);
}

Bilinear::Bilinear(int64_t in1, int64_t in2, int64_t out, const Options& options)
    : in1_features(in1), in2_features(in2), out_features(out),
      weight(register_parameter("weight", empty({out, in1, in2}))),
      bias(register_parameter("bias", options.bias ? empty({out}) : Tensor())) {
  require_positive("Bilinear", "in1_features", in1);
  reset_parameters();
}
void Bilinear::reset_parameters() {
  const double bound = 1.0 / std::sqrt(static_cast<double>(in1_features));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}
Tensor Bilinear::forward(const Tensor& x1, const Tensor& x2) { return bilinear(x1, x2, weight, bias); }
std::string Bilinear::extra_repr() const {
  return fmt::format("in1_features={}, in2_features={}, out_features={}, bias={}", in1_features, in2_features,
                     out_features, yes_no(bias.defined()));
}

Unflatten::Unflatten(int64_t axis, const Shape& parts) : dim(axis), sizes(parts) {}
Tensor Unflatten::forward(const Tensor& x) { return unflatten(x, dim, sizes); }
std::string Unflatten::extra_repr() const {
  return fmt::format("dim={}, unflattened_size={}", dim, to_string(sizes));
}

namespace {

/// Counts padding_idx from the front.
EmbeddingBag::Options from_front(EmbeddingBag::Options o, int64_t rows) {
  if (!o.padding_idx) return o;
  if (*o.padding_idx < -rows || *o.padding_idx >= rows)
    throw IndexError(fmt::format("[EmbeddingBag] padding_idx {} is outside of {} rows.", *o.padding_idx, rows));
  if (*o.padding_idx < 0) *o.padding_idx += rows;
  return o;
}

}  // namespace

EmbeddingBag::EmbeddingBag(int64_t rows, int64_t columns, const Options& o)
    : num_embeddings(rows),
      embedding_dim(columns),
      options(from_front(o, rows)),
      weight(register_parameter("weight", empty({rows, columns}))) {
  init::normal_(weight);
  if (!options.padding_idx) return;
  no_grad guard;
  weight.select(0, *options.padding_idx).zero_();
}

namespace {

/// Returns the number of the bag of each index: bags begin at `offsets`.
Tensor bags_of(const Tensor& index, const Tensor& offsets) {
  return sub(searchsorted(offsets, arange(index.numel()).to(index.device()), true), 1);
}

/// Returns which elements of the index are padding, with a last axis of 1; undefined if there is no padding.
Tensor padding_of(const EmbeddingBag& bag, const Tensor& index) {
  return bag.options.padding_idx ? unsqueeze(eq(index, *bag.options.padding_idx), -1) : Tensor();
}

/// Returns the rows of the table times their weights, and 0 for padding, whatever its row contains.
Tensor rows_of(const EmbeddingBag& bag, const Tensor& index, const Tensor& padding, const Tensor& weights) {
  Tensor rows = embedding(bag.weight, index, bag.options.padding_idx, bag.options.sparse);
  if (padding.defined()) rows = masked_fill(rows, padding, 0);
  return weights.defined() ? mul(rows, unsqueeze(weights, -1)) : rows;
}

/// Sums, or averages, the rows of bags of one length: index (B, n), weights of the index's sizes or undefined.
Tensor combined(const EmbeddingBag& bag, const Tensor& index, const Tensor& weights) {
  const Tensor padding = padding_of(bag, index), sums = sum(rows_of(bag, index, padding, weights), {1});
  if (bag.options.mode == BagMode::sum) return sums;
  if (padding.defined()) return div(sums, clamp(sum(to(logical_not(padding), sums.dtype()), {1}), 1));
  return index.size(1) > 1 ? div(sums, index.size(1)) : sums;
}

}  // namespace

Tensor EmbeddingBag::forward(const Tensor& index, const Tensor& given_offsets, const Tensor& per_sample_weights) {
  const bool last = options.include_last_offset && given_offsets.defined();
  const Tensor offsets = last ? narrow(given_offsets, 0, 0, given_offsets.numel() - 1) : given_offsets;
  if (options.max_norm) embedding_renorm_(weight, index, *options.max_norm, options.norm_type);
  if (index.dim() != 2 && !(index.dim() == 1 && offsets.defined()))
    throw ShapeError(fmt::format("[EmbeddingBag] the index is {}, expected is (B, n), or a vector with offsets.",
                                 to_string(index.sizes())));
  if (per_sample_weights.defined() && (options.mode != BagMode::sum || per_sample_weights.sizes() != index.sizes()))
    throw ValueError("[EmbeddingBag] per_sample_weights need mode sum and the sizes of the index.");
  if (index.dim() == 1 && offsets.numel() > 0 && offsets[0].item<int64_t>() != 0)
    throw ValueError(fmt::format("[EmbeddingBag] the first offset is {}; the first bag must begin at 0.",
                                 offsets[0].item<int64_t>()));
  if (index.dim() == 2 && options.mode != BagMode::max) return combined(*this, index, per_sample_weights);
  const int64_t bags = index.dim() == 2 ? index.size(0) : offsets.numel();
  const Tensor flat = ravel(index);
  const Tensor bag = index.dim() == 2 ? repeat_interleave(arange(bags), index.size(1)).to(index.device())
                                      : bags_of(flat, offsets);
  const Tensor padding = padding_of(*this, flat);
  const Tensor rows = rows_of(*this, flat, padding, per_sample_weights);
  Tensor taken = ones({flat.numel(), 1}, {.dtype = rows.dtype(), .device = rows.device()});
  if (padding.defined()) taken = masked_fill(taken, padding, 0);
  const Tensor empty_bags = zeros({bags, embedding_dim}, {.dtype = rows.dtype(), .device = rows.device()});
  if (options.mode == BagMode::max) {
    const Tensor lowest = masked_fill(rows, eq(taken, 0), -std::numeric_limits<double>::infinity());
    const Tensor place = expand(unsqueeze(bag, 1), rows.sizes()).contiguous();
    const Tensor best = scatter_reduce(empty_bags, 0, place, lowest, ScatterReduce::amax, false);
    return masked_fill(best, isneginf(best), 0);
  }
  const Tensor sums = index_add(empty_bags, 0, bag, rows);
  if (options.mode == BagMode::sum) return sums;
  const Tensor counts = index_add(zeros({bags, 1}, {.dtype = rows.dtype(), .device = rows.device()}), 0, bag, taken);
  return div(sums, clamp(counts, 1));
}
std::string EmbeddingBag::extra_repr() const {
  const char* const modes[] = {"sum", "mean", "max"};
  return fmt::format("{}, {}, mode={}{}", num_embeddings, embedding_dim, modes[static_cast<int>(options.mode)],
                     options.sparse ? ", sparse=True" : "");
}

}  // namespace levin::nn
