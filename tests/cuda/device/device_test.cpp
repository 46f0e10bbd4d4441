#include <doctest/doctest.h>

#include <levin/core/tensor.h>
#include <levin/kernels/cuda.h>

#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "cuda/run_again.h"
#include "kernels/cuda/base/error.h"
#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/device/allocator.h"
#include "kernels/cuda/device/backend.h"
#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/device/pinned.h"

#if __has_include(<levin/emulator/devices.h>)
#include "kernels/cuda/base/launch.h"

#include <levin/emulator/devices.h>
#define LEVIN_TEST_EMULATED 1
#else
#define LEVIN_TEST_EMULATED 0
#endif

using namespace levin;
using namespace levin::test;
using kernels::cuda::copy_bytes;

namespace {

// Two emulated devices, so that multi-device code is tested too. Read at the first use of a device.
[[maybe_unused]] const int two_devices = setenv("LEVIN_EMULATED_DEVICES", "2", 0);

std::vector<std::uint8_t> numbers(std::size_t n) {
  std::vector<std::uint8_t> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
  return v;
}

struct Memory {  // memory on one device
  Memory(std::size_t n, int index)
      : stream(current_stream(levin::cuda(index))), scratch(stream, static_cast<int64_t>(n)) {}
  std::vector<std::uint8_t> read() {
    std::vector<std::uint8_t> host(scratch.bytes());
    copy_bytes(host.data(), kCpu, scratch.get(), stream.device(), host.size(), stream);
    return host;
  }
  void write(const std::vector<std::uint8_t>& host) {
    copy_bytes(scratch.get(), stream.device(), host.data(), kCpu, host.size(), stream);
  }
  Stream stream;
  kernels::cuda::Scratch<std::uint8_t> scratch;
};

}  // namespace

TEST_CASE("cuda is available and registered with core") {
  CHECK(cuda::is_available());
  CHECK(cuda::device_count() >= 1);
  CHECK(cuda::why_unavailable().empty());
  DeviceBackend& backend = device_backend(DeviceType::cuda);
  CHECK(&backend == kernels::cuda::backend());
  CHECK(backend.name() == "cuda");
  CHECK(backend.device_count() == cuda::device_count());
  CHECK(backend.properties(0).find("multiprocessors") != std::string::npos);
  const Tensor t = empty({3, 4}, {.device = levin::cuda(0)});
  CHECK(t.device() == levin::cuda(0));
}

TEST_CASE("the device has an architecture that kernels are compiled for") {
  const cuda::DeviceProperties p = cuda::get_device_properties(0);
  CHECK(!p.name.empty());
  CHECK(p.major >= 8);
  CHECK(p.warp_size == 32);
  CHECK(p.multi_processor_count > 0);
  CHECK(p.shared_memory_per_block_optin >= p.shared_memory_per_block);
  CHECK(p.total_memory > (std::size_t{64} << 20));
}

TEST_CASE("each reason for a missing device has its own message") {
  using kernels::cuda::detail::absence_sentence;
  using kernels::cuda::detail::too_old_sentence;
  CHECK(absence_sentence(cudaErrorInsufficientDriver, 0, 13000) ==
        "[cuda] this machine has no NVIDIA driver. Install it, or use the cpu.");
  CHECK(absence_sentence(cudaErrorInsufficientDriver, 12040, 13000) ==
        "[cuda] the NVIDIA driver is for CUDA 12.4, but this build needs 13.0. Update it, or use the cpu.");
  CHECK(absence_sentence(cudaErrorNoDevice, 13000, 13000).starts_with("[cuda] the NVIDIA driver sees no device"));
  CHECK(absence_sentence(cudaErrorUnknown, 13000, 13000).find("cudaErrorUnknown") != std::string::npos);
  CHECK(too_old_sentence(1, "Tesla T4", 7, 5) ==
        "[cuda] cuda:1 (Tesla T4) is too old: it has architecture sm_75, and sm_80 or newer is needed. Use another "
        "device, or the cpu.");
}

#if LEVIN_TEST_EMULATED
namespace {

void check_unusable(const std::string& sentence) {
  CHECK(!cuda::is_available());
  CHECK(cuda::device_count() == 0);
  CHECK(cuda::why_unavailable() == sentence);
  CHECK(message_of([] { cuda::current_device(); }) == sentence);
  CHECK(message_of([] { cuda::Stream stream; }) == sentence);
  CHECK(message_of([] { device_backend(DeviceType::cuda).current_stream(0); }) == sentence);
  CHECK_THROWS_AS(empty({2}, {.device = levin::cuda(0)}), DeviceError);
  cuda::empty_cache();
  CHECK(from_data(std::vector<float>{1, 2}, {2}).to_vector<float>() == std::vector<float>{1, 2});
}

}  // namespace

TEST_CASE("on a machine without a device the cpu works") {
  if (!is_set("LEVIN_EMULATED_DEVICES", "0")) {
    CHECK(run_again_with("LEVIN_EMULATED_DEVICES", "0", "on a machine without a device the cpu works") == 0);
    return;
  }
  unsetenv("CUDA_VISIBLE_DEVICES");
  check_unusable("[cuda] the NVIDIA driver sees no device. Use the cpu.");
}

