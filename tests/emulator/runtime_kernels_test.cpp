// Launches: arguments, checks, sticky failures.

#include "kernels/cuda/base/cuda.h"
#include "runtime_fixture.h"

#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

// Not in an anonymous namespace, because reports name kernels by their symbols.
namespace runtime_kernels {

__global__ void fill(int* out, int n, int value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = value;
}

template <class T>
__global__ void add(T* out, const T* a, T b) {
  out[threadIdx.x] = a[threadIdx.x] + b;
}

/// As large and as aligned as a tensor map.
struct alignas(64) Wide {
  double values[16];
};

/// Parameters between which the driver leaves gaps.
__global__ void list(double* out, char a, double b, Wide c, short d, const float e) {
  const double all[] = {double(a), b, c.values[0], c.values[15], double(d), double(e)};
  for (int i = 0; i < 6; ++i) out[i] = all[i];
}
__global__ void list_backwards(double* out, char a, double b, Wide c, short d, const float e) {
  const double all[] = {double(e), double(d), c.values[15], c.values[0], b, double(a)};
  for (int i = 0; i < 6; ++i) out[i] = all[i];
}

/// Half of the block waits at a barrier that the other half never reaches.
__global__ void diverge(int* out) {
  if (threadIdx.x < 16) __syncthreads();
  out[threadIdx.x] = 1;
}

__global__ void touch(int* p, int value) { *p = value; }

__global__ void nothing() {}

/// An array of 1 KiB and dynamic shared memory that is accessed at both ends.
__global__ void array_beside_dynamic(float* out, int dynamic_floats) {
  LEVIN_SHARED(float, tile, 256);
  float* const dynamic = levin::kernels::cuda::dynamic_shared<float>();
  if (threadIdx.x != 0) return;
  tile[0] = 1.f, tile[255] = 2.f, dynamic[0] = 3.f, dynamic[dynamic_floats - 1] = 4.f;
  *out = tile[0] + tile[255] + dynamic[0] + dynamic[dynamic_floats - 1];
}

}  // namespace runtime_kernels

