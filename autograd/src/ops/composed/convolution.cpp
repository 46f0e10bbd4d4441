// Convolution over lines and volumes, composed of convolutions over images.

#include "../../errors.h"
#include "../values.h"
#include "trace_attributes.h"

#include <levin/autograd/ops/conv.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>

#include <functional>
#include <utility>
#include <vector>

namespace levin {

using namespace ops;

namespace {

void require_line(const char* op, const Tensor& x, const Tensor& weight) {
  if ((x.dim() != 2 && x.dim() != 3) || weight.dim() != 3)
    fail<ShapeError>("[{}] x is {} and weight {}; expected are (B, C, L) or (C, L) and a weight of three axes.", op,
                     x.sizes(), weight.sizes());
}

void require_volume(const char* op, const Tensor& x, const Tensor& weight) {
  if ((x.dim() != 4 && x.dim() != 5) || weight.dim() != 5)
    fail<ShapeError>(
        "[{}] x is {} and weight {}; expected are (B, C, D, H, W) or (C, D, H, W) and a weight of five axes.", op,
        x.sizes(), weight.sizes());
}

void check_depth(const char* op, int64_t stride, int64_t padding, int64_t dilation) {
  if (stride < 1 || padding < 0 || dilation < 1)
    fail<ValueError>("[{}] along the depth, stride {} and dilation {} must be 1 or more, padding {} 0 or more.", op,
                     stride, dilation, padding);
}

/// (B, C, D, H, W) as B D images.
Tensor as_images(const Tensor& x) {
  return reshape(transpose(x, 1, 2), {x.size(0) * x.size(2), x.size(1), x.size(3), x.size(4)});
}
/// B D images as (B, C, D, H, W).
Tensor as_volumes(const Tensor& images, int64_t batch, int64_t depth) {
  return transpose(reshape(images, {batch, depth, images.size(1), images.size(2), images.size(3)}), 1, 2);
}

/// The layers that a kernel of depth K reads for each layer of the result, as channels: (B, C, D, H, W) becomes
/// (B D', C K, H, W).
Tensor windows_as_images(const Tensor& x, int64_t kernel, int64_t stride, int64_t dilation) {
  if (kernel == 1 && stride == 1) return as_images(x);
  const Tensor spans = unfold(x, 2, dilation * (kernel - 1) + 1, stride);  // (B, C, D', H, W, span)
  const Tensor windows = permute(slice(spans, -1, Slice(nil, nil, dilation)), {0, 2, 1, 5, 3, 4});
  return reshape(windows, {x.size(0) * windows.size(1), x.size(1) * kernel, x.size(3), x.size(4)});
}

/// Makes the depth of a kernel a part of its second axis, as windows_as_images() does: (O, C, K, KH, KW) becomes
/// (O, C K, KH, KW).
Tensor as_image_kernel(const Tensor& weight) { return flatten(weight, 1, 2); }

/// Adds layer d of parts (B, O, K, D, H, W) to layer d stride + k dilation of a result of `depth` layers, for all k.
Tensor overlapped(const Tensor& parts, int64_t depth, int64_t stride, int64_t dilation) {
  const int64_t kernel = parts.size(2), reach = (parts.size(3) - 1) * stride + 1;
  const auto layers = [=](const Tensor& y, int64_t k) {
    return slice(y, 2, Slice(k * dilation, k * dilation + reach, stride));
  };
  const Tensor y = zeros({parts.size(0), parts.size(1), depth, parts.size(4), parts.size(5)}, like(parts));
  {
    no_grad guard;
    for (int64_t k = 0; k < kernel; ++k) layers(y, k).add_(select(parts.detach(), 2, k));
  }
  if (Context* c = record("overlapped", y, {parts}, [](Context& k, const Tensor& g) -> Grads {
        const auto& [size, step] = k.get<std::pair<int64_t, std::function<Tensor(const Tensor&, int64_t)>>>();
        std::vector<Tensor> found;
        for (int64_t i = 0; i < size; ++i) found.push_back(step(g, i));
        return {stack(found, 2)};
      }))
    c->set(std::pair<int64_t, std::function<Tensor(const Tensor&, int64_t)>>(kernel, layers));
  return y;
}

Tensor with_bias(const Tensor& y, const Tensor& bias) {
  return bias.defined() ? add(y, reshape(bias, {bias.numel(), 1, 1, 1})) : y;
}

}  // namespace

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dOptions& o) {
  LEVIN_TRACE_CALL(conv1d(x, weight, bias, o), "conv1d", {x, weight, bias}, LEVIN_CONV_ATTRIBUTES(o));
  require_line("conv1d", x, weight);
  const Tensor y = conv2d(
      unsqueeze(x, -2), unsqueeze(weight, 2), bias,
      {.stride = {1, o.stride[0]}, .padding = {0, o.padding[0]}, .dilation = {1, o.dilation[0]}, .groups = o.groups});
  return squeeze(y, -2);
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvTranspose1dOptions& o) {
  LEVIN_TRACE_CALL(conv_transpose1d(x, weight, bias, o), "conv_transpose1d", {x, weight, bias},
                   LEVIN_CONV_TRANSPOSE_ATTRIBUTES(o));
  require_line("conv_transpose1d", x, weight);
  const Tensor y = conv_transpose2d(unsqueeze(x, -2), unsqueeze(weight, 2), bias,
                                    {.stride = {1, o.stride[0]},
                                     .padding = {0, o.padding[0]},
                                     .output_padding = {0, o.output_padding[0]},
                                     .groups = o.groups,
                                     .dilation = {1, o.dilation[0]}});
  return squeeze(y, -2);
}

Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv3dOptions& o) {
  LEVIN_TRACE_CALL(conv3d(x, weight, bias, o), "conv3d", {x, weight, bias}, LEVIN_CONV_ATTRIBUTES(o));
  require_volume("conv3d", x, weight);
  if (x.dim() == 4) return squeeze(conv3d(unsqueeze(x, 0), weight, bias, o), 0);
  check_depth("conv3d", o.stride[0], o.padding[0], o.dilation[0]);
  if (x.size(1) != weight.size(1) * o.groups)
    fail<ShapeError>("[conv3d] x has {} channels; weight {} with {} groups takes {}.", x.size(1), weight.sizes(),
                     o.groups, weight.size(1) * o.groups);
  const int64_t stride = o.stride[0], dilation = o.dilation[0], kernel = weight.size(2);
  const Tensor padded = o.padding[0] > 0 ? pad(x, {0, 0, 0, 0, o.padding[0], o.padding[0]}) : x;
  const int64_t room = padded.size(2) - dilation * (kernel - 1) - 1, depth = room < 0 ? 0 : room / stride + 1;
  if (depth == 0)
    fail<ShapeError>("[conv3d] the kernel of depth {} does not fit into x of {} with padding {}.", kernel, x.sizes(),
                     o.padding[0]);
  const Tensor y = conv2d(windows_as_images(padded, kernel, stride, dilation), as_image_kernel(weight), bias,
                          {.stride = {o.stride[1], o.stride[2]},
                           .padding = {o.padding[1], o.padding[2]},
                           .dilation = {o.dilation[1], o.dilation[2]},
                           .groups = o.groups});
  return as_volumes(y, x.size(0), depth);
}

Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvTranspose3dOptions& o) {
  LEVIN_TRACE_CALL(conv_transpose3d(x, weight, bias, o), "conv_transpose3d", {x, weight, bias},
                   LEVIN_CONV_TRANSPOSE_ATTRIBUTES(o));
  require_volume("conv_transpose3d", x, weight);
  if (x.dim() == 4) return squeeze(conv_transpose3d(unsqueeze(x, 0), weight, bias, o), 0);
  check_depth("conv_transpose3d", o.stride[0], o.padding[0], o.dilation[0]);
  const int64_t stride = o.stride[0], dilation = o.dilation[0], kernel = weight.size(2), depth = x.size(2);
  if (o.output_padding[0] >= std::max(stride, dilation))
    fail<ValueError>("[conv_transpose3d] output_padding {} must be below the stride {} or the dilation {}.",
                     o.output_padding[0], stride, dilation);
  // Layer d of x is added at d stride + k dilation for each k; the padding is cut off at both ends.
  const int64_t whole = (depth - 1) * stride + dilation * (kernel - 1) + 1;
  const Tensor images = conv_transpose2d(as_images(x), as_image_kernel(weight), {},
                                         {.stride = {o.stride[1], o.stride[2]},
                                          .padding = {o.padding[1], o.padding[2]},
                                          .output_padding = {o.output_padding[1], o.output_padding[2]},
                                          .groups = o.groups,
                                          .dilation = {o.dilation[1], o.dilation[2]}});  // (B D, O K, H, W)
  // (B, O, K, D, H, W)
  const Tensor parts = unflatten(as_volumes(images, x.size(0), depth), 1, {weight.size(1) * o.groups, kernel});
  const Tensor y = overlapped(parts, whole + o.output_padding[0], stride, dilation);
  const int64_t kept = whole + o.output_padding[0] - 2 * o.padding[0];
  if (kept < 1) fail<ShapeError>("[conv_transpose3d] padding {} leaves nothing of a depth of {}.", o.padding[0], whole);
  return with_bias(narrow(y, 2, o.padding[0], kept), bias);
}

}  // namespace levin
