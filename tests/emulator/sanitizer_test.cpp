// The sanitizers report small wrong kernels and are silent about correct ones. They end the process, so each kernel
// runs in a child process of this program, which gets its number through the environment.

#include "emulator/run_kernel.h"
#include "kernels/cuda/base/cuda.h"
#include "kernels/cuda/base/ptx.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

// Not in an anonymous namespace, because reports name kernels by their symbols.
namespace sanitized {

using namespace levin::emulator;
namespace ptx = levin::kernels::cuda::ptx;

template <class... P, class... A>
void launch(void (*kernel)(P...), unsigned grid, unsigned block, std::size_t shared, A... args) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  CHECK(cudaLaunchKernelEx(&config, kernel, args...) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

/// Returns device memory for `count` floats, which is never freed.
float* floats(std::size_t count) {
  float* p = nullptr;
  CHECK(cudaMalloc(&p, count * sizeof(float)) == cudaSuccess);
  CHECK(cudaMemset(p, 0, count * sizeof(float)) == cudaSuccess);
  return p;
}

struct Child {
  const char* name;
  const char* kernel;  ///< null: all are correct
  int line;            ///< the line that the report must name
  void (*run)();
  const char* says = nullptr;  ///< null: the most common report
};

#if defined(__SANITIZE_ADDRESS__)

constexpr std::string_view kSays = "AddressSanitizer: use-after-poison on address";

__global__ void past_shared(int past) {
  LEVIN_SHARED(float, tile, 32);
  LEVIN_SHARED(float, behind, 32);
  float* const p = tile;
  behind[threadIdx.x] = 0.f;
  p[static_cast<int>(threadIdx.x) + past] = 1.f;
}
constexpr int past_shared_line = __LINE__ - 2;

__global__ void past_dynamic(int past) {
  float* const p = levin::kernels::cuda::dynamic_shared<float>();
  p[static_cast<int>(threadIdx.x) + past] = 1.f;
}
constexpr int past_dynamic_line = __LINE__ - 2;

__global__ void past_global(float* p, int past) { p[static_cast<int>(threadIdx.x) + past] = 1.f; }
constexpr int past_global_line = __LINE__ - 1;

__global__ void freed_global(const float* p, float* out) { out[threadIdx.x] = p[threadIdx.x]; }
constexpr int freed_global_line = __LINE__ - 1;

__global__ void misaligned(float* p, int off) { reinterpret_cast<double*>(p + off)[threadIdx.x] = 1; }
constexpr int misaligned_line = __LINE__ - 1;

__global__ void misaligned_pack(float* p, int off) {
  reinterpret_cast<float4*>(p + off)[threadIdx.x] = float4{1.f, 1.f, 1.f, 1.f};
}
[[maybe_unused]] constexpr int misaligned_pack_line = __LINE__ - 2;

/// Stops inside of frames with arrays, whose red zones must not affect the next kernel.
void leave_frames() {
  const std::string report = run_kernel(1, 64, [] {
    volatile float frame[32] = {};
    if (threadIdx.x >= 16) __syncthreads();
    CHECK(frame[threadIdx.x] == 0.f);
  });
  CHECK(holds(report, "divergent barrier"));
}

constexpr Child kChildren[] = {
    {"a write behind an array in shared memory", "past_shared", past_shared_line,
     [] { launch(past_shared, 1, 32, 0, 1); }},
    {"a write behind dynamic shared memory", "past_dynamic", past_dynamic_line,
     [] { launch(past_dynamic, 1, 32, 128, 1); }},
    {"a write behind what cudaMalloc gave", "past_global", past_global_line,
     [] { launch(past_global, 1, 32, 0, floats(32), 1); }},
    {"a write before it", "past_global", past_global_line, [] { launch(past_global, 1, 32, 0, floats(32), -1); }},
    {"a use after cudaFree", "freed_global", freed_global_line,
     [] {
       float* const p = floats(32);
       float* const out = floats(32);
       CHECK(cudaFree(p) == cudaSuccess);
       launch(freed_global, 1, 32, 0, p, out);
     }},
    {"a number at an address that is no multiple of its size", "misaligned", misaligned_line,
     [] { launch(misaligned, 1, 1, 0, floats(32), 1); }, "runtime error: store to misaligned address"},
#if !defined(__clang__)  // clang does not check the alignment of copies of classes
    {"a vector at such an address", "misaligned_pack", misaligned_pack_line,
     [] { launch(misaligned_pack, 1, 1, 0, floats(32), 1); }, "runtime error: store to misaligned address"},
#endif
    {"right kernels", nullptr, 0,
     [] {
       for (const unsigned threads : {1u, 31u, 32u, 7u}) {  // shared memory of one kernel is poisoned in the next
         leave_frames();
         launch(past_shared, 3, threads, 4 * threads, 0);
         launch(past_dynamic, 3, threads, 4 * threads, 0);
         launch(past_global, 3, threads, 0, floats(threads), 0);
         launch(freed_global, 1, threads, 0, floats(threads), floats(threads));
         launch(misaligned, 1, threads, 0, floats(2 * threads), 0);
         launch(misaligned_pack, 1, threads, 0, floats(4 * threads), 0);
       }
     }},
};

#else

constexpr std::string_view kSays = "ThreadSanitizer: data race";

__global__ void reverse(float* out, bool wait) {
  LEVIN_SHARED(float, tile, 64);
  tile[threadIdx.x] = static_cast<float>(threadIdx.x);
  if (wait) __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
constexpr int reverse_line = __LINE__ - 2;

__global__ void rounds(float* out, bool wait) {
  LEVIN_SHARED(float, tile, 64);
  for (int i = 0; i < 3; ++i) {
    tile[threadIdx.x] = static_cast<float>(i);
    __syncthreads();
    out[threadIdx.x] += tile[63 - threadIdx.x];
    if (wait) __syncthreads();
  }
}
constexpr int rounds_line = __LINE__ - 4;

/// Shuffles only exchange operands; only __syncwarp makes lanes see each other's memory.
__global__ void lanes(float* out, bool wait) {
  LEVIN_SHARED(float, tile, 32);
  tile[threadIdx.x] = 1.f;
  const float other = __shfl_xor_sync(0xffffffffu, 1.f, 1);
  if (wait) __syncwarp();
  out[threadIdx.x] = other + tile[31 - threadIdx.x];
}
constexpr int lanes_line = __LINE__ - 2;

/// Writes one element per block, or one for all blocks.
__global__ void blocks(float* out, bool own) {
  LEVIN_SHARED(float, tile, 32);  // every block uses the same memory, which is not a race
  tile[threadIdx.x] = 1.f;
  __syncthreads();
  out[(own ? 32 * blockIdx.x : 0) + threadIdx.x] = tile[31 - threadIdx.x];
}
constexpr int blocks_line = __LINE__ - 2;

/// A thread that has only waited for its own copies must not read those of others.
__global__ void copies(const float* in, float* out, bool wait) {
  LEVIN_SHARED(float, tile, 128);
  ptx::cp_async16(&tile[4 * threadIdx.x], in + 4 * threadIdx.x);
  ptx::cp_async_commit();
  ptx::cp_async_wait<0>();
  if (wait) __syncthreads();
  out[threadIdx.x] = tile[127 - threadIdx.x];
}
constexpr int copies_line = __LINE__ - 2;

/// Uses named barriers of half a block, counting barriers, and a vote of all lanes.
__global__ void halves(float* out) {
  LEVIN_SHARED(float, tile, 128);
  const int thread = static_cast<int>(threadIdx.x), half = thread / 64;
  tile[thread] = static_cast<float>(thread);
  ptx::named_barrier(1 + half, 64);
  float sum = tile[64 * half + (thread + 7) % 64];
  if (__syncthreads_count(thread % 2) == 64) sum += tile[127 - thread];
  out[thread] = sum + static_cast<float>(__ballot_sync(0xffffffffu, thread % 3 == 0) & 1u);
}

constexpr Child kChildren[] = {
    {"no barrier", "reverse", reverse_line, [] { launch(reverse, 1, 64, 0, floats(64), false); }},
    {"no barrier before the next round", "rounds", rounds_line, [] { launch(rounds, 1, 64, 0, floats(64), false); }},
    {"a shuffle in a barrier's place", "lanes", lanes_line, [] { launch(lanes, 1, 32, 0, floats(32), false); }},
    {"two blocks that write one element", "blocks", blocks_line, [] { launch(blocks, 4, 32, 0, floats(32), false); }},
    {"no barrier behind asynchronous copies", "copies", copies_line,
     [] { launch(copies, 1, 32, 0, floats(128), floats(32), false); }},
    {"right kernels", nullptr, 0,
     [] {
       for (const std::uint64_t seed : {0, 1, 2}) {
         config().seed = seed;
         launch(reverse, 1, 64, 0, floats(64), true);
         launch(rounds, 1, 64, 0, floats(64), true);
         launch(lanes, 1, 32, 0, floats(32), true);
         launch(blocks, 64, 32, 0, floats(64 * 32), true);  // enough for two host threads
         launch(copies, 1, 32, 0, floats(128), floats(32), true);
         launch(halves, 1, 128, 0, floats(128));
       }
     }},
};

#endif

constexpr const char* kVariable = "LEVIN_EMULATOR_TEST_CHILD";

/// Returns the output of this program, on both streams, when it runs the test case below as that child.
std::string output_of(std::size_t child) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = std::string("UBSAN_OPTIONS=print_stacktrace=1 ") + kVariable + "=" +
                              std::to_string(child) + " '" + program +
                              "' --test-case='the sanitizer*' --no-colors=true 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string text;
  char buffer[512];
  for (std::size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  pclose(pipe);
  return text;
}

void check(const Child& child) {
  CAPTURE(std::string(child.name));
  const std::string text = output_of(static_cast<std::size_t>(&child - kChildren));
  CAPTURE(text);
  if (child.kernel) {
    CHECK(text.find(child.says ? child.says : kSays) != std::string::npos);
    CHECK(text.find(std::string("sanitizer_test.cpp:") + std::to_string(child.line)) != std::string::npos);
    CHECK(text.find(std::string("sanitized::") + child.kernel + "(") != std::string::npos);
#if defined(__SANITIZE_ADDRESS__)
    CHECK(text.find(std::string("kernel sanitized::") + child.kernel + ", block (0, 0, 0), thread (") !=
          std::string::npos);
#endif
  } else {
    CHECK(text.find("Sanitizer") == std::string::npos);
    CHECK(text.find("1 passed") != std::string::npos);
  }
}

TEST_CASE("the sanitizer names the line of a kernel's error and is silent about correct kernels") {
  if (const char* const number = std::getenv(kVariable)) {
    kChildren[std::strtoul(number, nullptr, 10)].run();
    return;
  }
  for (const Child& child : kChildren) check(child);
}

}  // namespace sanitized
#endif
