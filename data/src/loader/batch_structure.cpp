#include "batch_structure.h"

#include <fmt/format.h>

#include <algorithm>

namespace levin::data::detail {

namespace {

using Entries = std::vector<BatchEntry>;

/// Returns "{image, meta: {id, time}}", or "[2 tensors]" for a list of tensors.
std::string describe(const Entries& entries, std::size_t tensors) {
  if (entries.empty()) return fmt::format("[{} {}]", tensors, tensors == 1 ? "tensor" : "tensors");
  const bool dictionary = !entries[0].key.empty();
  std::vector<std::string> parts;
  int begin = 0;
  for (const BatchEntry& e : entries) {
    const auto count = static_cast<std::size_t>(e.end - std::exchange(begin, e.end));
    const std::string value = e.is_tensor ? "tensor" : describe(e.entries, count);
    if (!dictionary)
      parts.push_back(value);
    else
      parts.push_back(e.is_tensor ? e.key : e.key + ": " + value);
  }
  return fmt::format("{}{}{}", dictionary ? "{" : "[", fmt::join(parts, ", "), dictionary ? "}" : "]");
}

/// Appends `tensors`, grouped by `own`, in the order of `like`; returns false if that has another structure.
bool arrange(const Entries& like, std::size_t count, const Entries& own, std::span<const Tensor> tensors,
             std::vector<Tensor>& out) {
  if (like.size() != own.size()) return false;
  if (like.empty()) {
    out.insert(out.end(), tensors.begin(), tensors.end());
    return tensors.size() == count;
  }
  int begin = 0;
  for (std::size_t i = 0; i < like.size(); ++i) {
    const auto wanted = static_cast<std::size_t>(like[i].end - std::exchange(begin, like[i].end));
    const auto found = like[i].key.empty() ? own.begin() + static_cast<std::ptrdiff_t>(i)
                                           : std::ranges::find(own, like[i].key, &BatchEntry::key);
    if (found == own.end() || found->key != like[i].key || found->is_tensor != like[i].is_tensor) return false;
    const auto first = static_cast<std::size_t>(found == own.begin() ? 0 : (found - 1)->end);
    const auto part = tensors.subspan(first, static_cast<std::size_t>(found->end) - first);
    if (!arrange(like[i].entries, wanted, found->entries, part, out)) return false;
  }
  return true;
}

}  // namespace

std::string name_of_tensor(const Batch& batch, std::size_t i) {
  if (batch.entries.empty()) return fmt::format("tensor {}", i);
  std::string path;
  const Entries* entries = &batch.entries;
  auto place = static_cast<int>(i);
  while (!entries->empty()) {
    const auto e = std::ranges::find_if(*entries, [&](const BatchEntry& entry) { return place < entry.end; });
    if (!path.empty()) path += "/";
    path += e->key.empty() ? std::to_string(e - entries->begin()) : "\"" + e->key + "\"";
    if (e != entries->begin()) place -= (e - 1)->end;
    if (e->is_tensor) return path;
    entries = &e->entries;
  }
  return fmt::format("{}/{}", path, place);
}

namespace {

bool same(const BatchEntry& a, const BatchEntry& b) {
  return a.key == b.key && a.end == b.end && a.is_tensor == b.is_tensor &&
         std::ranges::equal(a.entries, b.entries, same);
}

bool same_structure(const Sample& a, const Sample& b) {
  return a.tensors.size() == b.tensors.size() && std::ranges::equal(a.entries, b.entries, same);
}

Sample arranged_as(const Sample& first, const Sample& sample, std::size_t index) {
  Sample out({}, first.entries);
  if (arrange(first.entries, first.tensors.size(), sample.entries, sample.tensors, out.tensors)) return out;
  if (first.entries.empty() && sample.entries.empty()) {
    throw ShapeError(fmt::format("[collate] sample {} has {} tensors, sample 0 has {}. Give all samples as many.",
                                 index, sample.tensors.size(), first.tensors.size()));
  }
  throw ShapeError(fmt::format("[collate] sample {} is {}, sample 0 is {}. Give all samples the same keys and lists.",
                               index, describe(sample.entries, sample.tensors.size()),
                               describe(first.entries, first.tensors.size())));
}

}  // namespace

std::span<const Sample> arranged(std::span<const Sample> samples, std::vector<Sample>& copies) {
  if (std::ranges::all_of(samples, [&](const Sample& s) { return same_structure(samples[0], s); })) return samples;
  for (std::size_t i = 0; i < samples.size(); ++i) copies.push_back(arranged_as(samples[0], samples[i], i));
  return copies;
}

}  // namespace levin::data::detail
