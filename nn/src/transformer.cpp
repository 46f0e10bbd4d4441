#include <levin/nn/transformer.h>

#include "layer_checks.h"

#include <levin/autograd/ops.h>
#include <levin/nn/init.h>

#include <limits>

namespace levin::nn {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// Returns the mask as numbers that are added to the scores; true means ignored.
Tensor as_scores(const Tensor& mask, DType dtype) {
  if (mask.dtype() != kBool) return to(mask, dtype);
  return masked_fill(zeros(mask.sizes(), {.dtype = dtype, .device = mask.device()}), mask, kNever);
}

}  // namespace

MultiheadAttention::MultiheadAttention(int64_t embed, int64_t heads, const Options& o)
    : embed_dim(embed),
      num_heads(heads),
      options(o),
      in_proj_weight(register_parameter("in_proj_weight", o.kdim || o.vdim ? Tensor() : empty({3 * embed, embed}))),
      q_proj_weight(register_parameter("q_proj_weight", o.kdim || o.vdim ? empty({embed, embed}) : Tensor())),
      k_proj_weight(
          register_parameter("k_proj_weight", o.kdim || o.vdim ? empty({embed, o.kdim.value_or(embed)}) : Tensor())),
      v_proj_weight(
          register_parameter("v_proj_weight", o.kdim || o.vdim ? empty({embed, o.vdim.value_or(embed)}) : Tensor())),
      in_proj_bias(register_parameter("in_proj_bias", o.bias ? zeros({3 * embed}) : Tensor())),
      out_proj(add<Linear>("out_proj", embed, embed, Linear::Options{.bias = o.bias})) {
  require_positive("MultiheadAttention", "num_heads", heads);
  if (embed % heads != 0)
    throw ValueError(fmt::format("[MultiheadAttention] embed_dim {} does not divide into {} heads.", embed, heads));
  for (const Tensor& w : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight})
    if (w.defined()) init::xavier_uniform_(w);
  if (o.bias) init::constant_(out_proj.bias, 0.0);
}

std::string MultiheadAttention::extra_repr() const { return fmt::format("{}, num_heads={}", embed_dim, num_heads); }

std::vector<Tensor> MultiheadAttention::projections(const Tensor& query, const Tensor& key, const Tensor& value) const {
  std::vector<Tensor> biases(3);
  if (in_proj_bias.defined()) biases = chunk(in_proj_bias, 3);
  if (in_proj_weight.defined()) {
    if (query.is_same(key) && key.is_same(value)) return chunk(linear(query, in_proj_weight, in_proj_bias), 3, -1);
    const std::vector<Tensor> weights = chunk(in_proj_weight, 3);
    return {linear(query, weights[0], biases[0]), linear(key, weights[1], biases[1]),
            linear(value, weights[2], biases[2])};
  }
  return {linear(query, q_proj_weight, biases[0]), linear(key, k_proj_weight, biases[1]),
          linear(value, v_proj_weight, biases[2])};
}

