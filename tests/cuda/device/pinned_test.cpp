// Page-locked tensors and batches: the stream of their copies, and the lifetime of their memory.
#include "cuda/gate.h"

#include <doctest/doctest.h>

#include <levin/autograd/ops.h>
#include <levin/data/dataloader.h>
#include <levin/kernels/cuda.h>

#include <numeric>
#include <vector>

#include "data/src/loader/copy_stream.h"
#include "kernels/cuda/device/pinned_tensors.h"

using namespace levin;
using kernels::cuda::pinned_tensors;
using test::Gate;

namespace {

constexpr Device kCuda = levin::cuda(0);

cudaStream_t native(const cuda::Stream& s) { return static_cast<cudaStream_t>(s.handle()); }

Tensor counting(std::int64_t n, int from = 0) {
  std::vector<float> v(static_cast<std::size_t>(n));
  std::iota(v.begin(), v.end(), static_cast<float>(from));
  return from_data(v, {n});
}

}  // namespace

TEST_CASE("page-locked copies hold the same values") {
  const Tensor x = counting(6), pinned = cuda::pin_memory(x);
  CHECK_FALSE(cuda::is_pinned(x));
  CHECK(cuda::is_pinned(pinned));
  CHECK(cuda::pin_memory(pinned).is_same(pinned));
  CHECK(pinned.to_vector<int>() == x.to_vector<int>());
  const Tensor transposed = cuda::pin_memory(x.view({2, 3}).t());
  CHECK(transposed.sizes() == Shape{3, 2});
  CHECK(transposed.to_vector<int>() == std::vector<int>{0, 3, 1, 4, 2, 5});
  CHECK(cuda::pin_memory(empty({0, 2})).numel() == 0);
  CHECK(pinned.narrow(0, 2, 3).to(kCuda).cpu().to_vector<int>() == std::vector<int>{2, 3, 4});
  CHECK_THROWS_AS(cuda::pin_memory(x.to(kCuda)), DeviceError);
  CHECK_FALSE(cuda::is_pinned(x.to(kCuda)));
  CHECK_FALSE(cuda::is_pinned(Tensor()));
}

TEST_CASE("data/pin_memory_overlap" * LEVIN_HOLDS_A_STREAM) {
  const cuda::Stream compute = cuda::current_stream(0), copies = detail::copy_stream_of(0);
  const Tensor on_device = empty({1000}, {.device = kCuda});
  const Batch pinned{cuda::pin_memory(counting(1000)), cuda::pin_memory(counting(10, 5))};
  const Batch pageable{counting(1000)};
  cuda::synchronize();
  Batch moved;
  {
    Gate gate(native(compute));
    on_device.fill_(3);
    moved = pinned.to(kCuda);
    copies.synchronize();
    CHECK(copies.query());
    CHECK_FALSE(compute.query());  // the batch has arrived while the previous step is still running
    gate.open();
  }
  CHECK(cuda::current_stream(0).handle() == compute.handle());
  CHECK(moved[0].cpu().to_vector<int>() == pinned[0].to_vector<int>());
  CHECK(moved[1].cpu().to_vector<int>() == pinned[1].to_vector<int>());
  // Work queued after the copy waits for it.
  Batch again;
  {
    Gate gate(native(copies));
    again = pinned.to(kCuda);
    const Tensor sum = again[0] + again[0];
    CHECK_FALSE(compute.query());
    gate.open();
    CHECK(sum.cpu().to_vector<int>()[999] == 1998);
  }
  // A batch in pageable memory is copied on the usual stream.
  Gate gate(native(copies));
  CHECK(pageable.to(kCuda)[0].cpu().to_vector<int>() == pageable[0].to_vector<int>());
}

TEST_CASE("page-locked memory is kept until the device has read it, then reused" * LEVIN_HOLDS_A_STREAM) {
  cuda::synchronize();
  cuda::empty_cache();
  const auto before = pinned_tensors().stats();
  const cuda::Stream compute = cuda::current_stream(0);
  Tensor moved;
  const void* address = nullptr;
  {
    Gate gate(native(compute));
    empty({10}, {.device = kCuda}).fill_(1);
    {
      const Tensor pinned = cuda::pin_memory(counting(1000, 7));
      address = pinned.raw_data();
      moved = pinned.to(kCuda);
    }
    CHECK(pinned_tensors().stats().in_flight == before.in_flight + 1);
    const Tensor other = cuda::pin_memory(counting(1000, 9000));
    CHECK(other.raw_data() != address);
    gate.open();
  }
  CHECK(moved.cpu().to_vector<int>()[3] == 10);
  const auto grown = pinned_tensors().stats();
  const Tensor a = cuda::pin_memory(counting(1000)), b = cuda::pin_memory(counting(1000));
  CHECK(pinned_tensors().stats().system_allocations == grown.system_allocations);
  CHECK((a.raw_data() == address || b.raw_data() == address));
  CHECK(pinned_tensors().stats().in_use == before.in_use + 2);
  cuda::empty_cache();
  CHECK(pinned_tensors().stats().reserved == before.reserved + 2 * 4096);
}

TEST_CASE("a loader's batches are page-locked and equal for any number of workers") {
  std::vector<int> expected(20);
  std::iota(expected.begin(), expected.end(), 0);
  for (const int workers : {0, 2}) {
    data::DataLoader loader(data::TensorDataset({counting(20)}),
                            {.batch_size = 6, .num_workers = workers, .pin_memory = true});
    std::vector<int> seen;
    for (const Batch& batch : loader) {
      CHECK(cuda::is_pinned(batch[0]));
      const auto v = batch.to(kCuda)[0].cpu().to_vector<int>();
      seen.insert(seen.end(), v.begin(), v.end());
    }
    CHECK(seen == expected);
  }
}
