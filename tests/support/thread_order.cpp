#include "support/thread_order.h"

#include <cstdlib>

#if __has_include(<levin/emulator/execution.h>)
#include <levin/emulator/execution.h>
#endif

namespace levin::test {

#if __has_include(<levin/emulator/execution.h>)

namespace {

std::uint64_t seed_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return (hash ^ hash >> 32) % 1024;
}

}  // namespace

ThreadOrder::ThreadOrder(std::string_view name) : before_(emulator::config().seed) {
  if (!std::getenv("LEVIN_EMULATOR_SEED")) emulator::config().seed = seed_of(name);
  note_ = " (LEVIN_EMULATOR_SEED=" + std::to_string(emulator::config().seed) + ")";
}

ThreadOrder::~ThreadOrder() { emulator::config().seed = before_; }

#else

ThreadOrder::ThreadOrder(std::string_view) {}
ThreadOrder::~ThreadOrder() = default;

#endif

}  // namespace levin::test
