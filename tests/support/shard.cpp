#include "support/shard.h"

#include <levin/core/error.h>

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

namespace levin::test {

bool in_shard(std::size_t index) {
  const char* const variable = std::getenv("LEVIN_SHARD");
  if (!variable) return true;
  const std::string_view text = variable;
  const char* const end = text.data() + text.size();
  std::size_t number = 0, count = 0;
  const auto first = std::from_chars(text.data(), end, number);
  const bool slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second = slash ? std::from_chars(first.ptr + 1, end, count) : first;
  if (!slash || second.ec != std::errc() || second.ptr != end || number < 1 || number > count) {
    throw UsageError("[tests] LEVIN_SHARD=" + std::string(text) + ": give i/n, with i from 1 to n.");
  }
  return index % count == number - 1;
}

}  // namespace levin::test