std::pair<Tensor, Tensor> MultiheadAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                      const AttentionCallOptions& call) {
  if (query.dim() == 2) {
    const Tensor q = unsqueeze(query, options.batch_first ? 0 : 1);
    const Tensor k = query.is_same(key) ? q : unsqueeze(key, options.batch_first ? 0 : 1);
    const Tensor v = key.is_same(value) ? k : unsqueeze(value, options.batch_first ? 0 : 1);
    AttentionCallOptions batched = call;
    if (batched.key_padding_mask.defined()) batched.key_padding_mask = unsqueeze(batched.key_padding_mask, 0);
    const auto [y, w] = forward(q, k, v, batched);
    return {squeeze(y, options.batch_first ? 0 : 1), w.defined() ? squeeze(w, 0) : w};
  }
  if (query.dim() != 3 || key.dim() != 3 || value.dim() != 3 || query.size(-1) != embed_dim)
    throw ShapeError(
        fmt::format("[MultiheadAttention] query, key and value are {}, {} and {}; expected are three axes "
                    "of which the query's last is {}.",
                    to_string(query.sizes()), to_string(key.sizes()), to_string(value.sizes()), embed_dim));
  const int time = options.batch_first ? 1 : 0;
  const int64_t batch = query.size(1 - time), l = query.size(time), s = key.size(time), size = embed_dim / num_heads;
  std::vector<Tensor> parts = projections(query, key, value);
  for (Tensor& t : parts) {  // to (B, heads, T, size)
    const Tensor first = options.batch_first ? t : transpose(t, 0, 1);
    t = transpose(reshape(first, {batch, first.size(1), num_heads, size}), 1, 2);
  }
  Tensor mask;
  if (call.attn_mask.defined()) {
    mask = as_scores(call.attn_mask, query.dtype());
    if (mask.dim() == 3) mask = reshape(mask, {batch, num_heads, l, s});
  }
  if (call.is_causal && !mask.defined() && (call.need_weights || call.key_padding_mask.defined()))
    mask = generate_square_subsequent_mask(l, like(query));
  if (call.key_padding_mask.defined()) {
    const Tensor padding = reshape(as_scores(call.key_padding_mask, query.dtype()), {batch, 1, 1, s});
    mask = mask.defined() ? levin::add(mask, padding) : padding;
  }
  const double p = is_training() ? options.dropout : 0.0;
  Tensor weights, y;
  if (call.need_weights) {
    Tensor scores = matmul(mul(parts[0], 1.0 / std::sqrt(static_cast<double>(size))), transpose(parts[1], -2, -1));
    if (mask.defined()) scores = levin::add(scores, mask);
    weights = dropout(softmax(scores, -1), p, is_training());
    y = matmul(weights, parts[2]);
    if (call.average_attn_weights) weights = mean(weights, 1);
  } else {
    y = scaled_dot_product_attention(
        parts[0], parts[1], parts[2],
        {.attn_mask = mask, .dropout_p = p, .is_causal = call.is_causal && !mask.defined()});
  }
  y = reshape(transpose(y, 1, 2), {batch, l, embed_dim});
  y = out_proj(options.batch_first ? y : transpose(y, 0, 1));
  return {y, weights};
}

Tensor generate_square_subsequent_mask(int64_t size, const TensorOptions& options) {
  return triu(full({size, size}, kNever, {.dtype = options.dtype.value_or(default_dtype()), .device = options.device}),
              1);
}

// Layers

namespace {

MultiheadAttention::Options attention_options(const TransformerLayerOptions& o) {
  return {.dropout = o.dropout, .bias = o.bias, .batch_first = o.batch_first};
}
LayerNorm::Options norm_options(const TransformerLayerOptions& o) { return {.eps = o.layer_norm_eps, .bias = o.bias}; }

}  // namespace

detail::TransformerLayer::TransformerLayer(int64_t model, int64_t heads, const TransformerLayerOptions& o, bool decoder)
    : d_model(model),
      nhead(heads),
      options(o),
      self_attn(add<MultiheadAttention>("self_attn", model, heads, attention_options(o))),
      to_memory(decoder ? &add<MultiheadAttention>("multihead_attn", model, heads, attention_options(o)) : nullptr),
      linear1(add<Linear>("linear1", model, o.dim_feedforward, Linear::Options{.bias = o.bias})),
      dropout(add<Dropout>("dropout", o.dropout)),
      linear2(add<Linear>("linear2", o.dim_feedforward, model, Linear::Options{.bias = o.bias})) {}

Tensor detail::TransformerLayer::feed_forward(const Tensor& x) {
  const Tensor inner = linear1(x);
  return linear2(dropout(options.activation == TransformerActivation::relu ? relu(inner) : gelu(inner)));
}