namespace levin::emulator {
namespace {

using namespace runtime_kernels;

cudaLaunchConfig_t shape(unsigned grid, unsigned block, cudaStream_t stream = nullptr, std::size_t shared = 0) {
  cudaLaunchConfig_t c{};
  c.gridDim = grid;
  c.blockDim = block;
  c.stream = stream;
  c.dynamicSmemBytes = shared;
  return c;
}

TEST_CASE("runtime kernels: arguments are copied at the launch, the kernel runs at a wait") {
  const FreshDevices fresh;
  const TestStream stream;
  const DeviceInts a(70, 0);
  auto c = shape(3, 32, stream);
  int value = 9;
  CHECK_OK(cudaLaunchKernelEx(&c, fill, a.data, 70, value));
  value = 10;
  CHECK_EQ(queued_work(), 1u);
  c = shape(1, 32, stream);
  CHECK_OK(cudaLaunchKernelEx(&c, add<int>, a.data, a.data, short{1}));  // converted to the kernel's parameter
  CHECK_OK(cudaStreamSynchronize(stream));
  std::vector<int> wanted(70, 9);
  std::fill(wanted.begin(), wanted.begin() + 32, 10);
  CHECK_EQ(a.read(), wanted);
}

TEST_CASE("runtime kernels: arguments of every alignment arrive, also at kernels with the same parameters") {
  const FreshDevices fresh;
  const TestStream stream;
  double* out = nullptr;
  CHECK_OK(cudaMalloc(reinterpret_cast<void**>(&out), 12 * sizeof(double)));
  Wide wide{};
  wide.values[0] = 3, wide.values[15] = 4;
  const auto c = shape(1, 1, stream);
  CHECK_OK(cudaLaunchKernelEx(&c, list, out, char{1}, 2.0, wide, short{5}, 6.f));
  CHECK_OK(cudaLaunchKernelEx(&c, list_backwards, out + 6, char{12}, 11.0, wide, short{8}, 7.f));
  std::vector<double> read(12);
  CHECK_OK(cudaMemcpyAsync(read.data(), out, 12 * sizeof(double), cudaMemcpyDeviceToHost, stream));
  CHECK_OK(cudaStreamSynchronize(stream));
  CHECK_EQ(read, std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 4, 3, 11, 12});
  CHECK_OK(cudaFree(out));
}

TEST_CASE("runtime kernels: launches beyond the device's limits are refused") {
  const FreshDevices fresh(2);
  const auto refuse = [](const cudaLaunchConfig_t& c) { return cudaLaunchKernelEx(&c, nothing); };
  CHECK_ERROR(refuse(shape(1, 1025)), cudaErrorInvalidConfiguration);
  CHECK(report_has("launch of kernel runtime_kernels::nothing: a block of (1025, 1, 1) threads"));
  CHECK_ERROR(refuse(shape(0, 32)), cudaErrorInvalidConfiguration);
  CHECK_ERROR(refuse(shape(1, 0)), cudaErrorInvalidConfiguration);
  auto c = shape(1, 32);
  c.gridDim.y = 65536;
  CHECK_ERROR(refuse(c), cudaErrorInvalidConfiguration);
  CHECK_ERROR(refuse(shape(1, 32, nullptr, 49153)), cudaErrorInvalidValue);
  CHECK(
      report_has("a block's arrays take 0 bytes and the launch gives 49153, together 49153 of at most 49152. "
                 "cudaFuncSetAttribute allows more."));
  CHECK_OK(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
  CHECK_OK(refuse(shape(1, 32, nullptr, 100000)));
  CHECK_ERROR(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024 + 1),
              cudaErrorInvalidValue);
  cudaFuncAttributes f{};
  CHECK_OK(cudaFuncGetAttributes(&f, nothing));
  CHECK_EQ(f.maxDynamicSharedSizeBytes, 100000);

  cudaLaunchAttribute a{};
  c = shape(6, 32);
  c.attrs = &a;
  c.numAttrs = 1;
  a.id = cudaLaunchAttributeClusterDimension;
  a.val.clusterDim = {4, 1, 1};
  CHECK_ERROR(refuse(c), cudaErrorInvalidConfiguration);
  a.val.clusterDim = {16, 1, 1};
  CHECK_ERROR(refuse(c), cudaErrorInvalidClusterSize);
  a.val.clusterDim = {2, 1, 1};
  CHECK_OK(refuse(c));
  int clusters = 0;
  CHECK_OK(cudaOccupancyMaxActiveClusters(&clusters, nothing, &c));
  CHECK_EQ(clusters, 64);
  a.id = cudaLaunchAttributeCooperative;
  a.val.cooperative = 1;
  c.gridDim = 129;
  CHECK_ERROR(refuse(c), cudaErrorCooperativeLaunchTooLarge);
  int blocks = 0;
  CHECK_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 256, 60000));
  CHECK_EQ(blocks, 3);

  const TestStream of_first;
  CHECK_OK(cudaSetDevice(1));
  CHECK_ERROR(refuse(shape(1, 32, of_first)), cudaErrorInvalidResourceHandle);
  CHECK_OK(cudaSetDevice(0));
  CHECK_OK(cudaDeviceSynchronize());
}

