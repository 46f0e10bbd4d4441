// Launches: requests for dynamic shared memory.

#if __has_include(<levin/emulator/devices.h>)
#include "kernels/cuda/base/launch.h"

#include "cuda/run_again.h"

#include <levin/autograd/ops.h>
#include <levin/core/tensor.h>
#include <levin/emulator/devices.h>
#include <levin/kernels/cuda.h>

#include <doctest/doctest.h>

#include <thread>
#include <vector>

using namespace levin;

// Not in an anonymous namespace, because reports name kernels by their symbols.
namespace launch_test {

/// A kernel with an array of 4 KiB and dynamic shared memory. Each number is a separate kernel.
template <int number>
__global__ void array_and_dynamic(float* out) {
  LEVIN_SHARED(float, tile, 1024);
  float* const dynamic = kernels::cuda::dynamic_shared<float>();
  const int thread = static_cast<int>(threadIdx.x);
  tile[thread] = 1.f, dynamic[thread] = 2.f;
  __syncthreads();
  out[thread] = tile[31 - thread] + dynamic[31 - thread];
}

template <int number>
void run(const Tensor& out, std::size_t shared) {
  const Stream stream = current_stream(out.device());
  kernels::cuda::launch(array_and_dynamic<number>, {.block = 32, .shared = shared, .stream = stream},
                        static_cast<float*>(out.raw_data()));
}

}  // namespace launch_test

TEST_CASE("launch: a kernel with arrays gets 48 KiB of dynamic shared memory; more than the device has is refused") {
  const Tensor out = zeros({32}, {.device = cuda(0)});
  for (const std::size_t shared : {31u * 1024, 32u * 1024, 45u * 1024, 48u * 1024, 200u * 1024}) {
    out.zero_();
    launch_test::run<0>(out, shared);
    CHECK_MESSAGE(out.sum().item<float>() == 96, shared);
  }
  const std::string refused = test::message_of([&] { launch_test::run<0>(out, 224 * 1024); });
  CAPTURE(refused);
  CHECK(refused.find("a block's arrays take 4096 bytes and the launch gives 229376, together 233472 of at most "
                     "232448.") != std::string::npos);
  CHECK(out.sum().item<float>() == 96);
}

TEST_CASE("launch: more shared memory is requested once per kernel and device, whichever thread launches first") {
  const std::size_t before = emulator::shared_requests();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      const Tensor out = zeros({32}, {.device = cuda(0)});
      for (int round = 0; round < 5; ++round) launch_test::run<1>(out, 40 * 1024);
      CHECK(out.sum().item<float>() == 96);
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(emulator::shared_requests() - before == 1);
}
#endif