namespace {

/// Adds the part's result to x, with the normalization before the part or after the sum.
template <class Part>
Tensor residual(const Tensor& x, bool norm_first, LayerNorm& norm, Dropout& dropout, const Part& part) {
  return norm_first ? add(x, dropout(part(norm(x)))) : norm(add(x, dropout(part(x))));
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(int64_t model, int64_t heads, const Options& o)
    : Layer(model, heads, o, false),
      norm1(add<LayerNorm>("norm1", model, norm_options(o))),
      norm2(add<LayerNorm>("norm2", model, norm_options(o))),
      dropout1(add<Dropout>("dropout1", o.dropout)),
      dropout2(add<Dropout>("dropout2", o.dropout)) {}

Tensor TransformerEncoderLayer::forward(Tensor src, const EncoderMasks& m) {
  const AttentionCallOptions call{.key_padding_mask = m.src_key_padding_mask,
                                  .need_weights = false,
                                  .attn_mask = m.src_mask,
                                  .is_causal = m.is_causal};
  const Tensor x = residual(src, options.norm_first, norm1, dropout1,
                            [&](const Tensor& t) { return self_attn(t, t, t, call).first; });
  return residual(x, options.norm_first, norm2, dropout2, [&](const Tensor& t) { return feed_forward(t); });
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t model, int64_t heads, const Options& o)
    : Layer(model, heads, o, true),
      multihead_attn(*to_memory),
      norm1(add<LayerNorm>("norm1", model, norm_options(o))),
      norm2(add<LayerNorm>("norm2", model, norm_options(o))),
      norm3(add<LayerNorm>("norm3", model, norm_options(o))),
      dropout1(add<Dropout>("dropout1", o.dropout)),
      dropout2(add<Dropout>("dropout2", o.dropout)),
      dropout3(add<Dropout>("dropout3", o.dropout)) {}

Tensor TransformerDecoderLayer::forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& m) {
  const AttentionCallOptions own{.key_padding_mask = m.tgt_key_padding_mask,
                                 .need_weights = false,
                                 .attn_mask = m.tgt_mask,
                                 .is_causal = m.tgt_is_causal};
  const AttentionCallOptions other{
      .key_padding_mask = m.memory_key_padding_mask, .need_weights = false, .attn_mask = m.memory_mask};
  Tensor x = residual(tgt, options.norm_first, norm1, dropout1,
                      [&](const Tensor& t) { return self_attn(t, t, t, own).first; });
  x = residual(x, options.norm_first, norm2, dropout2,
               [&](const Tensor& t) { return multihead_attn(t, memory, memory, other).first; });
  return residual(x, options.norm_first, norm3, dropout3, [&](const Tensor& t) { return feed_forward(t); });
}

// Stacks

TransformerEncoder::TransformerEncoder(int64_t model, int64_t heads, int64_t num_layers,
                                       const TransformerLayerOptions& o, bool with_norm)
    : layers(add<ModuleList<TransformerEncoderLayer>>("layers")),
      norm(with_norm ? &add<LayerNorm>("norm", model, norm_options(o)) : nullptr) {
  require_positive("TransformerEncoder", "num_layers", num_layers);
  for (int64_t i = 0; i < num_layers; ++i) layers.append(model, heads, o);
}

Tensor TransformerEncoder::forward(Tensor src, const EncoderMasks& masks) {
  Tensor x = src;
  for (TransformerEncoderLayer& layer : layers) x = layer(x, masks);
  return norm ? (*norm)(x) : x;
}

TransformerDecoder::TransformerDecoder(int64_t model, int64_t heads, int64_t num_layers,
                                       const TransformerLayerOptions& o, bool with_norm)
    : layers(add<ModuleList<TransformerDecoderLayer>>("layers")),
      norm(with_norm ? &add<LayerNorm>("norm", model, norm_options(o)) : nullptr) {
  require_positive("TransformerDecoder", "num_layers", num_layers);
  for (int64_t i = 0; i < num_layers; ++i) layers.append(model, heads, o);
}

Tensor TransformerDecoder::forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks) {
  Tensor x = tgt;
  for (TransformerDecoderLayer& layer : layers) x = layer(x, memory, masks);
  return norm ? (*norm)(x) : x;
}

Transformer::Transformer(const Options& o)
    : options(o),
      encoder(add<TransformerEncoder>("encoder", o.d_model, o.nhead, o.num_encoder_layers, o.layer, true)),
      decoder(add<TransformerDecoder>("decoder", o.d_model, o.nhead, o.num_decoder_layers, o.layer, true)) {
  for (const Parameter& p : parameters())
    if (p.dim() > 1) init::xavier_uniform_(p);
}

Tensor Transformer::forward(const Tensor& src, const Tensor& tgt, const EncoderMasks& encoder_masks,
                            const DecoderMasks& decoder_masks) {
  return decoder(tgt, encoder(src, encoder_masks), decoder_masks);
}

}  // namespace levin::nn
