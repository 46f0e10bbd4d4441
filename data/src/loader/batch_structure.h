#pragma once
// The structures of samples: comparing, naming and rearranging them.

#include <levin/data/batch.h>

namespace levin::data::detail {

/// Returns "tensor 2" in a list of tensors, else its path: "meta"/"id", "views"/1.
std::string name_of_tensor(const Batch& batch, std::size_t i);

/// Returns the samples, with dictionaries in the order of the first sample's; `copies` holds those that had another
/// order. Throws ShapeError unless all have the structure of the first.
std::span<const Sample> arranged(std::span<const Sample> samples, std::vector<Sample>& copies);

}  // namespace levin::data::detail
