#pragma once
// Sizes of the processor's caches, for block sizes that do not influence results.

#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace levin::kernels::cpu {

/// Returns the bytes of a core's second-level cache, from 512 KiB to 2 MiB; 1 MiB where the system does not say.
inline std::int64_t second_level_cache() {
  static const std::int64_t bytes = [] {
#ifdef _SC_LEVEL2_CACHE_SIZE
    const std::int64_t said = sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
    const std::int64_t said = 0;
#endif
    return said > 0 ? std::clamp<std::int64_t>(said, 512 << 10, 2 << 20) : 1 << 20;
  }();
  return bytes;
}

}  // namespace levin::kernels::cpu
