#include <levin/data/batch.h>

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
  if (tensors.empty()) return 0;
  return tensors[0].dim() == 0 ? 1 : tensors[0].size(0);
}

Batch Batch::to(Device device) const {
  Batch moved;
  moved.tensors.reserve(tensors.size());
  for (const Tensor& t : tensors) moved.tensors.push_back(t.to(device));
  return moved;
}

namespace data {

namespace {

/// Tensor number `place` of all samples in one.
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
}  // namespace levin
