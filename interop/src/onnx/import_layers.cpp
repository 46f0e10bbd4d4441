// Convolution, pooling, normalization and recurrent operators of ONNX.

#include "interpreter.h"

#include <levin/autograd/ops/conv.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/norm.h>
#include <levin/autograd/ops/pool.h>
#include <levin/autograd/ops/recurrent.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace levin::interop::onnx {

namespace import_layers {
namespace {

using List = std::vector<std::int64_t>;

/// The geometry of a window over the axes after (B, C), with equal padding on both sides; other padding is added to x.
struct Window {
  Tensor x;
  std::size_t axes;
  List kernel, stride, dilation, padding;
};

Window window_of(const Call& c, const Tensor& x, const List& kernel, double padding_value) {
  const std::size_t n = kernel.size();
  if (n < 1 || n > 3 || x.dim() != static_cast<int>(n) + 2)
    c.refuse(fmt::format("a window over {} axes does not fit an input of shape {}", n, to_string(x.sizes())));
  Window w{x, n, kernel, c.integers_of("strides", n, 1), c.integers_of("dilations", n, 1), {}};
  List pads = c.integers_of("pads", 2 * n, 0);
  const std::string_view automatic = c.text("auto_pad", "NOTSET");
  if (automatic == "VALID") pads.assign(2 * n, 0);
  if (automatic.starts_with("SAME"))
    for (std::size_t i = 0; i < n; ++i) {
      const std::int64_t size = x.sizes()[static_cast<int>(i) + 2], step = std::max<std::int64_t>(w.stride[i], 1);
      const std::int64_t out = (size + step - 1) / step;
      const std::int64_t total =
          std::max<std::int64_t>((out - 1) * step + (kernel[i] - 1) * w.dilation[i] + 1 - size, 0);
      pads[i] = automatic == "SAME_LOWER" ? total - total / 2 : total / 2;
      pads[n + i] = total - pads[i];
    }
  const bool equal = std::equal(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(n),
                                pads.begin() + static_cast<std::ptrdiff_t>(n));
  const bool fits = std::ranges::all_of(pads, [](std::int64_t p) { return p >= 0; });
  if (!fits) c.refuse("a padding is negative");
  // Pools refuse more padding than half of the window.
  bool small = true;
  for (std::size_t i = 0; i < n; ++i) small = small && 2 * pads[i] <= kernel[i];
  if (equal && (small || padding_value == 0)) {
    w.padding.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(n));
    return w;
  }
  Shape around;
  for (std::size_t i = n; i-- > 0;) {
    around.push_back(pads[i]);
    around.push_back(pads[n + i]);
  }
  w.x = pad(x, around, padding_value);
  w.padding.assign(n, 0);
  return w;
}

Tuple<1> one(const List& l) { return {l[0]}; }
Tuple<2> two(const List& l) { return {l[0], l[1]}; }
Tuple<3> three(const List& l) { return {l[0], l[1], l[2]}; }

List kernel_of(const Tensor& weight) {
  return {weight.sizes().begin() + std::min(2, weight.dim()), weight.sizes().end()};
}

Tensors conv(const Call& c) {
  const Tensor weight = c[1], bias = c.or_none(2);
  const Window w = window_of(c, c[0], kernel_of(weight), 0);
  const std::int64_t groups = c.integer("group", 1);
  if (w.axes == 1)
    return {
        conv1d(w.x, weight, bias,
               {.stride = one(w.stride), .padding = one(w.padding), .dilation = one(w.dilation), .groups = groups})};
  if (w.axes == 2)
    return {
        conv2d(w.x, weight, bias,
               {.stride = two(w.stride), .padding = two(w.padding), .dilation = two(w.dilation), .groups = groups})};
  return {conv3d(
      w.x, weight, bias,
      {.stride = three(w.stride), .padding = three(w.padding), .dilation = three(w.dilation), .groups = groups})};
}

Tensors conv_transpose(const Call& c) {
  const Tensor x = c[0], weight = c[1], bias = c.or_none(2);
  const List kernel = kernel_of(weight);
  const std::size_t n = kernel.size();
  if (n < 1 || n > 3 || x.dim() != static_cast<int>(n) + 2) c.refuse("the window does not fit the input");
  const List pads = c.integers_of("pads", 2 * n, 0), stride = c.integers_of("strides", n, 1),
             dilation = c.integers_of("dilations", n, 1), extra = c.integers_of("output_padding", n, 0);
  const std::int64_t groups = c.integer("group", 1);
  const List zero(n, 0);
  const bool equal = std::equal(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(n),
                                pads.begin() + static_cast<std::ptrdiff_t>(n));
  const List padding = equal ? List(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(n)) : zero;
  Tensor y;
  if (n == 1)
    y = conv_transpose1d(x, weight, bias,
                         {.stride = one(stride),
                          .padding = one(padding),
                          .output_padding = one(extra),
                          .groups = groups,
                          .dilation = one(dilation)});
  else if (n == 2)
    y = conv_transpose2d(x, weight, bias,
                         {.stride = two(stride),
                          .padding = two(padding),
                          .output_padding = two(extra),
                          .groups = groups,
                          .dilation = two(dilation)});
  else
    y = conv_transpose3d(x, weight, bias,
                         {.stride = three(stride),
                          .padding = three(padding),
                          .output_padding = three(extra),
                          .groups = groups,
                          .dilation = three(dilation)});
  if (!equal)
    for (std::size_t i = 0; i < n; ++i) {
      const int axis = static_cast<int>(i) + 2;
      y = narrow(y, axis, pads[i], y.size(axis) - pads[i] - pads[n + i]);
    }
  return {y};
}

const char* refuses_output_shape(const Node& n) {
  for (const Attribute& a : n.attributes) {
    if (a.name == "output_shape" && !a.integers.empty()) return "output_shape";
    if (a.name == "auto_pad" && a.text != "NOTSET" && a.text != "VALID") return "auto_pad";
  }
  return nullptr;
}

Tensors max_pool(const Call& c) {
  const Window w = window_of(c, c[0], c.integers("kernel_shape"), -std::numeric_limits<double>::infinity());
  const bool ceil = c.integer("ceil_mode", 0) != 0;
  if (w.axes == 1)
    return {max_pool1d(
        w.x, one(w.kernel),
        {.stride = one(w.stride), .padding = one(w.padding), .dilation = one(w.dilation), .ceil_mode = ceil})};
  if (w.axes == 2)
    return {max_pool2d(
        w.x, two(w.kernel),
        {.stride = two(w.stride), .padding = two(w.padding), .dilation = two(w.dilation), .ceil_mode = ceil})};
  return {max_pool3d(
      w.x, three(w.kernel),
      {.stride = three(w.stride), .padding = three(w.padding), .dilation = three(w.dilation), .ceil_mode = ceil})};
}

const char* refuses_indices(const Node& n) {
  return n.outputs.size() > 1 && !n.outputs[1].empty() ? "the output Indices" : nullptr;
}

Tensor averaged(const Window& w, bool ceil, bool include) {
  if (w.axes == 1)
    return avg_pool1d(
        w.x, one(w.kernel),
        {.stride = one(w.stride), .padding = one(w.padding), .ceil_mode = ceil, .count_include_pad = include});
  if (w.axes == 2)
    return avg_pool2d(
        w.x, two(w.kernel),
        {.stride = two(w.stride), .padding = two(w.padding), .ceil_mode = ceil, .count_include_pad = include});
  return avg_pool3d(
      w.x, three(w.kernel),
      {.stride = three(w.stride), .padding = three(w.padding), .ceil_mode = ceil, .count_include_pad = include});
}

Tensors average_pool(const Call& c) {
  const Tensor x = c[0];
  const Window w = window_of(c, x, c.integers("kernel_shape"), 0);
  for (const std::int64_t d : w.dilation)
    if (d != 1) c.refuse("dilations are not 1");
  const bool ceil = c.integer("ceil_mode", 0) != 0, include = c.integer("count_include_pad", 0) != 0;
  if (include || w.x.is_same(x)) return {averaged(w, ceil, include)};
  // Padding was added to x: divide by the share of the window that is not padding.
  const Window ones_of_x = window_of(c, ones_like(x), w.kernel, 0);
  return {div(averaged(w, ceil, true), averaged(ones_of_x, ceil, true))};
}

Axes spatial_axes(const Tensor& x) {
  Axes axes;
  for (int d = 2; d < x.dim(); ++d) axes.push_back(d);
  return axes;
}

Tensors batch_norm_node(const Call& c) {
  if (c.integer("training_mode", 0) != 0) c.refuse("training_mode is 1");
  return {batch_norm(c[0], c[3], c[4], c[1], c[2], {.eps = c.real("epsilon", 1e-5)})};
}

Tensors layer_norm_node(const Call& c) {
  const Tensor x = c[0];
  const int axis = c.axis("axis", -1, x.dim());
  const Shape sizes(x.sizes().begin() + axis, x.sizes().end());
  return {layer_norm(x, sizes, c[1], c.or_none(2), c.real("epsilon", 1e-5))};
}

Tensors instance_norm_node(const Call& c) { return {instance_norm(c[0], c[1], c[2], c.real("epsilon", 1e-5))}; }

Tensors group_norm_node(const Call& c) {
  const Tensor x = c[0];
  const std::int64_t groups = c.integer("num_groups", 1);
  Tensor scale = c[1], bias = c[2];
  if (scale.numel() != x.size(1) && scale.numel() == groups) {  // one for each group, before operator set 21
    const auto spread = [&](const Tensor& p) {
      return reshape(expand(unsqueeze(p, 1), {groups, x.size(1) / groups}), {x.size(1)});
    };
    scale = spread(scale), bias = spread(bias);
  }
  return {group_norm(x, groups, scale, bias, c.real("epsilon", 1e-5))};
}

Tensors lrn(const Call& c) {
  const Tensor x = c[0];
  const std::int64_t size = c.integer("size", 1);
  if (size % 2 == 0) c.refuse("its window is even");
  return {local_response_norm(x, size, c.real("alpha", 1e-4), c.real("beta", 0.75), c.real("bias", 1))};
}

// Recurrent operators: x (T, B, I), W (directions, gates H, I), R, B, sequence_lens, initial_h, initial_c.

/// The rows of ONNX's gates in PyTorch's order.
Tensor reordered(const Tensor& w, const List& order) {
  const Tensors parts = chunk(w, static_cast<std::int64_t>(order.size()), 0);
  Tensors rows;
  for (const std::int64_t i : order) rows.push_back(parts.at(static_cast<std::size_t>(i)));
  return rows.size() == 1 ? rows[0] : cat(rows, 0);
}

Tensors recurrent(const Call& c, RecurrentCell cell, const List& order) {
  const Tensor x = c[0], w = c[1], r = c[2], b = c.or_none(3);
  if (x.dim() != 3 || w.dim() != 3 || r.dim() != 3) c.refuse("X, W and R need three dimensions");
  const std::int64_t directions = w.size(0), hidden = r.size(2), batch = x.size(1);
  const auto gates = static_cast<std::int64_t>(order.size());
  if (w.size(1) != gates * hidden || (b.defined() && (b.dim() != 2 || b.size(1) != 2 * gates * hidden)))
    c.refuse("W, R and B differ in the number of gates");
  const bool lstm = cell == RecurrentCell::lstm;
  Tensors ys, hs, cs;
  for (std::int64_t d = 0; d < directions; ++d) {
    const bool reverse = d == 1 || c.text("direction", "forward") == "reverse";
    const auto bias = [&](std::int64_t half) {
      if (!b.defined()) return Tensor();
      return reordered(narrow(select(b, 0, d), 0, half * gates * hidden, gates * hidden), order);
    };
    const auto state = [&](std::size_t i) { return c.has(i) ? select(c[i], 0, d) : zeros({batch, hidden}, like(x)); };
    const Tensor from_input = linear(x, reordered(select(w, 0, d), order), bias(0));
    const Tensor lengths = c.has(4) ? to(c[4], kInt64) : Tensor();
    const auto [y, cell_state] = recurrent_steps(
        cell, from_input, {state(5), lstm ? state(6) : Tensor(), reordered(select(r, 0, d), order), bias(1)},
        {.lengths = lengths, .reverse = reverse});
    hs.push_back(select(y, 0, reverse ? 0 : y.size(0) - 1));
    if (lstm) cs.push_back(cell_state);
    ys.push_back(
        !lengths.defined()
            ? y
            : masked_fill(y, unsqueeze(ge(unsqueeze(arange(y.size(0), {.device = y.device()}), 1), lengths), -1), 0));
  }
  Tensors result{stack(ys, 1), stack(hs, 0)};
  if (lstm) result.push_back(stack(cs, 0));
  return result;
}

const char* refuses_recurrent(const Node& n) {
  const auto is_plain = [](std::string_view s) { return s == "Sigmoid" || s == "Tanh"; };
  for (const Attribute& a : n.attributes) {
    if (a.name == "layout" && a.integer != 0) return "layout 1";
    if (a.name == "clip" || (a.name == "input_forget" && a.integer != 0)) return "clip and input_forget";
    if (a.name != "activations") continue;
    const bool rnn = n.op == "RNN";
    for (std::size_t i = 0; i < a.texts.size(); ++i) {
      const bool expected = n.op == "LSTM" ? a.texts[i] == (i % 3 == 0 ? "Sigmoid" : "Tanh")
                            : rnn          ? a.texts[i] == a.texts[0] && (a.texts[i] == "Relu" || a.texts[i] == "Tanh")
                                           : a.texts[i] == (i % 2 == 0 ? "Sigmoid" : "Tanh");
      if (!expected || (!rnn && !is_plain(a.texts[i]))) return "its activations";
    }
  }
  if (n.inputs.size() > 7 && !n.inputs[7].empty()) return "peepholes";
  if (n.op == "GRU") {
    for (const Attribute& a : n.attributes)
      if (a.name == "linear_before_reset" && a.integer != 0) return nullptr;
    return "linear_before_reset 0";
  }
  return nullptr;
}

Tensors rnn(const Call& c) {
  const Attribute* a = c.find("activations");
  const bool relu = a && !a->texts.empty() && a->texts[0] == "Relu";
  return recurrent(c, relu ? RecurrentCell::rnn_relu : RecurrentCell::rnn_tanh, {0});
}

const ImportRow kRows[] = {
    {"Conv", 1, conv},
    {"ConvTranspose", 1, conv_transpose, refuses_output_shape},
    {"MaxPool", 1, max_pool, refuses_indices},
    {"AveragePool", 1, average_pool},
    {"GlobalAveragePool", 1, [](const Call& c) -> Tensors { return {mean(c[0], spatial_axes(c[0]), true)}; }},
    {"GlobalMaxPool", 1, [](const Call& c) -> Tensors { return {amax(c[0], spatial_axes(c[0]), true)}; }},
    {"BatchNormalization", 7, batch_norm_node},
    {"LayerNormalization", 17, layer_norm_node},
    {"InstanceNormalization", 6, instance_norm_node},
    {"GroupNormalization", 18, group_norm_node},
    {"LRN", 1, lrn},
    {"LSTM", 7,
     [](const Call& c) -> Tensors {
       return recurrent(c, RecurrentCell::lstm, {0, 2, 3, 1});
     },
     refuses_recurrent},
    {"GRU", 7,
     [](const Call& c) -> Tensors {
       return recurrent(c, RecurrentCell::gru, {1, 0, 2});
     },
     refuses_recurrent},
    {"RNN", 7, rnn, refuses_recurrent},
};

}  // namespace
}  // namespace import_layers

std::span<const ImportRow> layer_import_rows() { return import_layers::kRows; }

}  // namespace levin::interop::onnx
