// Uses of unwritten shared memory, each planted in a small kernel, next to correct ones.

#include "kernels/cuda/base/cuda.h"
#include "kernels/cuda/base/ptx.h"
#include "run_kernel.h"
#include "runtime_fixture.h"

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define LEVIN_TEST_MSAN 1
#endif
#endif
#if defined(LEVIN_TEST_MSAN)

#include <cstdint>

// Not in an anonymous namespace, because reports name kernels by their symbols.
namespace uninitialized {

namespace ptx = levin::kernels::cuda::ptx;

/// Writes the first `written` elements of a tile of 32, and each thread stores one element.
__global__ void store(float* out, int written) {
  LEVIN_SHARED(float, tile, 32);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < written) tile[thread] = 1.f;
  __syncthreads();
  out[thread] = tile[31 - thread] + 1.f;
}
constexpr int store_line = __LINE__ - 2, store_array = __LINE__ - 6;

__global__ void branch(float* out, int written) {
  LEVIN_SHARED(int, tile, 32);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < written) tile[thread] = 1;
  __syncthreads();
  if (tile[31 - thread] > 0) out[thread] = 1.f;
}
constexpr int branch_line = __LINE__ - 2;

__global__ void address(float* out, int written) {
  int* const tile = levin::kernels::cuda::dynamic_shared<int>();
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < written) tile[thread] = thread;
  __syncthreads();
  out[tile[31 - thread]] = 1.f;
}
constexpr int address_line = __LINE__ - 2;

/// Stores 16 bytes at once.
__global__ void pack(float* out, int written) {
  LEVIN_SHARED(float, tile, 128);
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < 4 * written; i += 32) tile[i] = 1.f;
  __syncthreads();
  levin::kernels::cuda::pack_at<4>(out + 4 * thread) = levin::kernels::cuda::pack_at<4>(&tile[4 * thread]);
}
constexpr int pack_line = __LINE__ - 2;

__global__ void atomic(float* out, int written) {
  LEVIN_SHARED(float, tile, 32);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < written) tile[thread] = 1.f;
  __syncthreads();
  atomicAdd(out, tile[thread]);
}
constexpr int atomic_line = __LINE__ - 2;

__global__ void vote(float* out, int written) {
  LEVIN_SHARED(int, tile, 32);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < written) tile[thread] = 1;
  __syncwarp();
  out[thread] = static_cast<float>(__ballot_sync(0xffffffffu, tile[thread]));
}
constexpr int vote_line = __LINE__ - 2;

/// Exchanges the lanes' values before one of them is stored.
__global__ void shuffle(float* out, int written) {
  LEVIN_SHARED(float, tile, 32);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < written) tile[thread] = 1.f;
  __syncwarp();
  const float other = __shfl_xor_sync(0xffffffffu, tile[thread], 16);
  if (thread == 15) out[0] = other;
}
constexpr int shuffle_line = __LINE__ - 2;

/// A product of tiles; the lower half of the last column of one may be unwritten.
template <int row>
__global__ void product(float* out, int written) {
  LEVIN_SHARED(__half, tile, 16, 24);
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < 16 * written / 2; i += 32) tile[i % 16][i / 16] = __half(1.f);
  __syncwarp();
  std::uint32_t a[4], b[2];
  ptx::ldmatrix_x4(a, &tile[thread % 16][8 * (thread / 16)]);
  ptx::ldmatrix_x2_trans(b, &tile[thread % 16][0]);
  float d[4] = {};
  ptx::mma_m16n8k16<__half>(d, a, b, d);
  if (thread == 0) out[0] = d[row];
}
constexpr int product_line = __LINE__ - 2;

__global__ void copy(const float* in, float* out, bool wait) {
  LEVIN_SHARED(float, tile, 128);
  const int thread = static_cast<int>(threadIdx.x);
  ptx::cp_async16(&tile[4 * thread], in + 4 * thread);
  ptx::cp_async_commit();
  if (wait) ptx::cp_async_wait<0>();
  out[thread] = tile[4 * thread];
}
constexpr int copy_line = __LINE__ - 2;

