// Loading NCCL. With the emulator its own functions are the library; the constants are those of the header, which is
// NVIDIA's in a build with nvcc.
#include <levin/core/error.h>

#include <doctest/doctest.h>

#include <cstdlib>

#include "kernels/cuda/vendor/nccl.h"

using namespace levin;
using namespace levin::kernels::cuda;

#if __has_include(<levin/emulator/devices.h>)

namespace {

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const DeviceError& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("nccl library: a missing or wrong library is an error of one sentence, and the next call retries") {
  setenv("LEVIN_NCCL_LIBRARY", "nowhere/libnccl.so.2", 1);
  std::string text = error_of([] { nccl(); });
  CHECK(text.find("[cuda] NCCL cannot be opened: LEVIN_NCCL_LIBRARY is \"nowhere/libnccl.so.2\"") == 0);
  setenv("LEVIN_NCCL_LIBRARY", "libm.so.6", 1);
  text = error_of([] { nccl(); });
  CHECK(text ==
        "[cuda] NCCL was opened from libm.so.6, but has no function ncclGetVersion. Set LEVIN_NCCL_LIBRARY to the path "
        "of another version.");
  unsetenv("LEVIN_NCCL_LIBRARY");
  int version = 0;
  check(nccl().get_version(&version), "ncclGetVersion");
  CHECK(version >= 21801);
}

TEST_CASE("nccl library: a communicator of one rank, and errors with NCCL's messages") {
  const nccl_api::Functions& f = nccl();
  nccl_api::Comm comm = nullptr;
  check(f.init_all(&comm, 1, nullptr), "ncclCommInitAll");
  float* data = nullptr;
  REQUIRE(cudaMalloc(&data, 2 * sizeof(float)) == cudaSuccess);
  const float values[] = {1.5f, 2.5f};
  float found[2] = {};
  REQUIRE(cudaMemcpy(data, values, sizeof(values), cudaMemcpyHostToDevice) == cudaSuccess);
  check(f.all_reduce(data, data, 2, nccl_api::kFloat32, nccl_api::kAverage, comm, nullptr), "ncclAllReduce", comm);
  REQUIRE(cudaMemcpy(found, data, sizeof(found), cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(found[1] == 2.5f);
  const std::string text = error_of(
      [&] { check(f.broadcast(values, data, 2, nccl_api::kFloat32, 3, comm, nullptr), "ncclBroadcast", comm); });
  CHECK(
      text ==
      "[nccl] ncclBroadcast failed: invalid argument (run with NCCL_DEBUG=WARN for details). ncclBroadcast: root 3 of "
      "1 ranks");
  check(f.destroy(comm), "ncclCommDestroy");
  cudaFree(data);
}

TEST_CASE("nccl library: every function of the table exists") {
  const nccl_api::Functions& f = nccl();
  const auto* const pointers = reinterpret_cast<void* const*>(&f);
  for (std::size_t i = 0; i < sizeof(f) / sizeof(void*); ++i) {
    CAPTURE(i);
    CHECK(pointers[i] != nullptr);
  }
}

#endif
