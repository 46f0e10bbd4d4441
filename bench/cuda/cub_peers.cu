// CUB's device-wide algorithms on the problems' own buffers. Their temporary storage is allocated once, outside of the
// timed call.

#include "bench/cuda/problem.h"
#include "kernels/cuda/base/error.h"

#include <levin/autograd/ops.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

namespace levin::bench {

namespace {

cudaStream_t stream_of(const Stream& stream) { return static_cast<cudaStream_t>(stream.handle()); }

/// Makes a peer from call(scratch, bytes, stream), which CUB first calls to query the size of its temporary storage.
template <class Call>
Peer cub_peer(Call call) {
  std::size_t bytes = 0;
  kernels::cuda::check(call(nullptr, bytes, nullptr), "CUB");
  const Tensor scratch = empty({static_cast<int64_t>(bytes) + 1}, {.dtype = kUInt8, .device = cuda(0)});
  return {.name = "cub", .run = [call, scratch, bytes](Stream& stream) {
            std::size_t given = bytes;
            kernels::cuda::check(call(scratch.raw_data(), given, stream_of(stream)), "CUB");
          }};
}

template <class T>
T* data(const Tensor& t) {
  return static_cast<T*>(t.raw_data());
}

}  // namespace

Peer cub_sum_peer(const Tensor& out, const Tensor& x) {
  return cub_peer([out, x](void* scratch, std::size_t& bytes, cudaStream_t stream) {
    return cub::DeviceReduce::Sum(scratch, bytes, data<float>(x), data<float>(out), x.numel(), stream);
  });
}

Peer cub_scan_peer(const Tensor& out, const Tensor& x) {
  return cub_peer([out, x](void* scratch, std::size_t& bytes, cudaStream_t stream) {
    return cub::DeviceScan::InclusiveSum(scratch, bytes, data<float>(x), data<float>(out), x.numel(), stream);
  });
}

Peer cub_sort_peer(const Tensor& values, const Tensor& indices, const Tensor& x) {
  const Tensor places = arange(x.numel(), {.dtype = kInt64, .device = cuda(0)});
  return cub_peer([=](void* scratch, std::size_t& bytes, cudaStream_t stream) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, data<float>(x), data<float>(values), data<int64_t>(places),
                                           data<int64_t>(indices), x.numel(), 0, 32, stream);
  });
}

}  // namespace levin::bench