/// Rows of 24 elements, of which 20 are used: the rest is copied but never used.
__global__ void padding(float* out) {
  LEVIN_SHARED(float, tile, 32, 24);
  LEVIN_SHARED(float, second, 32, 24);
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = 0; i < 20; ++i) tile[thread][i] = static_cast<float>(i);
  __syncthreads();
  for (int i = 0; i < 24; i += 4) {
    levin::kernels::cuda::pack_at<4>(&second[31 - thread][i]) = levin::kernels::cuda::pack_at<4>(&tile[thread][i]);
  }
  __syncthreads();
  float sum = 0.f, none = 0.f;
  for (int i = 0; i < 24; ++i) (i < 20 ? sum : none) += second[thread][i];
  const float neighbour = __shfl_xor_sync(0xffffffffu, second[thread][thread < 16 ? 0 : 23], 1);
  out[thread] = thread < 16 ? sum + neighbour : sum;
}

}  // namespace uninitialized

namespace levin::emulator {
namespace {

struct Case {
  const char* name;
  void (*kernel)(float*, int);
  int line;
};

constexpr Case kCases[] = {
    {"store", uninitialized::store, uninitialized::store_line},
    {"branch", uninitialized::branch, uninitialized::branch_line},
    {"address", uninitialized::address, uninitialized::address_line},
    {"pack", uninitialized::pack, uninitialized::pack_line},
    {"atomic", uninitialized::atomic, uninitialized::atomic_line},
    {"vote", uninitialized::vote, uninitialized::vote_line},
    {"shuffle", uninitialized::shuffle, uninitialized::shuffle_line},
    {"product<2>", uninitialized::product<2>, uninitialized::product_line},
};

struct Buffers {
  FreshDevices fresh;
  float *in = nullptr, *out = nullptr;
  Buffers() {
    CHECK_OK(cudaMalloc(&in, 4096));
    CHECK_OK(cudaMalloc(&out, 4096));
    CHECK_OK(cudaMemset(in, 0, 4096));
    CHECK_OK(cudaMemset(out, 0, 4096));
  }
  ~Buffers() {
    clear_errors();
    CHECK_OK(cudaFree(in));
    CHECK_OK(cudaFree(out));
  }
};

template <class... P, class... A>
cudaError_t run(void (*kernel)(P...), A... args) {
  clear_errors();
  cudaLaunchConfig_t config{};
  config.gridDim = 3;
  config.blockDim = 32;
  config.dynamicSmemBytes = 128;
  const cudaError_t e = cudaLaunchKernelEx(&config, kernel, args...);
  return e != cudaSuccess ? e : cudaDeviceSynchronize();
}

bool names(int line) {
  return report_has("uninitialized_test.cpp:" + std::to_string(line) + ": uninitialised value: ");
}

TEST_CASE("uninitialised shared memory: each use ends the kernel with its line") {
  const Buffers buffers;
  for (const Case& c : kCases) {
    CAPTURE(c.name);
    CHECK_OK(run(c.kernel, buffers.out, 32));
    CHECK_ERROR(run(c.kernel, buffers.out, 31), cudaErrorLaunchFailure);
    CAPTURE(last_report());
    CHECK(report_has(std::string("kernel uninitialized::") + c.name + ", block ("));
    CHECK(names(c.line));
    CHECK_OK(run(c.kernel, buffers.out, 32));
  }
}

TEST_CASE("uninitialised shared memory: a report names the memory") {
  const Buffers buffers;
  CHECK_ERROR(run(uninitialized::store, buffers.out, 31), cudaErrorLaunchFailure);
  CHECK(report_has("what is stored in global memory here depends on memory that was never written, in the array"));
  CHECK(report_has("uninitialized_test.cpp:" + std::to_string(uninitialized::store_array)));
  CHECK_ERROR(run(uninitialized::address, buffers.out, 31), cudaErrorLaunchFailure);
  CHECK(report_has("in dynamic shared memory"));
}

TEST_CASE("uninitialised shared memory: a copy without a wait") {
  const Buffers buffers;
  CHECK_OK(run(uninitialized::copy, buffers.in, buffers.out, true));
  CHECK_ERROR(run(uninitialized::copy, buffers.in, buffers.out, false), cudaErrorLaunchFailure);
  CHECK(names(uninitialized::copy_line));
  CHECK(report_has("to which a cp.async is under way"));
}

TEST_CASE("uninitialised shared memory: unwritten elements may be copied, added and exchanged") {
  const Buffers buffers;
  for (const std::uint64_t seed : {0, 1, 2}) {
    const WithSeed with(seed);
    CHECK_OK(run(uninitialized::padding, buffers.out));
    CHECK_OK(run(uninitialized::product<0>, buffers.out, 31));
  }
}

}  // namespace
}  // namespace levin::emulator
#endif
