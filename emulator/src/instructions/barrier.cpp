// Named barriers.

#include <levin/emulator/instructions.h>

#include <string>

namespace levin::emulator {

namespace {

void check_arguments(const std::string& name, int id, int threads, Site site) {
  if (id < 0 || id > 15) fail(name + ": barrier " + std::to_string(id) + " does not exist: 0 to 15", site);
  if (threads <= 0 || threads % 32 != 0) {
    fail(name + ": " + std::to_string(threads) + " threads: whole warps only, a positive multiple of 32", site);
  }
}

}  // namespace

void named_barrier(int id, int threads, Site site) {
  check_arguments("bar.sync", id, threads, site);
  block_barrier("bar.sync", id, threads, site);
}

void named_barrier_arrive(int id, int threads, Site site) {
  check_arguments("bar.arrive", id, threads, site);
  arrive_at_barrier("bar.arrive", id, threads, site);
}

}  // namespace levin::emulator
