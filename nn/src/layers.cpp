#include <levin/nn/layers.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/nn/activation.h>
#include <levin/nn/container.h>
#include <levin/nn/init.h>
#include <levin/nn/loss.h>

#include <fmt/format.h>

#include <cmath>

namespace levin::nn {

namespace {

const char* yes_no(bool b) { return b ? "True" : "False"; }
std::string pair_text(Tuple<2> p) { return fmt::format("({}, {})", p[0], p[1]); }
std::string pool_pair(Tuple<2> p) { return p[0] == p[1] ? std::to_string(p[0]) : pair_text(p); }

void require_positive(const char* layer, const char* argument, int64_t value) {
  if (value < 1) throw ValueError(fmt::format("[{}] {} is {}. Give 1 or more.", layer, argument, value));
}

void require_groups(const char* layer, int64_t in, int64_t out, int64_t groups) {
  require_positive(layer, "in_channels", in);
  require_positive(layer, "out_channels", out);
  require_positive(layer, "groups", groups);
  if (in % groups != 0 || out % groups != 0)
    throw ValueError(
        fmt::format("[{}] {} input and {} output channels do not divide into {} groups.", layer, in, out, groups));
}

/// Initializes linear and convolutional layers by PyTorch's defaults: both uniform in +-1 / sqrt(fan_in).
void reset_weight_and_bias(const Tensor& weight, const Tensor& bias) {
  init::kaiming_uniform_(weight, {.a = std::sqrt(5.0)});
  if (!bias.defined()) return;
  const auto fan_in = static_cast<double>(init::calculate_fans(weight).in);
  const double bound = fan_in > 0 ? 1.0 / std::sqrt(fan_in) : 0.0;
  init::uniform_(bias, -bound, bound);
}

}  // namespace

Linear::Linear(int64_t in, int64_t out, const Options& options)
    : in_features(in), out_features(out), weight(register_parameter("weight", empty({out, in}))),
      bias(register_parameter("bias", options.bias ? empty({out}) : Tensor())) {
  reset_parameters();
}

void Linear::reset_parameters() { reset_weight_and_bias(weight, bias); }
Tensor Linear::forward(const Tensor& x) { return linear(x, weight, bias); }
std::string Linear::extra_repr() const {
  return fmt::format("in_features={}, out_features={}, bias={}", in_features, out_features, yes_no(bias.defined()));
}

namespace {

Tensor conv_weight(const char* layer, int64_t in, int64_t out, int64_t groups, Tuple<2> kernel, bool transposed) {
  require_groups(layer, in, out, groups);
  require_positive(layer, "the kernel's height", kernel[0]);
  require_positive(layer, "the kernel's width", kernel[1]);
  return transposed ? empty({in, out / groups, kernel[0], kernel[1]}) : empty({out, in / groups, kernel[0], kernel[1]});
}

template <class Layer>
std::string conv_repr(const Layer& l, Tuple<2> output_padding) {
  std::string text = fmt::format("{}, {}, kernel_size={}, stride={}", l.in_channels, l.out_channels,
                                 pair_text(l.kernel_size), pair_text(l.options.stride));
  if (l.options.padding != Tuple<2>(0)) text += ", padding=" + pair_text(l.options.padding);
  if (l.options.dilation != Tuple<2>(1)) text += ", dilation=" + pair_text(l.options.dilation);
  if (output_padding != Tuple<2>(0)) text += ", output_padding=" + pair_text(output_padding);
  if (l.options.groups != 1) text += fmt::format(", groups={}", l.options.groups);
  if (!l.options.bias) text += ", bias=False";
  return text;
}

}  // namespace

Conv2d::Conv2d(int64_t in, int64_t out, Tuple<2> kernel, const Options& o)
    : in_channels(in),
      out_channels(out),
      kernel_size(kernel),
      options(o),
      weight(register_parameter("weight", conv_weight("Conv2d", in, out, o.groups, kernel, false))),
      bias(register_parameter("bias", o.bias ? empty({out}) : Tensor())) {
  reset_parameters();
}

void Conv2d::reset_parameters() { reset_weight_and_bias(weight, bias); }
Tensor Conv2d::forward(const Tensor& x) {
  return conv2d(
      x, weight, bias,
      {.stride = options.stride, .padding = options.padding, .dilation = options.dilation, .groups = options.groups});
}
std::string Conv2d::extra_repr() const { return conv_repr(*this, 0); }

ConvTranspose2d::ConvTranspose2d(int64_t in, int64_t out, Tuple<2> kernel, const Options& o)
    : in_channels(in),
      out_channels(out),
      kernel_size(kernel),
      options(o),
      weight(register_parameter("weight", conv_weight("ConvTranspose2d", in, out, o.groups, kernel, true))),
      bias(register_parameter("bias", o.bias ? empty({out}) : Tensor())) {
  reset_parameters();
}

void ConvTranspose2d::reset_parameters() { reset_weight_and_bias(weight, bias); }
Tensor ConvTranspose2d::forward(const Tensor& x) {
  return conv_transpose2d(x, weight, bias,
                          {.stride = options.stride,
                           .padding = options.padding,
                           .output_padding = options.output_padding,
                           .groups = options.groups,
                           .dilation = options.dilation});
}
std::string ConvTranspose2d::extra_repr() const { return conv_repr(*this, options.output_padding); }

MaxPool2d::MaxPool2d(Tuple<2> kernel, const Options& o) : kernel_size(kernel), options(o) {}
Tensor MaxPool2d::forward(const Tensor& x) { return max_pool2d(x, kernel_size, options); }
std::string MaxPool2d::extra_repr() const {
  return fmt::format("kernel_size={}, stride={}, padding={}, dilation={}, ceil_mode={}", pool_pair(kernel_size),
                     pool_pair(options.stride.value_or(kernel_size)), pool_pair(options.padding),
                     pool_pair(options.dilation), yes_no(options.ceil_mode));
}

AvgPool2d::AvgPool2d(Tuple<2> kernel, const Options& o) : kernel_size(kernel), options(o) {}
Tensor AvgPool2d::forward(const Tensor& x) { return avg_pool2d(x, kernel_size, options); }
std::string AvgPool2d::extra_repr() const {
  return fmt::format("kernel_size={}, stride={}, padding={}", pool_pair(kernel_size),
                     pool_pair(options.stride.value_or(kernel_size)), pool_pair(options.padding));
}

Flatten::Flatten(int64_t start, int64_t end) : start_dim(start), end_dim(end) {}
Tensor Flatten::forward(const Tensor& x) { return flatten(x, start_dim, end_dim); }
std::string Flatten::extra_repr() const { return fmt::format("start_dim={}, end_dim={}", start_dim, end_dim); }

Dropout::Dropout(double probability) : p(probability) {
  if (!(p >= 0 && p <= 1)) throw ValueError(fmt::format("[Dropout] p is {}. Give a probability between 0 and 1.", p));
}
Tensor Dropout::forward(const Tensor& x) { return dropout(x, p, is_training()); }
std::string Dropout::extra_repr() const { return fmt::format("p={}", p); }

Embedding::Embedding(int64_t rows, int64_t columns, const Options& options)
    : num_embeddings(rows), embedding_dim(columns),
      padding_idx(options.padding_idx ? std::optional<int64_t>(*options.padding_idx < 0 ? *options.padding_idx + rows
                                                                                        : *options.padding_idx)
                                      : std::nullopt),
      weight(register_parameter("weight", empty({rows, columns}))) {
  if (padding_idx && (*padding_idx < 0 || *padding_idx >= rows))
    throw IndexError(fmt::format("[Embedding] padding_idx {} is outside of {} rows.", *options.padding_idx, rows));
  reset_parameters();
}

void Embedding::reset_parameters() {
  init::normal_(weight);
  if (!padding_idx) return;
  no_grad guard;
  weight.select(0, *padding_idx).zero_();
}
Tensor Embedding::forward(const Tensor& index) { return embedding(weight, index, padding_idx); }
std::string Embedding::extra_repr() const {
  const std::string text = fmt::format("{}, {}", num_embeddings, embedding_dim);
  return padding_idx ? fmt::format("{}, padding_idx={}", text, *padding_idx) : text;
}

BatchNorm::BatchNorm(int64_t features, const Options& o)
    : num_features(features), options(o), weight(register_parameter("weight", o.affine ? ones({features}) : Tensor())),
      bias(register_parameter("bias", o.affine ? zeros({features}) : Tensor())),
      running_mean(register_buffer("running_mean", o.track_running_stats ? zeros({features}) : Tensor())),
      running_var(register_buffer("running_var", o.track_running_stats ? ones({features}) : Tensor())),
      num_batches_tracked(register_buffer(
          "num_batches_tracked", o.track_running_stats ? zeros({}, {.dtype = DType::i64}) : Tensor())) {}

void BatchNorm::reset_running_stats() {
  if (!options.track_running_stats) return;
  running_mean.zero_();
  running_var.fill_(1);
  num_batches_tracked.zero_();
}

Tensor BatchNorm::forward(const Tensor& x) {
  const bool batch_statistics = is_training() || !options.track_running_stats;
  double momentum = options.momentum.value_or(0.0);
  if (is_training() && options.track_running_stats) {
    num_batches_tracked.add_(1);
    if (!options.momentum) momentum = 1.0 / num_batches_tracked.item<double>();
  }
  if (is_training() && normalizer_) return normalizer_(*this, x, momentum);
  return batch_norm(x, running_mean, running_var, weight, bias,
                    {.training = batch_statistics, .momentum = momentum, .eps = options.eps});
}

std::string BatchNorm::extra_repr() const {
  return fmt::format("{}, eps={}, momentum={}, affine={}, track_running_stats={}", num_features, options.eps,
                     options.momentum ? fmt::format("{}", *options.momentum) : "None", yes_no(options.affine),
                     yes_no(options.track_running_stats));
}
void BatchNorm::set_normalizer(Normalizer f) { normalizer_ = std::move(f); }

Tensor BatchNorm2d::forward(const Tensor& x) {
  if (x.dim() != 4)
    throw ShapeError(
        fmt::format("[BatchNorm2d] the input is {}, expected is (B, {}, H, W).", to_string(x.sizes()), num_features));
  return BatchNorm::forward(x);
}

LayerNorm::LayerNorm(const Shape& shape, const Options& o)
    : normalized_shape(shape),
      options(o),
      weight(register_parameter("weight", o.elementwise_affine ? ones(shape) : Tensor())),
      bias(register_parameter("bias", o.elementwise_affine && o.bias ? zeros(shape) : Tensor())) {}
Tensor LayerNorm::forward(const Tensor& x) { return layer_norm(x, normalized_shape, weight, bias, options.eps); }
std::string LayerNorm::extra_repr() const {
  return fmt::format("{}, eps={}, elementwise_affine={}", to_string(normalized_shape), options.eps,
                     yes_no(options.elementwise_affine));
}

std::string LeakyReLU::extra_repr() const { return fmt::format("negative_slope={}", negative_slope); }
std::string GELU::extra_repr() const {
  return fmt::format("approximate='{}'", approximate == Approximate::none ? "none" : "tanh");
}

Module& Sequential::operator[](std::size_t i) const {
  if (i >= size()) throw IndexError(fmt::format("[Sequential] index {} is outside of {} modules.", i, size()));
  return child(i);
}

void Sequential::append(std::unique_ptr<Module> module) {
  passes_lists_ |= !module->takes_one_tensor();
  adopt(std::to_string(size()), std::move(module));
}

Tensor Sequential::forward(const Tensor& x) {
  if (!passes_lists_) {
    Tensor y = x;
    for (std::size_t i = 0; i < size(); ++i) y = child(i)(y);
    return y;
  }
  const auto results = call_range(0, size(), {x});
  if (results.size() == 1) return results[0];
  throw ValueError(
      fmt::format("[Sequential] its last module, \"{}\" ({}), returns {} tensors, and a Sequential returns "
                  "one. Append a module that selects or combines them.",
                  size() - 1, child(size() - 1).type_name(), results.size()));
}

std::vector<Tensor> Sequential::call_range(std::size_t first, std::size_t last, std::vector<Tensor> tensors) const {
  for (std::size_t i = first; i < last; ++i) {
    Module& module = child(i);
    if (!module.takes_one_tensor())
      tensors = module.call(tensors);
    else if (tensors.size() == 1)
      tensors[0] = module(tensors[0]);
    else
      throw ValueError(
          fmt::format("[Sequential] \"{}\" ({}) takes one tensor, and \"{}\" ({}) before it returned {}. "
                      "Put a module between them that selects or combines them.",
                      i, module.type_name(), i - 1, child(i - 1).type_name(), tensors.size()));
  }
  return tensors;
}

std::unique_ptr<Module> Sequential::fresh() const {
  auto copy = std::make_unique<Sequential>();
  for (std::size_t i = 0; i < size(); ++i) {
    auto one = child(i).fresh();
    if (!one) return nullptr;
    copy->append(std::move(one));
  }
  return copy;
}

CrossEntropyLoss::CrossEntropyLoss(const Options& o) : options(o) { register_buffer("weight", o.weight); }
NLLLoss::NLLLoss(const Options& o) : options(o) { register_buffer("weight", o.weight); }
BCEWithLogitsLoss::BCEWithLogitsLoss(const Options& o) : options(o) {
  register_buffer("weight", o.weight);
  register_buffer("pos_weight", o.pos_weight);
}

}  // namespace levin::nn
