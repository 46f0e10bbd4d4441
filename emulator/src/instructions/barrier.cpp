// Named barriers.

#include <levin/emulator/instructions.h>

#include <string>

namespace levin::emulator {

void named_barrier(int id, int threads, Site site) {
  if (id < 0 || id > 15) fail("bar.sync: barrier " + std::to_string(id) + " does not exist: 0 to 15", site);
  if (threads <= 0 || threads % 32 != 0) {
    fail("bar.sync: " + std::to_string(threads) + " threads: whole warps only, a positive multiple of 32", site);
  }
  block_barrier("bar.sync", id, threads, site);
}

}  // namespace levin::emulator
