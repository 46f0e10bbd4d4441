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

EmbeddingBag::EmbeddingBag(int64_t rows, int64_t columns, const Options& given)
    : num_embeddings(rows),
      embedding_dim(columns),
      options(given),
      weight(register_parameter("weight", empty({rows, columns}))) {
  init::normal_(weight);
  if (!options.padding_idx) return;
  if (*options.padding_idx < -rows || *options.padding_idx >= rows)
    throw IndexError(fmt::format("[EmbeddingBag] padding_idx {} is outside of {} rows.", *options.padding_idx, rows));
  no_grad guard;
  weight.select(0, *options.padding_idx).zero_();
}
Tensor EmbeddingBag::forward(const Tensor& index, const Tensor& offsets, const Tensor& per_sample_weights) {
  return embedding_bag(weight, index, offsets, options, per_sample_weights);
}
std::string EmbeddingBag::extra_repr() const {
  const char* const modes[] = {"sum", "mean", "max"};
  return fmt::format("{}, {}, mode={}{}", num_embeddings, embedding_dim, modes[static_cast<int>(options.mode)],
                     options.sparse ? ", sparse=True" : "");
}

}  // namespace levin::nn
