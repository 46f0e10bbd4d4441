// Convolution, pooling, normalization and recurrent layers.

#include "lowering.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/recurrent.h>
#include <levin/autograd/ops/view.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace levin::interop::onnx {

namespace export_layers {
namespace {

using L = Lowering;

/// Padding before all axes, then after them.
std::vector<int64_t> both_sides(const std::vector<int64_t>& padding) {
  std::vector<int64_t> pads = padding;
  pads.insert(pads.end(), padding.begin(), padding.end());
  return pads;
}

/// ONNX's operators need (B, C, ...).
template <int spatial>
bool has_batch(const TracedOperation& o) {
  return o.inputs[0].dim() == spatial + 2;
}

void conv(L& l) {
  l.set(l.add("Conv", {l.in(0), l.in(1), l.has(2) ? l.in(2) : ""},
              {{"dilations", l.integers("dilation")},
               {"group", l.integer("groups")},
               {"pads", both_sides(l.integers("padding"))},
               {"strides", l.integers("stride")}}));
}

void conv_transpose(L& l) {
  l.set(l.add("ConvTranspose", {l.in(0), l.in(1), l.has(2) ? l.in(2) : ""},
              {{"dilations", l.integers("dilation")},
               {"group", l.integer("groups")},
               {"output_padding", l.integers("output_padding")},
               {"pads", both_sides(l.integers("padding"))},
               {"strides", l.integers("stride")}}));
}

void max_pool(L& l) {
  l.set(l.add("MaxPool", {l.in()},
              {{"ceil_mode", l.integer("ceil_mode")},
               {"dilations", l.integers("dilation")},
               {"kernel_shape", l.integers("kernel")},
               {"pads", both_sides(l.integers("padding"))},
               {"strides", l.integers("stride")}}));
}

void avg_pool(L& l) {
  l.set(l.add("AveragePool", {l.in()},
              {{"ceil_mode", l.integer("ceil_mode")},
               {"count_include_pad", l.integer("count_include_pad")},
               {"kernel_shape", l.integers("kernel")},
               {"pads", both_sides(l.integers("padding"))},
               {"strides", l.integers("stride")}}));
}

Extent channels(L& l) { return l.value(0).sizes[1]; }

/// A parameter of the channels, or the number that stands for an absent one.
std::string or_number(L& l, std::size_t i, double absent) {
  const Extent n = channels(l);
  if (!l.has(i)) return l.constant(levin::full({n.offset}, absent, {.dtype = l.value(0).dtype}));
  return l.in_as(i, l.value(0).dtype);
}

void batch_norm(L& l) {
  if (l.integer("training") != 0) l.refuse("it uses the statistics of the batch; call eval() on the module");
  l.set(l.add("BatchNormalization", {l.in(0), or_number(l, 3, 1), or_number(l, 4, 0), l.in(1), l.in(2)},
              {{"epsilon", l.real("eps")}}));
}

void layer_norm(L& l) {
  const int64_t axes = l.integer("axes");
  std::string weight = l.has(1) ? l.in(1) : "";
  if (weight.empty()) {
    Shape sizes;
    for (std::size_t d = l.value(0).sizes.size() - static_cast<std::size_t>(axes); d < l.value(0).sizes.size(); ++d)
      sizes.push_back(l.value(0).sizes[d].offset);
    weight = l.constant(levin::full(sizes, 1, {.dtype = l.value(0).dtype}));
  }
  l.set(l.add("LayerNormalization", {l.in(0), weight, l.has(2) ? l.in(2) : ""},
              {{"axis", -axes}, {"epsilon", l.real("eps")}}));
}

/// Weight and bias of the channels, (C), are applied to x (B, C, ...).
std::string scaled(L& l, std::string x, std::size_t weight, std::size_t bias) {
  std::vector<int64_t> added;
  for (int64_t d = 1; d + 1 < l.rank(); ++d) added.push_back(d);
  const auto of_channels = [&](std::size_t i) {
    return added.empty() ? l.in(i) : l.add("Unsqueeze", {l.in(i), l.list(added)});
  };
  if (l.has(weight)) x = l.binary("Mul", x, of_channels(weight));
  if (l.has(bias)) x = l.binary("Add", x, of_channels(bias));
  return x;
}

/// Groups are the channels of an instance norm over (B, groups, elements of a group).
void group_norm(L& l) {
  const int64_t groups = l.integer("groups");
  const Extents& sizes = l.value(0).sizes;
  const DType t = l.value(0).dtype;
  const std::string flat = l.add("Reshape", {l.in(), l.list({0, groups, -1})});
  const std::string y = l.add(
      "InstanceNormalization",
      {flat, l.constant(levin::full({groups}, 1, {.dtype = t})), l.constant(levin::full({groups}, 0, {.dtype = t}))},
      {{"epsilon", l.real("eps")}});
  l.set(scaled(l, l.reshape(y, {sizes[0], {0, groups}, {0, -1}}, sizes), 1, 2));
}

void instance_norm(L& l) {
  l.set(
      l.add("InstanceNormalization", {l.in(0), or_number(l, 1, 1), or_number(l, 2, 0)}, {{"epsilon", l.real("eps")}}));
}

void local_response_norm(L& l) {
  l.set(l.add(
      "LRN", {l.in()},
      {{"alpha", l.real("alpha")}, {"beta", l.real("beta")}, {"bias", l.real("k")}, {"size", l.integer("size")}}));
}

/// LRN centers even windows differently, and onnxruntime takes images only.
bool has_odd_window(const TracedOperation& o) {
  return std::get<int64_t>(o.attributes[0].value) % 2 == 1 && o.inputs[0].dim() == 4;
}

/// The transforms of the frames are a convolution with the windowed cosines and sines.
void power_spectrum(L& l) {
  const auto n = static_cast<std::size_t>(l.integer("n_fft")), frequencies = n / 2 + 1;
  if (l.value(1).origin != Origin::constant) l.refuse("its window is not constant");
  const std::vector<double> window = l.value(1).tensor.to_vector<double>();
  const std::size_t first = (n - window.size()) / 2;  // a shorter window lies in the middle
  std::vector<double> waves(2 * frequencies * n);
  for (std::size_t k = 0; k < frequencies; ++k)
    for (std::size_t i = 0; i < window.size(); ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(k * (first + i) % n) / static_cast<double>(n);
      waves[k * n + first + i] = window[i] * std::cos(angle);
      waves[(frequencies + k) * n + first + i] = window[i] * std::sin(angle);
    }
  const auto half = static_cast<int64_t>(n / 2), count = static_cast<int64_t>(frequencies);
  const Tensor kernels = from_data(waves, {2 * count, 1, static_cast<int64_t>(n)}, {.dtype = l.result().dtype});
  const std::string padded = l.add("Pad", {l.in(), l.list({0, half, 0, half})}, {{"mode", "reflect"}});
  const std::string y = l.add("Conv", {l.add("Unsqueeze", {padded, l.list({1})}), l.constant(kernels)},
                              {{"strides", std::vector<int64_t>{l.integer("hop")}}});  // (B, 2 frequencies, T)
  const auto parts = l.add_many("Split", {l.binary("Mul", y, y), l.list({count, count})}, 2, {{"axis", 1}});
  l.set(l.permute(l.binary("Add", parts[0], parts[1]), {0, 2, 1}));
}

// Recurrent layers

struct Gates {
  const char* op;
  std::vector<int64_t> order;  ///< of PyTorch's gates in ONNX's rows
};

Gates gates_of(RecurrentCell cell) {
  switch (cell) {
    case RecurrentCell::gru:
      return {"GRU", {1, 0, 2}};  // update, reset, new
    case RecurrentCell::lstm:
      return {"LSTM", {0, 3, 1, 2}};  // input, output, forget, cell
    default:
      return {"RNN", {0}};
  }
}

/// The rows of a weight or bias in ONNX's order, with a first axis for the direction.
Tensor reordered(const Tensor& w, const std::vector<int64_t>& order) {
  const no_grad guard;
  const std::vector<Tensor> parts = levin::chunk(w.detach(), static_cast<int64_t>(order.size()), 0);
  std::vector<Tensor> rows;
  for (const int64_t i : order) rows.push_back(parts[static_cast<std::size_t>(i)]);
  return levin::unsqueeze(levin::cat(rows, 0), 0).contiguous();
}

/// Inputs of a step: x, weight_ih, weight_hh, bias_ih, bias_hh, h, c, lengths. Outputs: y, the last h and c.
void recurrent(L& l) {
  const auto cell = static_cast<RecurrentCell>(l.integer("cell"));
  const Gates gates = gates_of(cell);
  for (std::size_t i = 1; i < 5; ++i)
    if (l.has(i) && l.value(i).origin != Origin::parameter && l.value(i).origin != Origin::constant)
      l.refuse("its weights are computed by other operations");
  const auto weight = [&](std::size_t i) {
    return l.initializer(l.value(i).name + "_onnx", reordered(l.value(i).tensor, gates.order));
  };
  std::string bias;
  if (l.has(3)) {
    const no_grad guard;
    bias = l.initializer(
        l.value(3).name + "_onnx",
        levin::cat({reordered(l.value(3).tensor, gates.order), reordered(l.value(4).tensor, gates.order)}, 1));
  }
  const auto state = [&](std::size_t i) {
    return l.has(i) ? l.add("Unsqueeze", {l.in(i), l.list({0})}) : std::string();
  };
  const std::string lengths = l.has(7) ? l.cast(l.in(7), kInt32) : "";
  std::vector<Attribute> attributes{{"direction", l.integer("reverse") != 0 ? "reverse" : "forward"},
                                    {"hidden_size", l.value(2).sizes[1].offset}};
  if (cell == RecurrentCell::gru) attributes.emplace_back("linear_before_reset", 1);
  if (cell == RecurrentCell::rnn_relu) {
    Attribute relu("activations", std::vector<int64_t>{});
    relu.type = Attribute::Type::texts;
    relu.texts = {"Relu"};
    attributes.push_back(relu);
  }
  const bool lstm = cell == RecurrentCell::lstm;
  const auto y = l.add_many(gates.op, {l.in(0), weight(1), weight(2), bias, lengths, state(5), lstm ? state(6) : ""},
                            lstm ? 3 : 2, attributes);
  l.set(l.add("Squeeze", {y[0], l.list({1})}), 0);  // (T, directions, B, H)
  for (std::size_t i = 1; i < y.size(); ++i) l.set(l.add("Squeeze", {y[i], l.list({0})}), i);
}

const ExportRow kRows[] = {
    {"conv1d", conv, has_batch<1>},
    {"conv2d", conv, has_batch<2>},
    {"conv3d", conv, has_batch<3>},
    {"conv_transpose1d", conv_transpose, has_batch<1>},
    {"conv_transpose2d", conv_transpose, has_batch<2>},
    {"conv_transpose3d", conv_transpose, has_batch<3>},
    {"max_pool1d", max_pool, has_batch<1>},
    {"max_pool2d", max_pool, has_batch<2>},
    {"max_pool3d", max_pool, has_batch<3>},
    {"avg_pool1d", avg_pool, has_batch<1>},
    {"avg_pool2d", avg_pool, has_batch<2>},
    {"avg_pool3d", avg_pool, has_batch<3>},
    {"batch_norm", batch_norm},
    {"layer_norm", layer_norm},
    {"group_norm", group_norm},
    {"instance_norm", instance_norm},
    {"local_response_norm", local_response_norm, has_odd_window},
    {"power_spectrum", power_spectrum},
    {"recurrent", recurrent},
};

}  // namespace
}  // namespace export_layers

std::span<const ExportRow> layer_export_rows() { return export_layers::kRows; }

}  // namespace levin::interop::onnx
