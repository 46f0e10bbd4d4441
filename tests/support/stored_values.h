#pragma once
// Values that tests/pytorch/make_values.py stored: lines of `name dtype shape values`.

#include <levin/core/tensor.h>

#include <filesystem>
#include <map>
#include <string>

namespace levin::test {

using StoredValues = std::map<std::string, Tensor>;

/// tests/pytorch/<file>; throws IoError for a line that is not whole.
StoredValues read_stored_values(const std::string& file);

/// One such line, exact.
std::string stored_line(const Tensor& t);

/// The script's formula(n, salt): a hash of the index as a multiple of 2^-15 in [-1, 1), f32 (n).
Tensor formula(int64_t n, int64_t salt);

}  // namespace levin::test
