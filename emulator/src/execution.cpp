// Implements execution.h: each function forwards to the team that runs the calling kernel.

#include <levin/emulator/builtins.h>
#include <levin/emulator/execution.h>

#include "poison.h"
#include "team.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace levin::emulator {

namespace {

Team& team(const char* what) {
  Team* const t = running_team;
  if (!t) throw std::logic_error(std::string(what) + " was called by the host's code: it exists in kernels only");
  return *t;
}

std::uint64_t number_from(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : 0;
}

}  // namespace

Config& config() {
  static Config c{.seed = number_from("LEVIN_EMULATOR_SEED"),
                  .workers = static_cast<int>(number_from("LEVIN_EMULATOR_WORKERS"))};
  return c;
}

void fail(const std::string& what, Site site) { team("fail").fail(what, site); }
bool in_kernel() { return running_team != nullptr; }

void* shared_array(const void* key, std::size_t bytes, std::size_t alignment, Site site) {
  return team("shared memory").find_array(key, bytes, alignment, site);
}

void* dynamic_shared_memory(Site site) {
  Team& t = team("dynamic shared memory");
  if (t.launch().shared_bytes == 0) t.fail("dynamic shared memory is used, but the launch gave none", site);
  return t.current().block->shared;
}

std::size_t dynamic_shared_bytes() { return team("dynamic shared memory").launch().shared_bytes; }

void block_barrier(const char* name, int id, int threads, Site site) {
  team(name).wait_at_barrier(name, id, threads, nullptr, nullptr, site);
}
void block_collective(const char* name, void* operands, void (*run)(void* const*, int), Site site) {
  team(name).wait_at_barrier(name, 0, 0, operands, run, site);
}
void cluster_barrier(const char* name, Site site) { team(name).wait_at_cluster(name, site); }
void warp_collective(const char* name, std::uint32_t mask, void* operands, WarpFunction run, Site site, bool orders) {
  team(name).meet_in_warp(name, mask, operands, run, site, orders);
}

int thread_number() { return team("threadIdx").current().number; }
int lane() { return thread_number() % 32; }
std::uint32_t live_lanes() {
  const Thread& t = team("__activemask").current();
  return t.block->warps[static_cast<std::size_t>(t.number / 32)].live;
}
void yield_thread() { team("yield").yield(); }
AsyncCopies& async_copies() { return team("cp.async").current().copies; }
GroupProducts& group_products() { return team("wgmma").current().products; }

std::vector<BulkCopy>& bulk_copies() { return team("mbarrier").current().block->copies; }

int cluster_rank() { return team("cluster").current().block->rank; }
int cluster_size() { return static_cast<int>(team("cluster").blocks().size()); }

void* map_shared(const void* p, int rank, Site site) {
  Team& t = team("map_shared");
  if (rank < 0 || rank >= cluster_size()) {
    t.fail("map_shared: block " + std::to_string(rank) + " of a cluster of " + std::to_string(cluster_size()), site);
  }
  if (!is_shared(p)) t.fail("map_shared: the address is not in this block's shared memory", site);
  return t.blocks()[static_cast<std::size_t>(rank)].shared + (static_cast<const char*>(p) - t.current().block->shared);
}

bool is_shared(const void* p) {
  const char* shared = team("is_shared").current().block->shared;
  return p >= shared && p < shared + kSharedBytes;
}

}  // namespace levin::emulator

#if defined(LEVIN_EMULATOR_ASAN)
/// Called by the address sanitizer before its report.
extern "C" void __asan_on_error() {
  levin::emulator::Team* const team = levin::emulator::running_team;
  if (team) std::fprintf(stderr, "levin emulator: %s:\n", team->place().c_str());
}
/// Called by the undefined behaviour sanitizer, which reports misaligned addresses.
extern "C" void __ubsan_on_report() { __asan_on_error(); }
#endif
