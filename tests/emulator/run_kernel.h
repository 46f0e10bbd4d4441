#pragma once
// Runs lambdas as kernels.

#include <levin/emulator/execution.h>

#include <cstdint>
#include <functional>
#include <string>

namespace levin::emulator {

/// True under the thread sanitizer: tests skip kernels that race on purpose, which it would rightly report.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#if defined(__clang__)
#define LEVIN_UNWATCHED __attribute__((noinline, no_sanitize("memory")))
#else
#define LEVIN_UNWATCHED
#endif
/// Returns the value, for tests that read unwritten memory, which the memory sanitizer would report.
template <class T>
LEVIN_UNWATCHED T as_it_is(const T& value) {
  return value;
}
#undef LEVIN_UNWATCHED

/// Runs `body` for every thread and returns the report, or an empty string.
inline std::string run_kernel(dim3 grid, dim3 block, std::function<void()> body, std::size_t shared = 0,
                              dim3 cluster = {}) {
  return run_grid({.kernel = "test",
                   .grid = grid,
                   .block = block,
                   .cluster = cluster,
                   .shared_bytes = shared,
                   .body = [](void* f) { (*static_cast<std::function<void()>*>(f))(); },
                   .context = &body});
}

/// Sets the emulator's seed for its lifetime.
class WithSeed {
 public:
  explicit WithSeed(std::uint64_t seed) : before_(config().seed) { config().seed = seed; }
  ~WithSeed() { config().seed = before_; }
  WithSeed(const WithSeed&) = delete;
  WithSeed& operator=(const WithSeed&) = delete;

 private:
  std::uint64_t before_;
};

template <class T>
T* dynamic_shared(Site site = Site::current()) {
  return static_cast<T*>(dynamic_shared_memory(site));
}

inline bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace levin::emulator
