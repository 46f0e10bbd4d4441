#pragma once
// Attention and Transformer layers (Vaswani et al. 2017). Names of children and parameters, defaults and initial values
// are PyTorch's. Masks of bool are true where a position is NOT attended, as in PyTorch's layers (and opposite to
// scaled_dot_product_attention); float masks are added to the scores.

#include <levin/nn/container.h>
#include <levin/nn/layers.h>

#include <utility>

namespace levin::nn {

/// Options of MultiheadAttention.
struct MultiheadAttentionOptions {
  double dropout = 0.0;                   ///< probability with which attention weights are zeroed in training
  bool bias = true;                       ///< adds biases to the projections
  std::optional<int64_t> kdim{}, vdim{};  ///< features of the keys and values; default: embed_dim
  bool batch_first = false;               ///< (B, T, E) instead of (T, B, E)
};
/// Options of a call of MultiheadAttention, for L queries and S keys. Masks are bool, true where a key is not attended,
/// or floating numbers that are added to the scores.
struct AttentionCallOptions {
  Tensor key_padding_mask{};         ///< (B, S): keys to ignore
  bool need_weights = true;          ///< returns the weights too; without them attention runs by blocks
  Tensor attn_mask{};                ///< (L, S) or (B * num_heads, L, S)
  bool average_attn_weights = true;  ///< means over the heads, (B, L, S), else (B, num_heads, L, S)
  bool is_causal = false;            ///< position i attends to 0..i; has no effect beside attn_mask
};
/// Projects queries, keys and values, attends with num_heads heads, softmax(Q K^T / sqrt(E / num_heads) + mask) V of
/// each, and projects the result. With E = embed_dim, query is (L, B, E), key (S, B, kdim) and value (S, B, vdim); with
/// batch_first (B, L, E) and so on; without a batch (L, E) and so on. forward throws ShapeError for other shapes. It
/// returns the result, of the query's shape, and the weights (B, L, S), undefined unless needed:
///
///   auto [y, w] = attention(q, k, v, {.attn_mask = m});
class MultiheadAttention : public Layer<MultiheadAttention> {
 public:
  using Options = MultiheadAttentionOptions;
  /// Initializes the projections by xavier_uniform_ and biases with 0. Throws ValueError unless num_heads divides
  /// embed_dim.
  MultiheadAttention(int64_t embed_dim, int64_t num_heads, const Options& options = {});
  std::pair<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionCallOptions& call = {});
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(embed_dim, num_heads, options); }

  const int64_t embed_dim, num_heads;
  const Options options;
  Parameter& in_proj_weight;                                 ///< (3 E, E), undefined with kdim or vdim
  Parameter &q_proj_weight, &k_proj_weight, &v_proj_weight;  ///< (E, E), (E, kdim), (E, vdim) with kdim or vdim
  Parameter& in_proj_bias;                                   ///< (3 E) or undefined
  Linear& out_proj;                                          ///< projects the result, E to E features

 private:
  std::vector<Tensor> projections(const Tensor& query, const Tensor& key, const Tensor& value) const;
};

/// Returns a mask (size, size) of 0 where a position may attend and of -infinity above the diagonal, in default_dtype()
/// unless the options give another.
Tensor generate_square_subsequent_mask(int64_t size, const TensorOptions& options = {});

/// Activation between the two linear layers of a Transformer layer; gelu is the exact one.
enum class TransformerActivation { relu, gelu };
/// Options of the encoder and decoder layers.
struct TransformerLayerOptions {
  int64_t dim_feedforward = 2048;  ///< features between the two linear layers
  double dropout = 0.1;            ///< probability of all dropouts, those of attention weights included
  TransformerActivation activation = TransformerActivation::relu;  ///< between the two linear layers
  double layer_norm_eps = 1e-5;                                    ///< eps of LayerNorm
  bool batch_first = false;                                        ///< (B, T, E) instead of (T, B, E)
  bool norm_first = false;  ///< normalizes before each part instead of after it
  bool bias = true;         ///< biases of attention, linear layers and LayerNorm
};
/// Masks of the source, which has S positions: bool, true where a position is not attended, or floating numbers that
/// are added to the scores.
struct EncoderMasks {
  Tensor src_mask{};              ///< (S, S) or (B * nhead, S, S)
  Tensor src_key_padding_mask{};  ///< (B, S)
  bool is_causal = false;         ///< position i attends to 0..i; has no effect beside src_mask
};
/// Masks of the target, which has T positions, and of the encoder's result, which has S: bool, true where a position is
/// not attended, or floating numbers that are added to the scores.
struct DecoderMasks {
  Tensor tgt_mask{}, memory_mask{};                          ///< (T, T) and (T, S), or (B * nhead, T, T) and so on
  Tensor tgt_key_padding_mask{}, memory_key_padding_mask{};  ///< (B, T) and (B, S)
  bool tgt_is_causal = false;  ///< position i of the target attends to 0..i; has no effect beside tgt_mask
};

