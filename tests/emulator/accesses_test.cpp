// Misaligned accesses, each planted in a small kernel next to a correct one.

#include "kernels/cuda/base/cuda.h"
#include "runtime_fixture.h"

#include <cstdint>

// Not in an anonymous namespace, because reports name kernels by their symbols.
namespace accesses {

using levin::kernels::cuda::pack_at;

/// Writes four floats at once, `off` elements after an aligned address.
__global__ void pack_of_four(float* p, int off) { pack_at<4>(p + off)[0] = 1.f; }
constexpr int pack_line = __LINE__ - 1;

__global__ void half_pack(const __half* p, float* out, int off) { *out = __half2float(pack_at<2>(p + off)[1]); }

/// The access with an object around it that must be destroyed.
struct Counter {
  float* p;
  ~Counter() {
    if (p) atomicAdd(p + 64, 1.f);
  }
};
__global__ void guarded(float* p) {
  const Counter counter{p};
  __syncthreads();
  p[threadIdx.x] = 1.f;
}

/// The same without the helper, which kernels of Levin always use.
__global__ void bare_vector(float* p, int off) {
  using Vector = float __attribute__((vector_size(16)));
  *reinterpret_cast<Vector*>(p + off) = Vector{1.f, 1.f, 1.f, 1.f};
}

}  // namespace accesses

namespace levin::emulator {
namespace {

template <class... P, class... A>
cudaError_t run(void (*kernel)(P...), unsigned block, std::size_t shared, A... args) {
  clear_errors();
  cudaLaunchConfig_t config{};
  config.gridDim = 1;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  const cudaError_t e = cudaLaunchKernelEx(&config, kernel, args...);
  return e != cudaSuccess ? e : cudaDeviceSynchronize();
}

struct Memory {
  FreshDevices fresh;
  void* bytes = nullptr;
  Memory() {
    CHECK_OK(cudaMalloc(&bytes, 4096));
    CHECK_OK(cudaMemset(bytes, 0, 4096));
  }
  ~Memory() {
    clear_errors();
    CHECK_OK(cudaFree(bytes));
  }
  template <class T>
  T* as(int offset = 0) const {
    return reinterpret_cast<T*>(static_cast<char*>(bytes) + offset);
  }
};

TEST_CASE("accesses: a misaligned vector access ends the kernel and names its line") {
  const Memory memory;
  CHECK_OK(run(accesses::pack_of_four, 1, 0, memory.as<float>(), 4));
  CHECK_ERROR(run(accesses::pack_of_four, 1, 0, memory.as<float>(), 2), cudaErrorMisalignedAddress);
  CHECK(report_has("kernel accesses::pack_of_four, block (0, 0, 0), thread (0, 0, 0), at "));
  CHECK(report_has("accesses_test.cpp:" + std::to_string(accesses::pack_line) + ": misaligned address: "));
  CHECK(report_has(" is no multiple of 16, the size of what is read or written there at once"));
  CHECK_OK(run(accesses::half_pack, 1, 0, memory.as<__half>(), memory.as<float>(512), 2));
  CHECK_ERROR(run(accesses::half_pack, 1, 0, memory.as<__half>(), memory.as<float>(512), 1),
              cudaErrorMisalignedAddress);
  CHECK(report_has(" is no multiple of 4,"));
}

#if !defined(__SANITIZE_ADDRESS__)  // it ends the process at the access itself, see sanitizer_test.cpp
TEST_CASE("accesses: a fault in a kernel with exception handling ends the kernel") {
  const Memory memory;
  for (int round = 0; round < 3; ++round) {
    CHECK_ERROR(run(accesses::pack_of_four, 1, 0, static_cast<float*>(nullptr), 0), cudaErrorIllegalAddress);
    CHECK(report_has("kernel accesses::pack_of_four, block (0, 0, 0), thread (0, 0, 0): the kernel touched address "));
    CHECK_ERROR(run(accesses::guarded, 64, 0, static_cast<float*>(nullptr)), cudaErrorIllegalAddress);
    CHECK_OK(run(accesses::guarded, 64, 0, memory.as<float>()));
  }
}

TEST_CASE("accesses: a misaligned 16-byte access is found even without a helper") {
  const Memory memory;
  CHECK_OK(run(accesses::bare_vector, 1, 0, memory.as<float>(), 4));
  CHECK_ERROR(run(accesses::bare_vector, 1, 0, memory.as<float>(), 1), cudaErrorMisalignedAddress);
  CHECK(report_has("kernel accesses::bare_vector, block (0, 0, 0), thread (0, 0, 0): misaligned address: "));
}
#endif

}  // namespace
}  // namespace levin::emulator
