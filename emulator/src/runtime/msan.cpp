// Turns reports of the memory sanitizer in kernels into failures of the kernel. The compiler inserts calls of the
// sanitizer's library before each use and after each store of a possibly uninitialised value; the program is linked
// with --wrap for these, so that they come here first.

#include "../msan.h"

#if defined(LEVIN_EMULATOR_MSAN)

#include "../team.h"
#include "state.h"

#include <levin/emulator/uninitialized.h>

#include <execinfo.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/msan_interface.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>

// The compiler's calls do not track whether their own operands are initialised.
#define LEVIN_UNCHECKED __attribute__((no_sanitize("memory")))

namespace levin::emulator {

namespace {

/// Descriptions of marked memory. The sanitizer carries an index into this list, counted from 1, with each value.
class Origins {
 public:
  std::uint32_t number_of(const std::string& text) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (texts_[i] == text) return static_cast<std::uint32_t>(i + 1);
    }
    texts_.push_back(text);
    return static_cast<std::uint32_t>(texts_.size());
  }
  const char* text_of(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    return number >= 1 && number <= texts_.size() ? texts_[number - 1].c_str() : "memory";
  }

 private:
  std::mutex mutex_;
  std::deque<std::string> texts_;
};

Origins& origins() {
  static Origins all;
  return all;
}

bool is_of_the_emulator(const char* place) {
  return std::strstr(place, "emulator/src/") || std::strstr(place, "emulator/include/") ||
         std::strstr(place, "base/ptx_emulated.h") || place[0] == '?' || place[0] == '<' ||
         std::strncmp(place, "/usr/", 5) == 0;
}

/// Finds the innermost source line of the running thread that belongs neither to the emulator nor to a library, as
/// file:line.
void find_line_of_kernel(char* line, std::size_t bytes) {
  void* frames[48];
  const int count = backtrace(frames, 48);
  for (int i = 1; i < count; ++i) {
    char places[4096] = "";  // inlined functions, innermost first, each terminated by a zero
    __sanitizer_symbolize_pc(frames[i], "%s:%l", places, sizeof places - 1);
    for (const char* place = places; *place; place += std::strlen(place) + 1) {
      if (is_of_the_emulator(place)) continue;
      std::snprintf(line, bytes, "%s", place);
      return;
    }
  }
  std::snprintf(line, bytes, "an unknown line");
}

[[noreturn]] void report(const char* what, std::uint32_t origin) {
  char line[1024], text[1024];
  find_line_of_kernel(line, sizeof line);
  std::snprintf(text, sizeof text, "uninitialised value: %s depends on memory that was never written, in %s", what,
                origins().text_of(origin));
  running_team->stop(line, text);
}

constexpr const char* kUse = "a branch, an address or a call here";
constexpr const char* kStore = "what is stored in global memory here";

LEVIN_UNCHECKED void found_use(std::uint32_t origin) {
  if (in_kernel()) report(kUse, origin);
}

/// Values stored elsewhere, in shared memory or on stacks, continue to be tracked.
bool is_global(const void* p) {
  const auto& devices = runtime().devices;
  return std::any_of(devices.begin(), devices.end(), [p](const Device& d) { return d.arena->contains(p); });
}

LEVIN_UNCHECKED void found_store(const void* to, std::uint32_t origin) {
  if (in_kernel() && is_global(to)) report(kStore, origin);
}

LEVIN_UNCHECKED void check_copy(const void* to, std::size_t bytes) {
  if (bytes == 0 || !in_kernel()) return;
  const std::intptr_t first = __msan_test_shadow(to, bytes);
  if (first >= 0 && is_global(to)) report(kStore, __msan_get_origin(static_cast<const char*>(to) + first));
}

}  // namespace

std::uint32_t origin_of(const char* what, const Site* declared) {
  std::string text = what;
  if (declared) text += std::string(" declared at ") + declared->file_name() + ":" + std::to_string(declared->line());
  return origins().number_of(text);
}

void mark_unwritten(void* p, std::size_t bytes, std::uint32_t origin) {
  if (bytes == 0) return;
  __msan_poison(p, bytes);
  __msan_set_origin(p, bytes, origin);
}

void mark_written(const void* p, std::size_t bytes) { __msan_unpoison(p, bytes); }

void forget_parameters() { __msan_unpoison_param(64); }

void check_atomic_operand(const void* p, std::size_t bytes) {
  if (__msan_test_shadow(p, bytes) >= 0 && in_kernel()) {
    report("what an atomic function computes here", __msan_get_origin(p));
  }
}

}  // namespace levin::emulator

extern "C" {

const char* __msan_default_options() {
  return "poison_in_malloc=0:poison_in_free=0:external_symbolizer_path=" LEVIN_ADDR2LINE;
}

#define LEVIN_WRAP(bytes, Shadow)                                                                                \
  void __real___msan_maybe_warning_##bytes(Shadow, std::uint32_t);                                               \
  LEVIN_UNCHECKED void __wrap___msan_maybe_warning_##bytes(Shadow shadow, std::uint32_t origin) {                \
    if (shadow == 0) [[likely]]                                                                                  \
      return;                                                                                                    \
    levin::emulator::found_use(origin);                                                                          \
    __real___msan_maybe_warning_##bytes(shadow, origin);                                                         \
  }                                                                                                              \
  void __real___msan_maybe_store_origin_##bytes(Shadow, void*, std::uint32_t);                                   \
  LEVIN_UNCHECKED void __wrap___msan_maybe_store_origin_##bytes(Shadow shadow, void* to, std::uint32_t origin) { \
    if (shadow == 0) [[likely]]                                                                                  \
      return;                                                                                                    \
    levin::emulator::found_store(to, origin);                                                                    \
    __real___msan_maybe_store_origin_##bytes(shadow, to, origin);                                                \
  }
LEVIN_WRAP(1, std::uint8_t)
LEVIN_WRAP(2, std::uint16_t)
LEVIN_WRAP(4, std::uint32_t)
LEVIN_WRAP(8, std::uint64_t)
#undef LEVIN_WRAP

/// Called for values wider than 8 bytes.
[[noreturn]] void __real___msan_warning_with_origin_noreturn(std::uint32_t);
[[noreturn]] LEVIN_UNCHECKED void __wrap___msan_warning_with_origin_noreturn(std::uint32_t origin) {
  levin::emulator::found_use(origin);
  __real___msan_warning_with_origin_noreturn(origin);
}

#define LEVIN_WRAP(name)                                                                      \
  void* __real___msan_##name(void*, const void*, std::size_t);                                \
  LEVIN_UNCHECKED void* __wrap___msan_##name(void* to, const void* from, std::size_t bytes) { \
    __real___msan_##name(to, from, bytes);                                                    \
    levin::emulator::check_copy(to, bytes);                                                   \
    return to;                                                                                \
  }
LEVIN_WRAP(memcpy)
LEVIN_WRAP(memmove)
#undef LEVIN_WRAP

}  // extern "C"

#endif
