#include <levin/data/image.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace levin::data {

namespace {

/// Returns contiguous (B, 3, H, W) on the CPU, uint8 or float32; one channel is repeated to three.
Tensor as_batch(const Tensor& given) {
  Tensor t = given.cpu().detach();
  if (t.dtype() != kUInt8) t = t.to(kFloat32);
  if (t.dim() == 2) t = t.unsqueeze(0);
  if (t.dim() == 3) t = t.unsqueeze(0);
  const bool channels = t.dim() == 4 && (t.size(1) == 1 || t.size(1) == 3);
  if (!channels || t.numel() == 0 || !(given.is_floating() || given.dtype() == kUInt8)) {
    throw ShapeError(
        fmt::format("[make_grid] images are (B, C, H, W), (C, H, W) or (H, W) with 1 or 3 channels, of floating type "
                    "or uint8, not {} {}.",
                    name_of(given.dtype()), to_string(given.sizes())));
  }
  if (t.size(1) == 1) t = t.expand({t.size(0), 3, t.size(2), t.size(3)});
  return t.contiguous();
}

void scale(float* values, int64_t count, const GridOptions& o) {
  const auto [least, greatest] = std::minmax_element(values, values + count);
  const double low = o.value_range ? o.value_range->first : static_cast<double>(*least);
  const double high = o.value_range ? o.value_range->second : static_cast<double>(*greatest);
  constexpr double smallest = 1e-5;  // as torchvision: prevents a division by zero for an image of one value
  for (int64_t i = 0; i < count; ++i) {
    const double v = std::clamp(static_cast<double>(values[i]), low, high);
    values[i] = static_cast<float>((v - low) / std::max(high - low, smallest));
  }
}

Tensor normalized(const Tensor& batch, const GridOptions& o) {
  if (o.value_range && !(o.value_range->first < o.value_range->second)) {
    throw ValueError(fmt::format("[make_grid] the value range goes from {} to {}; give the lower value first.",
                                 o.value_range->first, o.value_range->second));
  }
  Tensor out = batch.to(kFloat32).clone();
  const int64_t images = o.scale_each ? out.size(0) : 1, each = out.numel() / images;
  for (int64_t i = 0; i < images; ++i) scale(out.data<float>() + i * each, each, o);
  return out;
}

}  // namespace

Tensor make_grid(const Tensor& tensor, const GridOptions& o) {
  if (o.nrow < 1 || o.padding < 0) {
    throw ValueError(
        fmt::format("[make_grid] nrow is {} and padding {}; use 1 or more, and 0 or more.", o.nrow, o.padding));
  }
  Tensor batch = as_batch(tensor);
  if (o.normalize) batch = normalized(batch, o);
  const int64_t count = batch.size(0), high = batch.size(2), wide = batch.size(3);
  if (count == 1) return batch.squeeze(0);
  const int64_t height = high + o.padding, width = wide + o.padding;
  const int64_t columns = std::min(o.nrow, count), rows = (count + columns - 1) / columns;
  Tensor grid = empty({3, rows * height + o.padding, columns * width + o.padding}, {.dtype = batch.dtype()});
  grid.fill_(o.pad_value);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t top = i / columns * height + o.padding, left = i % columns * width + o.padding;
    grid.narrow(1, top, high).narrow(2, left, wide).copy_(batch.select(0, i));
  }
  return grid;
}

Tensor make_grid(std::span<const Tensor> images, const GridOptions& options) {
  std::vector<Sample> samples;
  for (const Tensor& t : images) samples.push_back({{t}});
  if (samples.empty()) throw ShapeError("[make_grid] there are no images; give one or more.");
  return make_grid(default_collate(samples)[0], options);
}

Tensor to_uint8(const Tensor& image) {
  if (image.dtype() == kUInt8) return image.contiguous();
  const Tensor values = image.to(kFloat32).contiguous();
  Tensor bytes = empty(image.sizes(), {.dtype = kUInt8});
  const auto* from = values.data<float>();
  auto* to = bytes.data<std::uint8_t>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    // NaN becomes black.
    to[i] = static_cast<std::uint8_t>(std::clamp(std::isnan(from[i]) ? 0.f : from[i] * 255.f + 0.5f, 0.f, 255.f));
  }
  return bytes;
}

void save_image(const Tensor& tensor, const std::string& path, const GridOptions& options) {
  write_png(path, to_uint8(make_grid(tensor, options)));
}

}  // namespace levin::data
