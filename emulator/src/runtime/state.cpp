#include "state.h"

#include "guard.h"

#include <levin/emulator/devices.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace levin::emulator {

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::atoi(text) : otherwise;
}

namespace {
Runtime* the_runtime = nullptr;  // for the list at exit, which must not create a runtime

void list_launches(const char* file) {
  std::string text;
  for (const auto& [address, f] : the_runtime->functions) {
    if (f.most_threads == 0 || f.symbol.empty()) continue;
    text += f.symbol + "\t" + std::to_string(f.most_threads) + "\t" + std::to_string(f.most_dynamic) + "\t" +
            std::to_string(f.array_bytes) + "\n";
  }
  std::FILE* const out = std::fopen(file, "a");
  if (!out) return warn(std::string("LEVIN_EMULATOR_LAUNCHES: ") + file + " cannot be written");
  std::setvbuf(out, nullptr, _IONBF, 0);  // one write per text, because several programs may end at once
  std::fwrite(text.data(), 1, text.size(), out);
  std::fclose(out);
}

/// Runs after the destructors of all static objects.
__attribute__((destructor)) void list_at_exit() {
  if (!the_runtime) return;
  if (const char* file = std::getenv("LEVIN_EMULATOR_LAUNCHES")) list_launches(file);
  if (number_from("LEVIN_EMULATOR_LEAKS", 0) == 0) return;
  for (const std::string& leak : leaked_allocations()) warn("alive at the end: " + leak);
}
}  // namespace

Runtime& runtime() {
  static Runtime* const one = the_runtime = new Runtime;
  return *one;
}

void warn(const std::string& text) { std::fprintf(stderr, "levin emulator: %s\n", text.c_str()); }

ThreadState& this_thread() {
  static thread_local ThreadState state;
  return state;
}

Runtime::Runtime() : check_zones_(number_from("LEVIN_EMULATOR_RED_ZONES", 1) != 0) {
  if (const char* text = std::getenv("LEVIN_EMULATED_ARCHITECTURE")) std::sscanf(text, "%d.%d", &major, &minor);
  make_devices(number_from("LEVIN_EMULATED_DEVICES", 1),
               static_cast<std::size_t>(number_from("LEVIN_EMULATED_MEMORY", 2048)) << 20);
  install_guard();
}

void Runtime::make_devices(int count, std::size_t capacity) {
  const bool protect = number_from("LEVIN_EMULATOR_PROTECT", 1) != 0;
  devices.clear();
  for (int d = 0; d < count && d < kMostDevices; ++d) {
    Device& device = devices.emplace_back();
    device.arena = std::make_unique<Arena>(capacity, protect);
    device.legacy = std::make_unique<CUstream_st>();
    device.legacy->device = device.pool.device = d;
    device.legacy->legacy = true;
  }
}

cudaError_t enter(Runtime& rt, Needs needs) {
  ThreadState& thread = this_thread();
  if (thread.in_host_function) return rt.refuse(cudaErrorNotPermitted, "a host function of a stream called CUDA");
  if (rt.devices.empty()) return rt.refuse(cudaErrorNoDevice, "there is no emulated device");
  if (thread.device >= static_cast<int>(rt.devices.size())) thread.device = 0;
  return needs == Needs::health ? rt.devices[static_cast<std::size_t>(thread.device)].error : cudaSuccess;
}

cudaError_t Runtime::refuse(cudaError_t error, std::string text) {
  report = std::move(text);
  return error;
}

Place Runtime::place_of(const void* p) const {
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const Arena& arena = *devices[d].arena;
    if (!arena.contains(p)) continue;
    const Allocation* a = arena.find(p);
    if (!a) return {Place::Kind::nowhere, static_cast<int>(d), nullptr, 0};
    return {Place::Kind::device, static_cast<int>(d), a->data, a->bytes};
  }
  const auto* const address = static_cast<const char*>(p);
  auto it = host_blocks.upper_bound(address);
  if (it != host_blocks.begin()) {
    const auto& [begin, block] = *std::prev(it);
    if (address < begin + block.bytes) return {Place::Kind::pinned, block.device, begin, block.bytes};
  }
  return {};
}

std::string text_of(const void* p) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", p);
  return text;
}

std::string text_of(const Allocation& a, int device) {
  return "an allocation of " + std::to_string(a.bytes) + " bytes on device " + std::to_string(device);
}

}  // namespace levin::emulator