TEST_CASE("on a machine whose devices are too old the cpu works") {
  if (!is_set("LEVIN_EMULATED_ARCHITECTURE", "7.5")) {
    CHECK(run_again_with("LEVIN_EMULATED_ARCHITECTURE", "7.5",
                         "on a machine whose devices are too old the cpu works") == 0);
    return;
  }
  const std::string why = cuda::why_unavailable();
  CHECK(why.find("is too old: it has architecture sm_75, and sm_80 or newer is needed.") != std::string::npos);
  check_unusable(why);
}

namespace {
__global__ void broken() { emulator::fail("a kernel that breaks", emulator::Site::current()); }
__global__ void write_one(float* p) { *p = 1; }
}  // namespace

TEST_CASE("after a kernel fails the cpu still works, and freeing is safe") {
  auto memory = std::make_unique<Memory>(1000, 0);
  Stream& stream = memory->stream;
  kernels::cuda::launch(broken, {.grid = 1, .block = 32, .stream = stream});
  const std::string text = message_of([] { cuda::synchronize(0); });
  CHECK(text.find("a kernel that breaks") != std::string::npos);
  CHECK(text.find("must restart to use cuda again, but can go on with the cpu.") != std::string::npos);
  memory.reset();
  CHECK(from_data(std::vector<float>{1, 2}, {2}).to_vector<float>() == std::vector<float>{1, 2});
  emulator::clear_errors();
  cuda::synchronize(0);
}

#if !defined(__SANITIZE_ADDRESS__)  // the address sanitizer ends the program at such an access
TEST_CASE("after an illegal access every call reports it, and the cpu still works") {
  auto memory = std::make_unique<Memory>(1000, 0);
  memory->read();  // replaces the test framework's fault handler by the emulator's
  kernels::cuda::launch(write_one, {.grid = 1, .block = 32, .stream = memory->stream},
                        reinterpret_cast<float*>(std::uintptr_t{4096}));
  for (int i = 0; i < 2; ++i) {
    const std::string text = message_of([&] { memory->read(); });
    CHECK(text.starts_with("[cuda] "));
    CHECK(text.find("cudaErrorIllegalAddress") != std::string::npos);
    CHECK(text.ends_with("The process must restart to use cuda again, but can go on with the cpu."));
  }
  CHECK_THROWS_AS(from_data(std::vector<float>{1, 2}, {2}, {.device = levin::cuda(0)}), DeviceError);
  memory.reset();
  CHECK(from_data(std::vector<float>{1, 2}, {2}).to_vector<float>() == std::vector<float>{1, 2});
  emulator::clear_errors();
  cuda::synchronize(0);
}
#endif
#endif

TEST_CASE("a device that does not exist is refused") {
  const int beyond = cuda::device_count();
  CHECK_THROWS_AS(empty({2}, {.device = levin::cuda(beyond)}), DeviceError);
  CHECK(message_of([&] { cuda::set_device(beyond); }).find("does not exist: this machine has") != std::string::npos);
  CHECK_THROWS_AS(cuda::get_device_properties(-2), DeviceError);
  CHECK_THROWS_AS(cuda::memory_allocated(beyond), DeviceError);
  CHECK(empty({2}).defined());
}

TEST_CASE("errors name the call and CUDA's error, and give a remedy") {
  using kernels::cuda::check_failed;
  CHECK_THROWS_AS(check_failed(cudaErrorMemoryAllocation, "cudaMalloc"), OutOfMemory);
  const std::string grid = message_of([] { check_failed(cudaErrorInvalidConfiguration, "launch"); });
  CHECK(grid.starts_with("[cuda] launch failed with cudaErrorInvalidConfiguration: "));
  CHECK(grid.ends_with("more than this device allows."));
  const std::string address = message_of([] { check_failed(cudaErrorIllegalAddress, "cudaStreamSynchronize"); });
  CHECK(address.find("must restart to use cuda again, but can go on with the cpu.") != std::string::npos);
  CHECK_THROWS_AS(check_failed(cudaErrorNoDevice, "cudaSetDevice"), DeviceError);
}

TEST_CASE("device guards nest, and each thread has its own current device") {
  CHECK(cuda::current_device() == 0);
  if (cuda::device_count() < 2) return;
  {
    const cuda::DeviceGuard outer(1);
    CHECK(cuda::current_device() == 1);
    {
      const cuda::DeviceGuard inner(0);
      CHECK(cuda::current_device() == 0);
      const cuda::DeviceGuard same(cuda::kCurrent);
      CHECK(cuda::current_device() == 0);
    }
    CHECK(cuda::current_device() == 1);
    std::thread([] { CHECK(cuda::current_device() == 0); }).join();
    CHECK_THROWS_AS(cuda::DeviceGuard(100), DeviceError);
    CHECK(cuda::current_device() == 1);
  }
  CHECK(cuda::current_device() == 0);
  const Tensor t = empty({8}, {.device = levin::cuda(1)});
  CHECK(cuda::current_device() == 0);
  CHECK(t.device() == levin::cuda(1));
}

