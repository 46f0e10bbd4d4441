#include <levin/data/collate.h>

#include "batch_structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace levin::data {

namespace {

/// Returns the sizes of one element of a sequence (T_i, *), which are those without T_i.
Shape element_sizes(const Tensor& sequence) {
  if (sequence.dim() == 0) {
    throw ShapeError(
        "[pad_sequence] a sequence is (T, ...), not a tensor without dimensions. Give it an axis for time.");
  }
  Shape sizes = sequence.sizes();
  sizes.erase(0);
  return sizes;
}

void check_alike(std::span<const Tensor> sequences) {
  if (sequences.empty()) throw ValueError("[pad_sequence] there are no sequences; give one or more.");
  const Tensor& first = sequences[0];
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const Tensor& s = sequences[i];
    if (element_sizes(s) != element_sizes(first)) {
      throw ShapeError(fmt::format("[pad_sequence] sequence {} is {}, sequence 0 is {}: only their axis 0 may differ.",
                                   i, to_string(s.sizes()), to_string(first.sizes())));
    }
    if (s.dtype() != first.dtype()) {
      throw DTypeError(fmt::format("[pad_sequence] sequence {} is {}, sequence 0 is {}. Give all one type.", i,
                                   name_of(s.dtype()), name_of(first.dtype())));
    }
  }
}

/// Returns the entries of a batch that lists, in place of each tensor of a sample, that tensor of each of `samples`.
std::vector<BatchEntry> listed(const std::vector<BatchEntry>& entries, int tensors, int samples) {
  std::vector<BatchEntry> out = entries;
  if (out.empty())
    for (int i = 0; i < tensors; ++i) out.push_back({.end = i + 1});
  int begin = 0;
  for (BatchEntry& e : out) {
    const int count = e.end - std::exchange(begin, e.end);
    if (!e.is_tensor) e.entries = listed(e.entries, count, samples);
    e.end *= samples;
    e.is_tensor = false;
  }
  return out;
}

std::vector<Tensor> column(std::span<const Sample> samples, std::size_t place) {
  std::vector<Tensor> list;
  for (const Sample& s : samples) list.push_back(s.tensors[place]);
  return list;
}

Tensor lengths_of(const std::vector<Tensor>& sequences) {
  std::vector<int64_t> lengths;
  for (const Tensor& s : sequences) lengths.push_back(s.size(0));
  return from_data(lengths, {static_cast<int64_t>(lengths.size())});
}

Tensor stacked(std::span<const Sample> samples, std::size_t place) {
  std::vector<Sample> only;
  for (const Sample& s : samples) only.push_back({{s.tensors[place]}});
  return default_collate(only)[0];
}

}  // namespace

Tensor pad_sequence(std::span<const Tensor> sequences, const PadSequenceOptions& options) {
  check_alike(sequences);
  int64_t longest = 0;
  for (const Tensor& s : sequences) longest = std::max(longest, s.size(0));
  const auto count = static_cast<int64_t>(sequences.size());
  Shape sizes = element_sizes(sequences[0]);
  const DType dtype = sequences[0].dtype();
  const int64_t bytes = sizes.numel() * size_of(dtype);  // per element
  sizes.insert(0, options.batch_first ? longest : count);
  sizes.insert(0, options.batch_first ? count : longest);
  Tensor out = empty(sizes, {.dtype = dtype});
  out.fill_(options.padding_value);
  auto* to = static_cast<std::byte*>(out.raw_data());
  for (int64_t b = 0; b < count; ++b) {
    const Tensor& given = sequences[static_cast<std::size_t>(b)];
    const Tensor s = given.is_contiguous() ? given : given.contiguous();
    const auto* from = static_cast<const std::byte*>(s.raw_data());
    for (int64_t t = 0; t < s.size(0) && bytes > 0; ++t) {
      const int64_t at = options.batch_first ? b * longest + t : t * count + b;
      std::memcpy(to + at * bytes, from + t * bytes, static_cast<std::size_t>(bytes));
    }
  }
  return out;
}

Collate pad_collate(PadOptions options) {
  return [o = std::move(options)](std::span<const Sample> given) {
    if (!given.empty() && !given[0].entries.empty()) {
      throw ValueError(
          "[pad_collate] the samples are dictionaries or nested lists, and places are counted in a list of tensors. "
          "Write a collate function by pad_sequence.");
    }
    std::vector<Sample> copies;
    const std::span<const Sample> samples = detail::arranged(given, copies);
    const std::size_t places = samples.empty() ? 0 : samples[0].tensors.size();
    for (const int p : o.places) {
      if (p < 0 || static_cast<std::size_t>(p) >= places) {
        throw IndexError(
            fmt::format("[pad_collate] tensor {} is to be padded, but a sample has {}, counted from 0.", p, places));
      }
    }
    Batch batch;
    std::vector<Tensor> lengths;
    for (std::size_t place = 0; place < places; ++place) {
      if (std::find(o.places.begin(), o.places.end(), static_cast<int>(place)) == o.places.end()) {
        batch.tensors.push_back(stacked(samples, place));
        continue;
      }
      const std::vector<Tensor> sequences = column(samples, place);
      batch.tensors.push_back(pad_sequence(sequences, {.batch_first = true, .padding_value = o.value}));
      if (o.lengths) lengths.push_back(lengths_of(sequences));
    }
    std::move(lengths.begin(), lengths.end(), std::back_inserter(batch.tensors));
    return batch;
  };
}

Collate list_collate() {
  return [](std::span<const Sample> given) {
    Batch batch;
    batch.samples = static_cast<int64_t>(given.size());
    if (given.empty()) return batch;
    std::vector<Sample> copies;
    const std::span<const Sample> samples = detail::arranged(given, copies);
    const Sample& first = samples[0];
    for (std::size_t place = 0; place < first.tensors.size(); ++place)
      for (const Sample& s : samples) batch.tensors.push_back(s.tensors[place]);
    batch.entries = listed(first.entries, static_cast<int>(first.tensors.size()), static_cast<int>(samples.size()));
    return batch;
  };
}

}  // namespace levin::data
