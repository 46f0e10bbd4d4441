#include <levin/data/batch.h>

#include "batch_structure.h"
#include "copy_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace levin {

namespace {

void check_place(int i, std::size_t count) {
  if (i >= 0 && static_cast<std::size_t>(i) < count) return;
  throw IndexError(fmt::format("[batch] tensor {} was asked for, but the batch holds {}, counted from 0.", i, count));
}

void append(Batch& group, std::string key, const BatchValue& value) {
  group.tensors.insert(group.tensors.end(), value.tensors.begin(), value.tensors.end());
  BatchEntry& entry = group.entries.emplace_back(value.entry);
  entry.key = std::move(key);
  entry.end = static_cast<int>(group.tensors.size());
}

std::string count_of(std::size_t tensors) { return fmt::format("{} {}", tensors, tensors == 1 ? "tensor" : "tensors"); }

bool is_dict(const Batch& batch) { return !batch.entries.empty() && !batch.entries[0].key.empty(); }

}  // namespace

BatchValue::BatchValue(Tensor tensor) : tensors{std::move(tensor)} {}
BatchValue::BatchValue(std::initializer_list<Tensor> list) : tensors(list), entry{.is_tensor = false} {}
BatchValue::BatchValue(const Batch& batch)
    : tensors(batch.tensors), entry{.is_tensor = false, .entries = batch.entries} {}

Batch Batch::dict(const std::vector<std::pair<std::string, BatchValue>>& values) {
  Batch batch;
  for (const auto& [key, value] : values) {
    if (key.empty()) throw ValueError("[batch] a key of a dictionary is empty. Name each value.");
    if (batch.contains(key)) {
      throw ValueError(fmt::format("[batch] the key \"{}\" is given twice. Name each value once.", key));
    }
    append(batch, key, value);
  }
  return batch;
}

Batch Batch::list(const std::vector<BatchValue>& values) {
  Batch batch;
  for (const BatchValue& value : values) append(batch, {}, value);
  if (std::ranges::all_of(batch.entries, &BatchEntry::is_tensor)) batch.entries.clear();
  return batch;
}

const Tensor& Batch::operator[](int i) const {
  check_place(i, tensors.size());
  return tensors[static_cast<std::size_t>(i)];
}

Tensor& Batch::operator[](int i) {
  check_place(i, tensors.size());
  return tensors[static_cast<std::size_t>(i)];
}

std::size_t Batch::index_of(std::string_view key) const {
  if (!is_dict(*this)) {
    throw IndexError(
        fmt::format("[batch] \"{}\" was asked for, but the batch is a list of {} without keys. Read batch[i], or let "
                    "the dataset return Sample::dict.",
                    key, count_of(tensors.size())));
  }
  const auto found = std::ranges::find(entries, key, &BatchEntry::key);
  if (found != entries.end()) return static_cast<std::size_t>(found - entries.begin());
  throw IndexError(fmt::format("[batch] there is no \"{}\"; the keys are {}.", key, fmt::join(keys(), ", ")));
}

const Tensor& Batch::operator[](std::string_view key) const {
  const std::size_t i = index_of(key);
  if (entries[i].is_tensor) return tensors[static_cast<std::size_t>(begin_of(i))];
  throw ValueError(fmt::format("[batch] \"{0}\" is not one tensor, but a {1} of {2}. Read it by part(\"{0}\").", key,
                               is_dict(part(key)) ? "dictionary" : "list", count_of(part(key).tensors.size())));
}

Tensor& Batch::operator[](std::string_view key) { return const_cast<Tensor&>(std::as_const(*this)[key]); }

bool Batch::contains(std::string_view key) const {
  return !key.empty() && std::ranges::find(entries, key, &BatchEntry::key) != entries.end();
}

std::vector<std::string> Batch::keys() const {
  std::vector<std::string> names;
  if (is_dict(*this))
    for (const BatchEntry& e : entries) names.push_back(e.key);
  return names;
}

void Batch::check_unpacks(std::size_t count) const {
  if (is_dict(*this)) {
    throw ValueError(fmt::format("[batch] a dictionary does not unpack; its keys are {}. Read batch[\"{}\"].",
                                 fmt::join(keys(), ", "), entries[0].key));
  }
  if (tensors.size() == count) return;
  throw ValueError(
      fmt::format("[batch] the batch holds {}, and {} are asked for. Unpack all by batch.as<{}>(), or read batch[i].",
                  count_of(tensors.size()), count, tensors.size()));
}

int64_t Batch::size() const {
  if (samples >= 0) return samples;
  for (const Tensor& t : tensors) {
    if (t.defined()) return t.dim() == 0 ? 1 : t.size(0);
  }
  return 0;
}

int Batch::parts() const { return entries.empty() ? 1 : static_cast<int>(entries.size()); }

Batch Batch::part(int i) const {
  if (i < 0 || i >= parts()) {
    throw IndexError(fmt::format("[batch] part {} was asked for, but the batch has {}, counted from 0.", i, parts()));
  }
  if (entries.empty()) return *this;
  const auto at = static_cast<std::size_t>(i);
  const BatchEntry& entry = entries[at];
  Batch value({tensors.begin() + begin_of(at), tensors.begin() + entry.end}, entry.entries);
  value.dataloader_idx = i;
  return value;
}

Batch Batch::part(std::string_view key) const {
  Batch value = part(static_cast<int>(index_of(key)));
  value.dataloader_idx = dataloader_idx;
  return value;
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
      throw ShapeError(fmt::format(
          "[collate] {} of sample {} is {}, that of sample 0 is {}. Give all samples one shape, or pass a collate "
          "function.",
          detail::name_of_tensor(samples[0], place), i, to_string(t.sizes()), to_string(first.sizes())));
    }
    if (t.dtype() != first.dtype()) {
      throw DTypeError(
          fmt::format("[collate] {} of sample {} is {}, that of sample 0 is {}. Give all samples one type.",
                      detail::name_of_tensor(samples[0], place), i, name_of(t.dtype()), name_of(first.dtype())));
    }
    const Tensor dense = t.is_contiguous() ? t : t.contiguous();
    if (bytes > 0) std::memcpy(to + i * bytes, dense.raw_data(), bytes);
  }
  return out;
}

}  // namespace

Batch default_collate(std::span<const Sample> given) {
  if (given.empty()) return {};
  std::vector<Sample> copies;
  const std::span<const Sample> samples = detail::arranged(given, copies);
  Batch batch({}, samples[0].entries);
  for (std::size_t place = 0; place < samples[0].tensors.size(); ++place)
    batch.tensors.push_back(stack_place(samples, place));
  return batch;
}

}  // namespace data

}  // namespace levin