TEST_CASE("copies between host and device come back unchanged") {
  for (const std::size_t n : {std::size_t{1}, std::size_t{511}, std::size_t{4097}, (std::size_t{9} << 20) + 3}) {
    CAPTURE(n);
    Memory memory(n, 0);
    std::vector<std::uint8_t> source = numbers(n);
    const std::vector<std::uint8_t> wanted = source;
    memory.write(source);
    std::fill(source.begin(), source.end(), std::uint8_t{0});  // the copy has already read it
    CHECK(memory.read() == wanted);
  }
}

TEST_CASE("copies and fills on a device run in the stream's order") {
  const auto source = numbers(100000);
  Memory a(source.size(), 0), b(source.size(), 0);
  a.write(source);
  copy_bytes(b.scratch.get(), levin::cuda(0), a.scratch.get(), levin::cuda(0), source.size(), a.stream);
  device_backend(DeviceType::cuda).fill_bytes(a.scratch.get(), 5, source.size(), a.stream);
  CHECK(b.read() == source);
  CHECK(a.read() == std::vector<std::uint8_t>(source.size(), 5));
  copy_bytes(nullptr, levin::cuda(0), nullptr, kCpu, 0, a.stream);  // a copy of no bytes does nothing
}

TEST_CASE("copies between devices wait for both sides") {
  if (cuda::device_count() < 2) return;
  const auto source = numbers(300000);
  Memory here(source.size(), 0), there(source.size(), 1), back(source.size(), 0);
  here.write(source);
  device_backend(DeviceType::cuda).fill_bytes(there.scratch.get(), 9, source.size(), there.stream);
  copy_bytes(there.scratch.get(), levin::cuda(1), here.scratch.get(), levin::cuda(0), source.size(), there.stream);
  device_backend(DeviceType::cuda).fill_bytes(here.scratch.get(), 1, source.size(), here.stream);
  cuda::current_stream(0).synchronize();  // the copy has run, so the earlier fill on the other device must have run too
  CHECK(there.read() == source);
  copy_bytes(back.scratch.get(), levin::cuda(0), there.scratch.get(), levin::cuda(1), source.size(), back.stream);
  CHECK(back.read() == source);
}

#if LEVIN_TEST_EMULATED
TEST_CASE("the first copy between two devices enables peer access from the source") {
  if (!is_set("LEVIN_EMULATED_DEVICES", "3")) {  // in a new process, as other tests have enabled access here
    CHECK(run_again_with("LEVIN_EMULATED_DEVICES", "3",
                         "the first copy between two devices enables peer access from the source") == 0);
    return;
  }
  Memory here(100, 0), there(100, 1);
  for (int i = 0; i < 2; ++i) {
    copy_bytes(there.scratch.get(), levin::cuda(1), here.scratch.get(), levin::cuda(0), 100, there.stream);
    CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
    static_cast<void>(cudaGetLastError());
  }
  cudaSetDevice(1);
  CHECK(cudaDeviceEnablePeerAccess(0, 0) == cudaSuccess);  // the reverse direction was not enabled
  cudaSetDevice(0);
}
#endif

TEST_CASE("a tensor's values reach the device and come back") {
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), -3.5f);
  for (int i = 0; i < cuda::device_count(); ++i) {
    const Tensor t = from_data(std::span<const float>(values), {10, 100}, {.device = levin::cuda(i)});
    CHECK(t.to_vector<float>() == values);
  }
}

TEST_CASE("page-locked buffers are reused") {
  kernels::cuda::PinnedPool pool;
  cudaStream_t stream = static_cast<cudaStream_t>(current_stream(levin::cuda(0)).handle());
  auto first = pool.take(5000);
  CHECK(first.bytes == 8192);
  const auto second = pool.take(5000);
  CHECK(first.p != second.p);
  CHECK(pool.stats().system_allocations == 2);
  pool.put_back(first, 0, stream);
  pool.put_back(second, 0, stream);
  cuda::synchronize(0);
  first = pool.take(8000);
  CHECK(pool.stats().system_allocations == 2);
  CHECK(pool.stats().in_flight == 0);
  CHECK(pool.take(1).bytes == 4096);
  CHECK(pool.stats().reserved == 2 * 8192 + 4096);
  pool.put_back(first, 0, stream);
  pool.empty();
  CHECK(pool.stats().in_flight == 0);
  CHECK(pool.stats().reserved == 4096);  // one is still in use
}

TEST_CASE("scratch memory of no elements allocates nothing") {
  Stream stream = current_stream(levin::cuda(0));
  const std::size_t before = cuda::memory_stats(0).live_blocks;
  kernels::cuda::Scratch<float> none(stream, 0), some(stream, 3);
  CHECK(none.get() == nullptr);
  CHECK(some.get() != nullptr);
  CHECK(cuda::memory_stats(0).live_blocks == before + 1);
  const kernels::cuda::Scratch<float> moved(std::move(some));
  CHECK(moved.get() != nullptr);
  CHECK(cuda::memory_stats(0).live_blocks == before + 1);
}
