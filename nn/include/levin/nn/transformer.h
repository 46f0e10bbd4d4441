#pragma once
// Attention and Transformer layers (Vaswani et al. 2017). Names of children and parameters, defaults and initial values
// are PyTorch's. Masks of bool are true where a position is NOT attended, as in PyTorch's layers (and opposite to
// scaled_dot_product_attention); float masks are added to the scores.

#include <levin/nn/container.h>
#include <levin/nn/layers.h>

#include <utility>

namespace levin::nn {

struct MultiheadAttentionOptions {
  double dropout = 0.0;
  bool bias = true;
  std::optional<int64_t> kdim{}, vdim{};  ///< features of the keys and values; default: embed_dim
  bool batch_first = false;               ///< (B, T, E) instead of (T, B, E)
};
struct AttentionCallOptions {
  Tensor key_padding_mask{};         ///< (B, S): keys to ignore
  bool need_weights = true;          ///< returns the weights too; without them attention runs by blocks
  Tensor attn_mask{};                ///< (L, S) or (B * num_heads, L, S)
  bool average_attn_weights = true;  ///< means over the heads, (B, L, S), else (B, num_heads, L, S)
  bool is_causal = false;            ///< position i attends to 0..i; instead of attn_mask
};
/// Projects queries, keys and values, attends with num_heads heads and projects the result. Returns it and the weights
/// (undefined unless needed): `auto [y, w] = attention(q, k, v, {.attn_mask = m});`
class MultiheadAttention : public Layer<MultiheadAttention> {
 public:
  using Options = MultiheadAttentionOptions;
  MultiheadAttention(int64_t embed_dim, int64_t num_heads, const Options& options = {});
  std::pair<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionCallOptions& call = {});
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(embed_dim, num_heads, options);
  }

  const int64_t embed_dim, num_heads;
  const Options options;
  Parameter& in_proj_weight;                                 ///< (3 E, E), undefined with kdim or vdim
  Parameter &q_proj_weight, &k_proj_weight, &v_proj_weight;  ///< with kdim or vdim
  Parameter& in_proj_bias;                                   ///< (3 E) or undefined
  Linear& out_proj;

 private:
  std::vector<Tensor> projections(const Tensor& query, const Tensor& key, const Tensor& value) const;
};

/// Returns (size, size) of 0 where a position may attend, and of -infinity above the diagonal.
Tensor generate_square_subsequent_mask(int64_t size, const TensorOptions& options = {});

enum class TransformerActivation { relu, gelu };
struct TransformerLayerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  TransformerActivation activation = TransformerActivation::relu;
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;  ///< normalizes before each part instead of after it
  bool bias = true;
};
struct EncoderMasks {
  Tensor src_mask{};              ///< (S, S) or (B * nhead, S, S)
  Tensor src_key_padding_mask{};  ///< (B, S)
  bool is_causal = false;
};
struct DecoderMasks {
  Tensor tgt_mask{}, memory_mask{};
  Tensor tgt_key_padding_mask{}, memory_key_padding_mask{};
  bool tgt_is_causal = false;
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

class TransformerEncoderLayer : public Layer<TransformerEncoderLayer, detail::TransformerLayer> {
 public:
  using Options = TransformerLayerOptions;
  TransformerEncoderLayer(int64_t d_model, int64_t nhead, const Options& options = {});
  Tensor forward(Tensor src, const EncoderMasks& masks = {});
  template <class F>
  auto with_arguments(F construct) const {
    return construct(d_model, nhead, options);
  }

  LayerNorm &norm1, &norm2;
  Dropout &dropout1, &dropout2;
};

class TransformerDecoderLayer : public Layer<TransformerDecoderLayer, detail::TransformerLayer> {
 public:
  using Options = TransformerLayerOptions;
  TransformerDecoderLayer(int64_t d_model, int64_t nhead, const Options& options = {});
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {});
  template <class F>
  auto with_arguments(F construct) const {
    return construct(d_model, nhead, options);
  }

  MultiheadAttention& multihead_attn;
  LayerNorm &norm1, &norm2, &norm3;
  Dropout &dropout1, &dropout2, &dropout3;
};

/// A stack of encoder layers with the arguments of the first, and a last normalization if `norm`.
class TransformerEncoder : public Layer<TransformerEncoder> {
 public:
  TransformerEncoder(int64_t d_model, int64_t nhead, int64_t num_layers, const TransformerLayerOptions& options = {},
                     bool norm = false);
  Tensor forward(Tensor src, const EncoderMasks& masks = {});
  template <class F>
  auto with_arguments(F construct) const {
    return construct(layers[0].d_model, layers[0].nhead, static_cast<int64_t>(layers.size()), layers[0].options,
                     norm != nullptr);
  }

  ModuleList<TransformerEncoderLayer>& layers;
  LayerNorm* const norm;  ///< null without one
};

class TransformerDecoder : public Layer<TransformerDecoder> {
 public:
  TransformerDecoder(int64_t d_model, int64_t nhead, int64_t num_layers, const TransformerLayerOptions& options = {},
                     bool norm = false);
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {});
  template <class F>
  auto with_arguments(F construct) const {
    return construct(layers[0].d_model, layers[0].nhead, static_cast<int64_t>(layers.size()), layers[0].options,
                     norm != nullptr);
  }

  ModuleList<TransformerDecoderLayer>& layers;
  LayerNorm* const norm;
};

struct TransformerOptions {
  int64_t d_model = 512;
  int64_t nhead = 8;
  int64_t num_encoder_layers = 6;
  int64_t num_decoder_layers = 6;
  TransformerLayerOptions layer{};
};
/// Encoder and decoder, each with a last normalization. Matrices are initialized by xavier_uniform_.
class Transformer : public Layer<Transformer> {
 public:
  using Options = TransformerOptions;
  explicit Transformer(const Options& options = {});
  Tensor forward(const Tensor& src, const Tensor& tgt, const EncoderMasks& encoder_masks = {},
                 const DecoderMasks& decoder_masks = {});
  template <class F>
  auto with_arguments(F construct) const {
    return construct(options);
  }

  const Options options;
  TransformerEncoder& encoder;
  TransformerDecoder& decoder;
};

}  // namespace levin::nn
