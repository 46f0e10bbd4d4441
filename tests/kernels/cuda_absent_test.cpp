// levin::cuda in a build without CUDA.
#include <levin/core/config.h>

#if !LEVIN_HAS_CUDA
#include <levin/core/tensor.h>
#include <levin/kernels/cuda.h>

#include <doctest/doctest.h>

#include <functional>
#include <string>

using namespace levin;

TEST_CASE("a build without CUDA reports that, and the cpu works") {
  CHECK(!cuda::is_available());
  CHECK(cuda::device_count() == 0);
  CHECK(cuda::why_unavailable().starts_with("[cuda] this build has no CUDA. Use the cpu, or build with "));
  CHECK(!cuda::allow_tf32());
  CHECK(cuda::preferred_blas_library() == "levin");
  CHECK(cuda::preferred_conv_library() == "levin");
  cuda::empty_cache();
  const std::function<void()> calls[] = {
      [] { cuda::set_device(0); },
      [] { cuda::Stream stream; },
      [] { cuda::memory_allocated(); },
      [] { cuda::Graph graph; },
      [] { cuda::set_allow_tf32(true); },
      [] { cuda::set_preferred_blas_library("cublas"); },
      [] { cuda::set_preferred_conv_library("cudnn"); },
  };
  for (const auto& call : calls) {
    std::string text;
    try {
      call();
    } catch (const DeviceError& e) {
      text = e.what();
    }
    CHECK(text == cuda::why_unavailable());
  }
  CHECK_THROWS_AS(empty({2}, {.device = levin::cuda(0)}), DeviceError);
  CHECK(from_data(std::vector<float>{1, 2}, {2}).to_vector<float>() == std::vector<float>{1, 2});
}
#endif
