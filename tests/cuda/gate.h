#pragma once
// Blocks a stream's work while the host checks which work is not yet done.

#include <cuda_runtime.h>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <string>

#if __has_include(<levin/emulator/execution.h>)
#include <levin/emulator/execution.h>
#define LEVIN_TEST_EMULATED 1
#else
#define LEVIN_TEST_EMULATED 0
#endif

/// Marks every test case that uses a Gate. tools/silicon/cases.py runs these with all kernels loaded up front, because
/// the driver may wait for the device when it loads a kernel.
#define LEVIN_HOLDS_A_STREAM doctest::test_suite("holds a stream")

namespace levin::test {

/// Returns the test suite of the running test case.
const std::string& current_suite();

/// Work queued on the stream between construction and open() does not run before open(). The emulator runs nothing
/// before a wait; a real device is blocked by a host function.
class Gate {
 public:
  explicit Gate(cudaStream_t stream) : stream_(stream) {
    CHECK_MESSAGE(current_suite() == "holds a stream", "a test case with a Gate is marked LEVIN_HOLDS_A_STREAM");
#if LEVIN_TEST_EMULATED
    seed_ = emulator::config().seed;
    emulator::config().seed = 0;
#else
    const char* const loading = std::getenv("CUDA_MODULE_LOADING");
    REQUIRE_MESSAGE((loading && std::string(loading) == "EAGER"),
                    "this test holds a stream while kernels are launched; run it with CUDA_MODULE_LOADING=EAGER");
    cudaLaunchHostFunc(
        stream_,
        [](void* open) {
          while (!static_cast<std::atomic<bool>*>(open)->load()) {
          }
        },
        &open_);
#endif
  }
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  /// Lets the work run and waits for it.
  void open() {
    if (open_.exchange(true)) return;
    cudaStreamSynchronize(stream_);
#if LEVIN_TEST_EMULATED
    emulator::config().seed = seed_;
#endif
  }

 private:
  cudaStream_t stream_;
  std::atomic<bool> open_{false};
#if LEVIN_TEST_EMULATED
  decltype(emulator::Config::seed) seed_ = 0;
#endif
};

}  // namespace levin::test