namespace detail {
/// The parts that both layers have, in PyTorch's order: attention, in a decoder also to the encoder's result, then
/// linear2(dropout(activation(linear1(x)))).
struct TransformerLayer : Module {
  TransformerLayer(int64_t d_model, int64_t nhead, const TransformerLayerOptions& options, bool decoder);
  Tensor feed_forward(const Tensor& x);

  const int64_t d_model, nhead;
  const TransformerLayerOptions options;
  MultiheadAttention& self_attn;
  MultiheadAttention* const to_memory;  ///< null in an encoder
  Linear& linear1;
  Dropout& dropout;
  Linear& linear2;
};
}  // namespace detail

/// Self-attention, then linear2(dropout(activation(linear1(x)))); each part is added to its input (residual connection)
/// and normalized by norm1 and norm2, with dropout1 and dropout2 on its result. src and the result are (S, B, d_model),
/// or (B, S, d_model) with batch_first, or (S, d_model); nhead is the number of heads.
class TransformerEncoderLayer : public Layer<TransformerEncoderLayer, detail::TransformerLayer> {
 public:
  using Options = TransformerLayerOptions;
  TransformerEncoderLayer(int64_t d_model, int64_t nhead, const Options& options = {});
  Tensor forward(Tensor src, const EncoderMasks& masks = {});
  auto with_arguments(auto construct) const { return construct(d_model, nhead, options); }

  LayerNorm &norm1, &norm2;
  Dropout &dropout1, &dropout2;
};

/// Self-attention, attention to the encoder's result (multihead_attn), then linear2(dropout(activation(linear1(x))));
/// each part is added to its input (residual connection) and normalized by norm1, norm2 and norm3, with dropout1,
/// dropout2 and dropout3 on its result. tgt and the result are (T, B, d_model), memory (S, B, d_model), or with the
/// batch first, or without one; nhead is the number of heads.
class TransformerDecoderLayer : public Layer<TransformerDecoderLayer, detail::TransformerLayer> {
 public:
  using Options = TransformerLayerOptions;
  TransformerDecoderLayer(int64_t d_model, int64_t nhead, const Options& options = {});
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {});
  auto with_arguments(auto construct) const { return construct(d_model, nhead, options); }

  MultiheadAttention& multihead_attn;
  LayerNorm &norm1, &norm2, &norm3;
  Dropout &dropout1, &dropout2, &dropout3;
};

/// A stack of num_layers encoder layers with these arguments, and a last normalization if `norm`. d_model, nhead, src
/// and the result are those of TransformerEncoderLayer. The constructor throws ValueError for num_layers below 1.
class TransformerEncoder : public Layer<TransformerEncoder> {
 public:
  TransformerEncoder(int64_t d_model, int64_t nhead, int64_t num_layers, const TransformerLayerOptions& options = {},
                     bool norm = false);
  Tensor forward(Tensor src, const EncoderMasks& masks = {});
  auto with_arguments(auto construct) const {
    return construct(layers[0].d_model, layers[0].nhead, static_cast<int64_t>(layers.size()), layers[0].options,
                     norm != nullptr);
  }

  ModuleList<TransformerEncoderLayer>& layers;  ///< the first layer first
  LayerNorm* const norm;                        ///< null without one
};

/// A stack of num_layers decoder layers with these arguments, and a last normalization if `norm`. d_model, nhead, tgt,
/// memory and the result are those of TransformerDecoderLayer. The constructor throws ValueError for num_layers below
/// 1.
class TransformerDecoder : public Layer<TransformerDecoder> {
 public:
  TransformerDecoder(int64_t d_model, int64_t nhead, int64_t num_layers, const TransformerLayerOptions& options = {},
                     bool norm = false);
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {});
  auto with_arguments(auto construct) const {
    return construct(layers[0].d_model, layers[0].nhead, static_cast<int64_t>(layers.size()), layers[0].options,
                     norm != nullptr);
  }

  ModuleList<TransformerDecoderLayer>& layers;  ///< the first layer first
  LayerNorm* const norm;                        ///< null without one
};

/// Options of Transformer.
struct TransformerOptions {
  int64_t d_model = 512;            ///< features of every position
  int64_t nhead = 8;                ///< heads; divides d_model
  int64_t num_encoder_layers = 6;   ///< 1 or more
  int64_t num_decoder_layers = 6;   ///< 1 or more
  TransformerLayerOptions layer{};  ///< of all layers
};
/// An encoder and a decoder, each with a last normalization: decoder(tgt, encoder(src)). src is (S, B, d_model), tgt
/// and the result are (T, B, d_model), or with the batch first, or without one. Matrices are initialized by
/// xavier_uniform_.
class Transformer : public Layer<Transformer> {
 public:
  using Options = TransformerOptions;
  explicit Transformer(const Options& options = {});
  Tensor forward(const Tensor& src, const Tensor& tgt, const EncoderMasks& encoder_masks = {},
                 const DecoderMasks& decoder_masks = {});
  auto with_arguments(auto construct) const { return construct(options); }

  const Options options;
  TransformerEncoder& encoder;
  TransformerDecoder& decoder;
};

}  // namespace levin::nn
