// The emulator's own controls, and cudaDeviceReset.

#include "state.h"

#include <levin/emulator/devices.h>

#include <cstdlib>

namespace levin::emulator {

namespace {

std::vector<std::string> list_live(const Runtime& rt) {
  std::vector<std::string> texts;
  for (std::size_t d = 0; d < rt.devices.size(); ++d) {
    for (const auto& [offset, a] : rt.devices[d].arena->live()) {
      texts.push_back(text_of(a, static_cast<int>(d)) + " at " + text_of(a.data));
    }
  }
  for (const auto& [begin, block] : rt.host_blocks) {
    if (block.owned) texts.push_back("pinned memory of " + std::to_string(block.bytes) + " bytes at " + text_of(begin));
  }
  for (const CUstream_st* s : rt.streams) {
    texts.push_back("a stream of device " + std::to_string(s->device) + " at " + text_of(s));
  }
  for (const CUevent_st* e : rt.events) {
    texts.push_back("an event of device " + std::to_string(e->device) + " at " + text_of(e));
  }
  if (!rt.graphs.empty()) texts.push_back(std::to_string(rt.graphs.size()) + " graphs");
  if (!rt.executables.empty()) texts.push_back(std::to_string(rt.executables.size()) + " instantiated graphs");
  return texts;
}

std::vector<std::string> list_damage(Runtime& rt, Lock& lock) {
  std::vector<std::string> texts;
  const Runtime::Turn turn(rt, lock);
  for (std::size_t d = 0; d < rt.devices.size(); ++d) {
    rt.open(1u << d, false);
    Arena& arena = *rt.devices[d].arena;
    while (const Allocation* a = arena.damaged(true)) {
      texts.push_back("something wrote outside of " + text_of(*a, static_cast<int>(d)) + " at " + text_of(a->data));
      arena.mend(*a);
    }
  }
  return texts;
}

void forget_errors(Runtime& rt, Lock& lock) {
  rt.drop_queues(lock, -1);
  while (!rt.captures.empty()) rt.end_capture(CaptureRef(rt.captures.back()));
  for (Device& d : rt.devices) d.error = cudaSuccess;
  rt.report.clear();
  this_thread().last_error = cudaSuccess;
}

std::vector<std::string> empty_all(Runtime& rt, Lock& lock) {
  forget_errors(rt, lock);
  std::vector<std::string> texts = list_live(rt);
  for (int d = 0; d < static_cast<int>(rt.devices.size()); ++d) {
    for (std::string& text : rt.empty_device(lock, d)) texts.push_back(std::move(text));
  }
  for (const auto& [begin, block] : rt.host_blocks) {
    if (block.owned) std::free(const_cast<char*>(begin));
  }
  rt.host_blocks.clear();
  for (CUgraph_st* g : rt.graphs) delete g;
  for (CUgraphExec_st* e : rt.executables) delete e;
  rt.graphs.clear();
  rt.executables.clear();
  for (auto& [address, f] : rt.functions) {
    f.asked_shared.reset();
    f.big_clusters = false;
  }
  this_thread() = ThreadState{};
  return texts;
}

}  // namespace

std::vector<std::string> Runtime::empty_device(Lock& lock, int device) {
  std::vector<std::string> damage;
  for (CUstream_st* s : std::vector<CUstream_st*>(streams.begin(), streams.end())) {
    if (s->device == device) destroy(s);
  }
  for (CUevent_st* e : std::vector<CUevent_st*>(events.begin(), events.end())) {
    if (e->device != device) continue;
    events.erase(e);
    delete e;
  }
  Device& d = devices[static_cast<std::size_t>(device)];
  const Turn turn(*this, lock);
  open(1u << device, false);
  while (!d.arena->live().empty()) {
    const Allocation a = d.arena->live().begin()->second;
    if (d.arena->free(a.data) == false) {
      damage.push_back("something wrote outside of " + text_of(a, device) + " at " + text_of(a.data));
    }
  }
  d.per_thread.clear();
  d.orphans.clear();
  d.error = cudaSuccess;
  d.peers = 0;
  return damage;
}

std::string last_report() {
  Runtime& rt = runtime();
  const Lock lock(rt.mutex);
  return rt.report;
}

void clear_errors() {
  Runtime& rt = runtime();
  Lock lock(rt.mutex);
  forget_errors(rt, lock);
}

std::vector<std::string> reset() {
  Runtime& rt = runtime();
  Lock lock(rt.mutex);
  return empty_all(rt, lock);
}

void reset_devices(int count, std::size_t megabytes) {
  Runtime& rt = runtime();
  Lock lock(rt.mutex);
  empty_all(rt, lock);
  rt.make_devices(count, megabytes << 20);
}

void set_architecture(int major, int minor) {
  Runtime& rt = runtime();
  const Lock lock(rt.mutex);
  rt.major = major;
  rt.minor = minor;
}

std::vector<std::string> leaked_allocations() {
  Runtime& rt = runtime();
  const Lock lock(rt.mutex);
  return list_live(rt);
}

std::vector<std::string> damaged_allocations() {
  Runtime& rt = runtime();
  Lock lock(rt.mutex);
  return list_damage(rt, lock);
}

std::size_t queued_work() {
  Runtime& rt = runtime();
  const Lock lock(rt.mutex);
  return rt.queued();
}

std::size_t memory_openings() {
  Runtime& rt = runtime();
  const Lock lock(rt.mutex);
  return rt.openings;
}

std::size_t host_waits() {
  Runtime& rt = runtime();
  const Lock lock(rt.mutex);
  return rt.host_waits;
}

std::size_t shared_requests() {
  Runtime& rt = runtime();
  const Lock lock(rt.mutex);
  return rt.shared_requests;
}

}  // namespace levin::emulator

/// Ends all work of the current device and resets it.
cudaError_t cudaDeviceReset() {
  using namespace levin::emulator;
  return call(Needs::nothing, [](Runtime& rt, Lock& lock) {
    const int device = this_thread().device;
    rt.complete_device(lock, device);
    const std::vector<std::string> damage = rt.empty_device(lock, device);
    this_thread().last_error = cudaSuccess;
    for (const std::string& text : damage) warn(text);
    return damage.empty() ? cudaSuccess : rt.refuse(cudaErrorIllegalAddress, "cudaDeviceReset: " + damage.front());
  });
}
