// cp.async.

#include "../msan.h"

#include <levin/emulator/instructions.h>

#include <string>

namespace levin::emulator {

namespace {

bool is_aligned(const void* p, int bytes) {
  return reinterpret_cast<std::uintptr_t>(p) % static_cast<std::uintptr_t>(bytes) == 0;
}

/// Returns why the copy is invalid; null if it is valid.
const char* what_is_wrong(const void* shared, const void* global, int bytes, int source_bytes) {
  if (bytes != 4 && bytes != 8 && bytes != 16) return "copies are of 4, 8 or 16 bytes";
  if (!is_shared(shared)) return "the destination is not in shared memory";
  if (!is_aligned(shared, bytes)) return "the destination is not aligned to the copy's size";
  if (source_bytes < 0 || source_bytes > bytes) return "source_bytes is out of range";
  if (!is_aligned(global, bytes)) return "the source is not aligned to the copy's size";
  if (source_bytes > 0 && !global) return "the source is null";
  if (is_shared(global)) return "the source is in shared memory";
  return nullptr;
}

}  // namespace

void copy_async(void* shared, const void* global, int bytes, int source_bytes, Site site) {
  if (const char* reason = what_is_wrong(shared, global, bytes, source_bytes)) {
    fail("cp.async of " + std::to_string(bytes) + " bytes, " + std::to_string(source_bytes) +
             " from the source: " + reason,
         site);
  }
  async_copies().begin(shared, global, static_cast<std::size_t>(bytes), static_cast<std::size_t>(source_bytes));
  static const std::uint32_t origin = origin_of("shared memory to which a cp.async is under way");
  mark_unwritten(shared, static_cast<std::size_t>(bytes), origin);
}

}  // namespace levin::emulator