TEST_CASE("runtime kernels: arrays and dynamic shared memory share 48 KiB unless the kernel requests more") {
  const FreshDevices fresh;
  float* out = nullptr;
  CHECK_OK(cudaMalloc(&out, sizeof(float)));
  const auto launch = [&](int dynamic) {
    const auto c = shape(1, 32, nullptr, static_cast<std::size_t>(dynamic));
    const cudaError_t e = cudaLaunchKernelEx(&c, array_beside_dynamic, out, dynamic / 4);
    return e != cudaSuccess ? e : cudaDeviceSynchronize();
  };
  const auto ask = [](int bytes) {
    return cudaFuncSetAttribute(array_beside_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  };
  const std::string fault =
      "shared memory: a block's arrays take 1024 bytes and the launch gives 49152, together 50176 of at most 49152. "
      "cudaFuncSetAttribute allows more.";
  CHECK_ERROR(launch(48 * 1024), cudaErrorLaunchFailure);  // at the first launch the arrays become known as it runs
  CHECK(report_has("kernel runtime_kernels::array_beside_dynamic, block (0, 0, 0), thread (0, 0, 0), at "));
  CHECK(report_has(fault));
  clear_errors();
  CHECK_ERROR(launch(48 * 1024), cudaErrorInvalidValue);  // from then on the launch itself is refused
  CHECK(report_has("launch of kernel runtime_kernels::array_beside_dynamic: " + fault));
  CHECK_OK(launch(47 * 1024));
  cudaFuncAttributes f{};
  CHECK_OK(cudaFuncGetAttributes(&f, array_beside_dynamic));
  CHECK_EQ(f.sharedSizeBytes, 1024u);
  CHECK_EQ(f.maxDynamicSharedSizeBytes, 47 * 1024);

  CHECK_ERROR(ask(226 * 1024 + 1), cudaErrorInvalidValue);
  CHECK(
      report_has("asks for 231425 bytes of dynamic shared memory beside 1024 of its arrays; a block of compute "
                 "capability 9.0 has at most 232448"));
  CHECK_OK(ask(226 * 1024));
  CHECK_OK(launch(48 * 1024));
  CHECK_OK(launch(226 * 1024));
  CHECK_ERROR(launch(227 * 1024), cudaErrorInvalidValue);
  set_architecture(8, 0);
  CHECK_ERROR(launch(163 * 1024), cudaErrorInvalidValue);
  CHECK(report_has("together 167936 of at most 166912."));
  CHECK_OK(launch(162 * 1024));
  set_architecture(8, 6);
  CHECK_ERROR(ask(99 * 1024), cudaErrorInvalidValue);
  CHECK_OK(ask(98 * 1024));
  set_architecture(9, 0);
  CHECK_OK(cudaFree(out));
}

TEST_CASE("runtime kernels: LEVIN_EMULATOR_LAUNCHES lists the largest launch of each kernel") {
  if (std::getenv("LEVIN_EMULATOR_TEST_LAUNCHES")) {
    const FreshDevices fresh;
    float* out = nullptr;
    CHECK_OK(cudaMalloc(&out, sizeof(float)));
    for (const unsigned threads : {64u, 160u, 32u}) {
      const auto c = shape(1, threads, nullptr, 16 * threads);
      CHECK_OK(cudaLaunchKernelEx(&c, array_beside_dynamic, out, static_cast<int>(4 * threads)));
      CHECK_OK(cudaDeviceSynchronize());
    }
    CHECK_OK(cudaFree(out));
    return;
  }
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string file = std::filesystem::temp_directory_path() / ("levin_launches_" + std::to_string(getpid()));
  const std::string command = "LEVIN_EMULATOR_TEST_LAUNCHES=1 LEVIN_EMULATOR_LAUNCHES=" + file + " '" + program +
                              "' --minimal -tc='runtime kernels: LEVIN_EMULATOR_LAUNCHES*'";
  CHECK_EQ(std::system(command.c_str()), 0);
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  std::filesystem::remove(file);
  CHECK_EQ(text.str(), "_ZN15runtime_kernels20array_beside_dynamicEPfi\t160\t2560\t1024\n");
}

TEST_CASE("runtime kernels: a kernel that fails makes its device fail until it is reset") {
  const FreshDevices fresh(2);
  const DeviceInts a(32);
  auto c = shape(1, 32);
  CHECK_OK(cudaLaunchKernelEx(&c, diverge, a.data));
  CHECK_OK(cudaPeekAtLastError());
  CHECK_ERROR(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  CHECK(report_has("kernel runtime_kernels::diverge"));
  CHECK(report_has("divergent barrier"));
  CHECK_ERROR(cudaLaunchKernelEx(&c, nothing), cudaErrorLaunchFailure);
  void* p = nullptr;
  CHECK_ERROR(cudaMalloc(&p, 4), cudaErrorLaunchFailure);
  CHECK_ERROR(cudaGetLastError(), cudaErrorLaunchFailure);
  CHECK_ERROR(cudaGetLastError(), cudaErrorLaunchFailure);
  CHECK_OK(cudaSetDevice(1));
  CHECK_OK(cudaMalloc(&p, 4));
  CHECK_OK(cudaFree(p));
  CHECK_ERROR(cudaSetDevice(0), cudaErrorLaunchFailure);
  clear_errors();
  CHECK_EQ(last_report(), "");
  CHECK_OK(cudaGetLastError());
  CHECK_OK(cudaLaunchKernelEx(&c, fill, a.data, 32, 4));
  CHECK_EQ(a.read(), std::vector<int>(32, 4));
}

TEST_CASE("runtime kernels: work after a failed kernel does not run") {
  const FreshDevices fresh;
  const DeviceInts a(32, 0);
  const PinnedInts host(32, 5);
  auto c = shape(1, 32);
  CHECK_OK(cudaLaunchKernelEx(&c, diverge, a.data));
  CHECK_OK(cudaMemcpyAsync(host.data, a.data, 4, cudaMemcpyDeviceToHost));
  CHECK_ERROR(cudaStreamSynchronize(nullptr), cudaErrorLaunchFailure);
  CHECK_EQ(host.data[0], 5);
  CHECK_OK(cudaDeviceReset());
  CHECK_OK(cudaGetLastError());
}

TEST_CASE("runtime kernels: a captured kernel runs at each replay with the captured arguments") {
  const FreshDevices fresh;
  const TestStream stream;
  const DeviceInts a(4, 0);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  CHECK_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  auto c = shape(1, 4, stream);
  CHECK_OK(cudaLaunchKernelEx(&c, add<int>, a.data, a.data, 3));
  CHECK_OK(cudaStreamEndCapture(stream, &graph));
  CHECK_OK(cudaGraphInstantiate(&exec, graph));
  CHECK_OK(cudaGraphDestroy(graph));
  for (int i = 0; i < 5; ++i) CHECK_OK(cudaGraphLaunch(exec, stream));
  CHECK_OK(cudaGraphExecDestroy(exec));
  CHECK_OK(cudaStreamSynchronize(stream));
  CHECK_EQ(a.read(), std::vector<int>(4, 15));
}

#if !defined(__SANITIZE_ADDRESS__)  // it stops at the access itself

TEST_CASE("runtime kernels: a write outside of an allocation is reported after the kernel") {
  const FreshDevices fresh;
  const DeviceInts a(32, 0);
  auto c = shape(2, 32);
  CHECK_OK(cudaLaunchKernelEx(&c, fill, a.data, 33, 1));
  CHECK_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  CHECK(report_has("kernel runtime_kernels::fill wrote outside of an allocation of 128 bytes on device 0"));
  clear_errors();
  c = shape(1, 1);
  CHECK_OK(cudaLaunchKernelEx(&c, touch, a.data + 32 + 30, 1));  // further away, so detected when the memory is freed
  CHECK_OK(cudaDeviceSynchronize());
  const std::vector<std::string> damage = damaged_allocations();
  REQUIRE_EQ(damage.size(), 1u);
  CHECK_EQ(damage[0].find("something wrote outside of an allocation of 128 bytes"), 0u);
  CHECK_EQ(damaged_allocations().size(), 0u);
  CHECK_OK(cudaLaunchKernelEx(&c, touch, a.data - 30, 1));
  CHECK_OK(cudaDeviceSynchronize());
  CHECK_ERROR(cudaFree(a.data), cudaErrorIllegalAddress);
  CHECK(report_has("cudaFree: something wrote outside of"));
}

TEST_CASE("runtime kernels: an invalid address ends the kernel, not the program") {
  const FreshDevices fresh;
  auto c = shape(1, 1);
  for (int round = 0; round < 3; ++round) {
    CHECK_OK(cudaLaunchKernelEx(&c, touch, static_cast<int*>(nullptr), 1));
    CHECK_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    CHECK(report_has("kernel runtime_kernels::touch, block (0, 0, 0), thread (0, 0, 0): the kernel touched address "));
    clear_errors();
  }
}

TEST_CASE("runtime kernels: a peer's memory needs cudaDeviceEnablePeerAccess") {
  const FreshDevices fresh(2);
  const DeviceInts a(1, 0);
  CHECK_OK(cudaSetDevice(1));
  auto c = shape(1, 1);
  CHECK_OK(cudaLaunchKernelEx(&c, touch, a.data, 8));
  CHECK_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  CHECK(report_has("byte 0 of an allocation of 4 bytes on device 0"));
  CHECK(report_has("cudaDeviceEnablePeerAccess"));
  clear_errors();
  CHECK_OK(cudaDeviceEnablePeerAccess(0, 0));
  CHECK_OK(cudaLaunchKernelEx(&c, touch, a.data, 8));
  CHECK_OK(cudaDeviceSynchronize());
  CHECK_EQ(a.read()[0], 8);
  CHECK_OK(cudaSetDevice(0));
}

#endif

}  // namespace
}  // namespace levin::emulator
