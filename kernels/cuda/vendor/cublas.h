#pragma once
// The few functions of cuBLAS that Levin calls, declared here so that no build needs the headers of cuBLAS and no
// program links it. A test compares names and numbers with cublas_api.h if the toolkit is installed. NVIDIA, cuBLAS
// library user guide, version 13.0.

#include <levin/core/device.h>

#include <cuda_runtime.h>

#include <cstddef>

namespace levin::kernels::cuda {

namespace cublas_api {

using Handle = void*;
enum Status : int { kSuccess = 0, kAllocationFailed = 3, kNotSupported = 15 };
enum Operation : int { kPlain = 0, kTransposed = 1 };
enum Type : int { kFloat32 = 0, kFloat64 = 1, kFloat16 = 2, kBFloat16 = 14 };
enum Compute : int { kCompute32 = 68, kCompute32Pedantic = 69, kCompute64 = 70, kCompute32Tf32 = 77 };
enum Math : int { kDefaultMath = 0, kNoReducedPrecisionSums = 16 };
inline constexpr int kDefaultAlgorithm = -1;

/// cuBLAS's functions by their names without the prefix. Matrices are column-major.
struct Functions {
  Status (*create)(Handle*);
  Status (*set_stream)(Handle, cudaStream_t);
  Status (*set_workspace)(Handle, void*, std::size_t);
  Status (*set_math_mode)(Handle, Math);
  const char* (*status_string)(Status);
  Status (*gemm)(Handle, Operation, Operation, int m, int n, int k, const void* alpha, const void* a, Type, int lda,
                 const void* b, Type, int ldb, const void* beta, void* c, Type, int ldc, Compute, int algorithm);
  Status (*gemm_batched)(Handle, Operation, Operation, int m, int n, int k, const void* alpha, const void* a, Type,
                         int lda, long long stride_a, const void* b, Type, int ldb, long long stride_b,
                         const void* beta, void* c, Type, int ldc, long long stride_c, int batch, Compute,
                         int algorithm);
};

}  // namespace cublas_api

/// Opens cuBLAS at the first call; throws DeviceError in one sentence if it cannot be used, and tries again at the next
/// call.
const cublas_api::Functions& cublas();

/// Throws OutOfMemory if memory is the reason, else DeviceError, with the name of the call and cuBLAS's message.
void check_failed(cublas_api::Status status, const char* call);

inline void check(cublas_api::Status status, const char* call) {
  if (status != cublas_api::kSuccess) check_failed(status, call);
}

}  // namespace levin::kernels::cuda
