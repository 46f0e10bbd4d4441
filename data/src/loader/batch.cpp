#include <levin/data/batch.h>

#include "copy_stream.h"

#include <fmt/format.h>

#include <cstring>

namespace levin {

namespace {

void check_place(int i, std::size_t count) {
  if (i >= 0 && static_cast<std::size_t>(i) < count) return;
  throw IndexError(fmt::format("[batch] tensor {} was asked for, but the batch holds {}, counted from 0.", i, count));
}

}  // namespace

const Tensor& Batch::operator[](int i) const {
  check_place(i, tensors.size());
  return tensors[static_cast<std::size_t>(i)];
}

Tensor& Batch::operator[](int i) {
  check_place(i, tensors.size());
  return tensors[static_cast<std::size_t>(i)];
}

int64_t Batch::size() const {
  if (samples >= 0) return samples;
  for (const Tensor& t : tensors) {
    if (t.defined()) return t.dim() == 0 ? 1 : t.size(0);
  }
  return 0;
}

Batch Batch::part(int i) const {
  if (i < 0 || i >= parts()) {
    throw IndexError(fmt::format("[batch] part {} was asked for, but the batch has {}, counted from 0.", i, parts()));
  }
  if (ends.empty()) return *this;
  const auto begin = tensors.begin() + (i == 0 ? 0 : ends[static_cast<std::size_t>(i) - 1]);
  return {.tensors{begin, tensors.begin() + ends[static_cast<std::size_t>(i)]}, .dataloader_idx = i};
}

Batch Batch::to(Device device) const {
  Batch moved = *this;
  const detail::CopyStream scope(tensors, device);
  for (Tensor& t : moved.tensors) {
    if (t.defined()) t = t.to(device);
  }
  scope.finish(moved.tensors);
  return moved;
}

namespace data {

namespace {

/// Stacks tensor `place` of all samples.
Tensor stack_place(std::span<const Sample> samples, std::size_t place) {
  const Tensor& first = samples[0].tensors[place];
  Shape sizes = first.sizes();
  sizes.insert(0, static_cast<int64_t>(samples.size()));
  Tensor out = empty(sizes, {.dtype = first.dtype()});
  auto* to = static_cast<std::byte*>(out.raw_data());
  const auto bytes = static_cast<std::size_t>(first.numel() * size_of(first.dtype()));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Tensor& t = samples[i].tensors[place];
    if (t.sizes() != first.sizes()) {
      throw ShapeError(
          fmt::format("[collate] tensor {} of sample {} is {}, that of sample 0 is {}. Give all samples one "
                      "shape, or pass a collate function.",
                      place, i, to_string(t.sizes()), to_string(first.sizes())));
    }
    if (t.dtype() != first.dtype()) {
      throw DTypeError(
          fmt::format("[collate] tensor {} of sample {} is {}, that of sample 0 is {}. Give all samples one "
                      "type.",
                      place, i, name_of(t.dtype()), name_of(first.dtype())));
    }
    const Tensor dense = t.is_contiguous() ? t : t.contiguous();
    if (bytes > 0) std::memcpy(to + i * bytes, dense.raw_data(), bytes);
  }
  return out;
}

}  // namespace

Batch default_collate(std::span<const Sample> samples) {
  Batch batch;
  if (samples.empty()) return batch;
  const std::size_t places = samples[0].tensors.size();
  for (std::size_t i = 1; i < samples.size(); ++i) {
    if (samples[i].tensors.size() != places) {
      throw ShapeError(fmt::format("[collate] sample {} has {} tensors, sample 0 has {}. Give all samples as many.", i,
                                   samples[i].tensors.size(), places));
    }
  }
  for (std::size_t place = 0; place < places; ++place) batch.tensors.push_back(stack_place(samples, place));
  return batch;
}

}  // namespace data
int Batch::parts() const { return ends.empty() ? 1 : static_cast<int>(ends.size()); }

}  // namespace levin
