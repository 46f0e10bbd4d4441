#pragma once
// The functions of NCCL that Levin calls, declared here so that no build needs the header of NCCL and no program links
// it. A test compares names and numbers with nccl.h. NVIDIA, NCCL developer guide, version 2.28.

#include <cuda_runtime.h>

#include <cstddef>

namespace levin::kernels::cuda {

namespace nccl_api {

using Comm = struct ncclComm*;
struct UniqueId {
  char bytes[128];
};
enum Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};
enum Type : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBFloat16 = 9,
};
enum Operation : int { kSum = 0, kProduct = 1, kMaximum = 2, kMinimum = 3, kAverage = 4 };
inline constexpr int kNoColor = -1;

/// NCCL's configuration as of version 2.18; newer versions accept it by its size and version.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef, version = 21801;
  int blocking = kUnset, cluster_size = kUnset, min_blocks = kUnset, max_blocks = kUnset;
  const char* net_name = nullptr;
  int split_share = kUnset;
  static constexpr int kUnset = -2147483647 - 1;
};

/// NCCL's functions by their names without the prefix. Counts are in elements; buffers lie on the communicator's
/// device. A null configuration means the default.
struct Functions {
  Result (*get_version)(int*);
  Result (*get_unique_id)(UniqueId*);
  Result (*init_rank)(Comm*, int ranks, UniqueId, int rank);
  Result (*init_rank_config)(Comm*, int ranks, UniqueId, int rank, void* config);
  Result (*init_all)(Comm*, int devices, const int* list);
  Result (*split)(Comm, int color, int key, Comm*, void* config);
  Result (*finalize)(Comm);
  Result (*destroy)(Comm);
  Result (*abort)(Comm);
  Result (*async_error)(Comm, Result*);
  Result (*count)(Comm, int*);
  Result (*device)(Comm, int*);
  Result (*rank)(Comm, int*);
  const char* (*error_string)(Result);
  const char* (*last_error)(Comm);
  Result (*all_reduce)(const void*, void*, std::size_t count, Type, Operation, Comm, cudaStream_t);
  Result (*reduce)(const void*, void*, std::size_t count, Type, Operation, int root, Comm, cudaStream_t);
  Result (*broadcast)(const void*, void*, std::size_t count, Type, int root, Comm, cudaStream_t);
  Result (*all_gather)(const void*, void*, std::size_t count, Type, Comm, cudaStream_t);
  Result (*reduce_scatter)(const void*, void*, std::size_t count, Type, Operation, Comm, cudaStream_t);
  Result (*send)(const void*, std::size_t count, Type, int peer, Comm, cudaStream_t);
  Result (*recv)(void*, std::size_t count, Type, int peer, Comm, cudaStream_t);
  Result (*group_start)();
  Result (*group_end)();
};

}  // namespace nccl_api

/// Opens NCCL at the first call; throws DeviceError in one sentence if it cannot be used, and tries again at the next
/// call. If kernels run in the emulator, its NCCL is used, unless LEVIN_NCCL_LIBRARY names another.
const nccl_api::Functions& nccl();

/// Throws DeviceError with the name of the call and NCCL's message, that of the communicator if it has failed.
void check_failed(nccl_api::Result result, const char* call, nccl_api::Comm comm = nullptr);

inline void check(nccl_api::Result result, const char* call, nccl_api::Comm comm = nullptr) {
  if (result != nccl_api::kSuccess) check_failed(result, call, comm);
}

}  // namespace levin::kernels::cuda
