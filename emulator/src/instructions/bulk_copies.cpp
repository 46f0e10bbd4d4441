// The copy engine and its barriers. A barrier's 64 bits hold its state.

#include "../team.h"
#include "../tsan.h"

#include <levin/emulator/bulk_copies.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace levin::emulator {

namespace {

struct State {
  std::uint8_t arrivals;  ///< of a phase
  std::uint8_t phase;     ///< its number modulo 2
  std::uint16_t missing;  ///< arrivals that are missing in this phase
  std::int32_t bytes;     ///< expected and not copied yet
};
static_assert(sizeof(State) == sizeof(std::uint64_t));

State load(const std::uint64_t* barrier) {
  const Unwatched unwatched;
  State state;
  std::memcpy(&state, barrier, sizeof(state));
  return state;
}

/// Stores the state; if nothing is missing the next phase begins.
void store(std::uint64_t* barrier, State state) {
  const Unwatched unwatched;
  if (state.missing == 0 && state.bytes == 0) {
    state.missing = state.arrivals;
    state.phase = state.phase == 0;
  }
  std::memcpy(barrier, &state, sizeof(state));
}

void require_barrier(const std::uint64_t* barrier, Site site) {
  if (!is_shared(barrier)) fail("mbarrier: the barrier is not in shared memory", site);
  if (reinterpret_cast<std::uintptr_t>(barrier) % 8 != 0) fail("mbarrier: the barrier is not aligned to 8 bytes", site);
}

/// Copies a box, and counts its bytes.
void complete(const BulkCopy& copy) {
  const TensorMap& map = copy.map;
  const unsigned char* origin = map.base;
  bool outside = false;
  for (int axis = 2; axis < 5; ++axis) {
    outside |= copy.at[axis] < 0 || copy.at[axis] >= map.size[axis];
    origin += copy.at[axis] * map.stride[axis];
  }
  for (int row = 0; row < map.box[1]; ++row) {
    const std::int64_t outer = copy.at[1] + row;
    for (int column = 0; column < map.box[0]; ++column) {
      const std::int64_t inner = copy.at[0] + column;
      const int offset = column * map.element_bytes;
      unsigned char* to = copy.to + row * 128 + (offset ^ row % 8 * 16);
      if (outside || outer < 0 || outer >= map.size[1] || inner < 0 || inner >= map.size[0]) {
        std::memset(to, 0, static_cast<std::size_t>(map.element_bytes));
      } else {
        std::memcpy(to, origin + outer * map.stride[1] + inner * map.element_bytes,
                    static_cast<std::size_t>(map.element_bytes));
      }
    }
  }
  State state = load(copy.barrier);
  state.bytes -= map.box[0] * map.box[1] * map.element_bytes;
  store(copy.barrier, state);
}

/// Completes the copies that count at this barrier.
void complete_all(std::uint64_t* barrier) {
  std::vector<BulkCopy>& copies = bulk_copies();
  for (std::size_t i = 0; i < copies.size();) {
    if (copies[i].barrier != barrier) {
      ++i;
      continue;
    }
    order_acquire(barrier);
    complete(copies[i]);
    order_release(barrier);
    const Unwatched unwatched;
    copies.erase(copies.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

void barrier_init(std::uint64_t* barrier, int arrivals, Site site) {
  require_barrier(barrier, site);
  const State state{static_cast<std::uint8_t>(arrivals), 0, static_cast<std::uint16_t>(arrivals), 0};
  std::memcpy(barrier, &state, sizeof(state));
}

void barrier_arrive(std::uint64_t* barrier, int bytes, Site site) {
  require_barrier(barrier, site);
  order_release(barrier);
  State state = load(barrier);
  if (state.missing == 0) fail("mbarrier: more arrivals than the barrier expects in a phase", site);
  --state.missing;
  state.bytes += bytes;
  store(barrier, state);
}

void barrier_wait(std::uint64_t* barrier, int parity, Site site) {
  require_barrier(barrier, site);
  constexpr int kMost = 1 << 20;
  for (int turn = 0; turn < kMost; ++turn) {
    complete_all(barrier);
    if (static_cast<int>(load(barrier).phase) != parity) return order_acquire(barrier);
    yield_thread();
  }
  fail("mbarrier: nothing ends the phase that a thread waits for", site);
}

void copy_box(void* shared, const TensorMap& map, const int (&at)[5], std::uint64_t* barrier, Site site) {
  require_barrier(barrier, site);
  if (!is_shared(shared)) fail("cp.async.bulk.tensor: the destination is not in shared memory", site);
  if (reinterpret_cast<std::uintptr_t>(shared) % 1024 != 0)
    fail("cp.async.bulk.tensor: the destination is not aligned to 1024 bytes", site);
  order_release(barrier);
  const Unwatched unwatched;
  BulkCopy copy{static_cast<unsigned char*>(shared), map, {}, barrier};
  std::copy(at, at + 5, copy.at);
  bulk_copies().push_back(copy);
}

}  // namespace levin::emulator
