// Checks at compile time that Levin's own declarations of cuBLAS, cuDNN, cuFFT and NCCL match the toolkit's headers, if
// present. In the emulator's builds NCCL's header is the emulator's.
#include "kernels/cuda/vendor/cublas.h"
#include "kernels/cuda/vendor/cudnn.h"
#include "kernels/cuda/vendor/cufft.h"
#include "kernels/cuda/vendor/nccl.h"

#include <cstddef>
#include <type_traits>

#if !__has_include(<levin/emulator/devices.h>)  // the emulator's types have the toolkit's names
#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#endif
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif
#if __has_include(<cufft.h>)
#include <cufft.h>
#endif
#endif
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

namespace {

/// True if values of both types are passed alike: pointers, floats, and integers of equal size.
template <class A, class B>
constexpr bool passed_alike =
    sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>&& std::is_floating_point_v<A> ==
                                  std::is_floating_point_v<B>;

template <class Ours, class Theirs>
constexpr bool called_alike = false;
template <class A, class... P, class B, class... Q>
constexpr bool called_alike<A (*)(P...), B (*)(Q...)> = [] {
  if constexpr (sizeof...(P) != sizeof...(Q)) {
    return false;
  } else {
    return passed_alike<A, B> && (passed_alike<P, Q> && ...);
  }
}();

static_assert(called_alike<int (*)(void*, double), int (*)(const char*, double)>);
static_assert(!called_alike<int (*)(void*, double), int (*)(const char*, long)>);
static_assert(!called_alike<int (*)(void*), int (*)(void*, int)>);

}  // namespace

#define LEVIN_SAME_CALL(ours, theirs) static_assert(called_alike<decltype(Functions::ours), decltype(&theirs)>)
#define LEVIN_SAME_PASS(choice, size, call)                                     \
  static_assert(called_alike<decltype(Pass::algorithms), decltype(&choice)>);   \
  static_assert(called_alike<decltype(Pass::workspace_size), decltype(&size)>); \
  static_assert(called_alike<decltype(Pass::run), decltype(&call)>)

#if defined(CUBLAS_V2_H_)
namespace levin::kernels::cuda::cublas_api {
static_assert(kSuccess == int{CUBLAS_STATUS_SUCCESS} && kAllocationFailed == int{CUBLAS_STATUS_ALLOC_FAILED} &&
              kNotSupported == int{CUBLAS_STATUS_NOT_SUPPORTED});
static_assert(kPlain == int{CUBLAS_OP_N} && kTransposed == int{CUBLAS_OP_T});
static_assert(kFloat32 == int{CUDA_R_32F} && kFloat64 == int{CUDA_R_64F} && kFloat16 == int{CUDA_R_16F} &&
              kBFloat16 == int{CUDA_R_16BF});
static_assert(kCompute32 == int{CUBLAS_COMPUTE_32F} && kCompute32Pedantic == int{CUBLAS_COMPUTE_32F_PEDANTIC} &&
              kCompute64 == int{CUBLAS_COMPUTE_64F} && kCompute32Tf32 == int{CUBLAS_COMPUTE_32F_FAST_TF32});
static_assert(kDefaultMath == int{CUBLAS_DEFAULT_MATH} &&
              kNoReducedPrecisionSums == int{CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION});
static_assert(kDefaultAlgorithm == int{CUBLAS_GEMM_DEFAULT});
LEVIN_SAME_CALL(create, cublasCreate_v2);
LEVIN_SAME_CALL(set_stream, cublasSetStream_v2);
LEVIN_SAME_CALL(set_workspace, cublasSetWorkspace_v2);
LEVIN_SAME_CALL(set_math_mode, cublasSetMathMode);
LEVIN_SAME_CALL(status_string, cublasGetStatusString);
// C++ code sees overloads of these two; the library exports the C functions.
using Gemm = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                                const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                                cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
using GemmBatched = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                                       const void*, cudaDataType, int, long long, const void*, cudaDataType, int,
                                       long long, const void*, void*, cudaDataType, int, long long, int,
                                       cublasComputeType_t, cublasGemmAlgo_t);
static_assert(called_alike<decltype(Functions::gemm), decltype(static_cast<Gemm>(&cublasGemmEx))>);
static_assert(
    called_alike<decltype(Functions::gemm_batched), decltype(static_cast<GemmBatched>(&cublasGemmStridedBatchedEx))>);
}  // namespace levin::kernels::cuda::cublas_api
#endif

#if defined(CUDNN_H_)
namespace levin::kernels::cuda::cudnn_api {
static_assert(kSuccess == int{CUDNN_STATUS_SUCCESS} && kNotSupported == int{CUDNN_STATUS_NOT_SUPPORTED} &&
              kInternalError == int{CUDNN_STATUS_INTERNAL_ERROR});
static_assert(kFloat32 == int{CUDNN_DATA_FLOAT} && kFloat64 == int{CUDNN_DATA_DOUBLE} &&
              kFloat16 == int{CUDNN_DATA_HALF} && kBFloat16 == int{CUDNN_DATA_BFLOAT16});
static_assert(kNchw == int{CUDNN_TENSOR_NCHW} && kCrossCorrelation == int{CUDNN_CROSS_CORRELATION});
static_assert(kDefaultMath == int{CUDNN_DEFAULT_MATH} && kTensorOpMath == int{CUDNN_TENSOR_OP_MATH} &&
              kFmaMath == int{CUDNN_FMA_MATH} && kDeterministic == int{CUDNN_DETERMINISTIC});
LEVIN_SAME_CALL(version, cudnnGetVersion);
LEVIN_SAME_CALL(error_string, cudnnGetErrorString);
LEVIN_SAME_CALL(create, cudnnCreate);
LEVIN_SAME_CALL(set_stream, cudnnSetStream);
LEVIN_SAME_CALL(create_tensor, cudnnCreateTensorDescriptor);
LEVIN_SAME_CALL(set_tensor, cudnnSetTensor4dDescriptor);
LEVIN_SAME_CALL(destroy_tensor, cudnnDestroyTensorDescriptor);
LEVIN_SAME_CALL(create_filter, cudnnCreateFilterDescriptor);
LEVIN_SAME_CALL(set_filter, cudnnSetFilter4dDescriptor);
LEVIN_SAME_CALL(destroy_filter, cudnnDestroyFilterDescriptor);
LEVIN_SAME_CALL(create_convolution, cudnnCreateConvolutionDescriptor);
LEVIN_SAME_CALL(set_convolution, cudnnSetConvolution2dDescriptor);
LEVIN_SAME_CALL(set_groups, cudnnSetConvolutionGroupCount);
LEVIN_SAME_CALL(set_math, cudnnSetConvolutionMathType);
LEVIN_SAME_CALL(destroy_convolution, cudnnDestroyConvolutionDescriptor);
LEVIN_SAME_PASS(cudnnGetConvolutionForwardAlgorithm_v7, cudnnGetConvolutionForwardWorkspaceSize,
                cudnnConvolutionForward);
LEVIN_SAME_PASS(cudnnGetConvolutionBackwardDataAlgorithm_v7, cudnnGetConvolutionBackwardDataWorkspaceSize,
                cudnnConvolutionBackwardData);
LEVIN_SAME_PASS(cudnnGetConvolutionBackwardFilterAlgorithm_v7, cudnnGetConvolutionBackwardFilterWorkspaceSize,
                cudnnConvolutionBackwardFilter);
template <class Theirs>
constexpr bool laid_out_alike = sizeof(Algorithm) == sizeof(Theirs) &&
                                offsetof(Algorithm, status) == offsetof(Theirs, status) &&
                                offsetof(Algorithm, memory) == offsetof(Theirs, memory) &&
                                offsetof(Algorithm, determinism) == offsetof(Theirs, determinism) &&
                                offsetof(Algorithm, math) == offsetof(Theirs, mathType);
static_assert(laid_out_alike<cudnnConvolutionFwdAlgoPerf_t> && laid_out_alike<cudnnConvolutionBwdDataAlgoPerf_t> &&
              laid_out_alike<cudnnConvolutionBwdFilterAlgoPerf_t>);
}  // namespace levin::kernels::cuda::cudnn_api
#endif

#if defined(_CUFFT_H_)
namespace levin::kernels::cuda::cufft_api {
static_assert(kR2C == int{CUFFT_R2C} && kC2R == int{CUFFT_C2R} && kC2C == int{CUFFT_C2C} && kD2Z == int{CUFFT_D2Z} &&
              kZ2D == int{CUFFT_Z2D} && kZ2Z == int{CUFFT_Z2Z});
static_assert(kForward == CUFFT_FORWARD && kInverse == CUFFT_INVERSE && kSuccess == int{CUFFT_SUCCESS});
LEVIN_SAME_CALL(create, cufftCreate);
LEVIN_SAME_CALL(destroy, cufftDestroy);
LEVIN_SAME_CALL(set_auto_allocation, cufftSetAutoAllocation);
LEVIN_SAME_CALL(make_plan, cufftMakePlanMany64);
LEVIN_SAME_CALL(set_stream, cufftSetStream);
LEVIN_SAME_CALL(set_work_area, cufftSetWorkArea);
LEVIN_SAME_CALL(c2c, cufftExecC2C);
LEVIN_SAME_CALL(z2z, cufftExecZ2Z);
LEVIN_SAME_CALL(r2c, cufftExecR2C);
LEVIN_SAME_CALL(d2z, cufftExecD2Z);
LEVIN_SAME_CALL(c2r, cufftExecC2R);
LEVIN_SAME_CALL(z2d, cufftExecZ2D);
}  // namespace levin::kernels::cuda::cufft_api
#endif

#if defined(NCCL_VERSION_CODE)
namespace levin::kernels::cuda::nccl_api {
static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId));
static_assert(kSuccess == int{ncclSuccess} && kUnhandledCudaError == int{ncclUnhandledCudaError} &&
              kSystemError == int{ncclSystemError} && kInternalError == int{ncclInternalError} &&
              kInvalidArgument == int{ncclInvalidArgument} && kInvalidUsage == int{ncclInvalidUsage} &&
              kRemoteError == int{ncclRemoteError} && kInProgress == int{ncclInProgress});
static_assert(kInt8 == int{ncclInt8} && kUint8 == int{ncclUint8} && kInt32 == int{ncclInt32} &&
              kUint32 == int{ncclUint32} && kInt64 == int{ncclInt64} && kUint64 == int{ncclUint64} &&
              kFloat16 == int{ncclFloat16} && kFloat32 == int{ncclFloat32} && kFloat64 == int{ncclFloat64} &&
              kBFloat16 == int{ncclBfloat16});
static_assert(kSum == int{ncclSum} && kProduct == int{ncclProd} && kMaximum == int{ncclMax} &&
              kMinimum == int{ncclMin} && kAverage == int{ncclAvg} && kNoColor == NCCL_SPLIT_NOCOLOR);
static_assert(offsetof(Config, version) == offsetof(ncclConfig_t, version) &&
              offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking) &&
              offsetof(Config, net_name) == offsetof(ncclConfig_t, netName) &&
              offsetof(Config, split_share) == offsetof(ncclConfig_t, splitShare));
static_assert(Config::kUnset == NCCL_CONFIG_UNDEF_INT);
LEVIN_SAME_CALL(get_version, ncclGetVersion);
LEVIN_SAME_CALL(get_unique_id, ncclGetUniqueId);
LEVIN_SAME_CALL(init_rank, ncclCommInitRank);
LEVIN_SAME_CALL(init_rank_config, ncclCommInitRankConfig);
LEVIN_SAME_CALL(init_all, ncclCommInitAll);
LEVIN_SAME_CALL(split, ncclCommSplit);
LEVIN_SAME_CALL(finalize, ncclCommFinalize);
LEVIN_SAME_CALL(destroy, ncclCommDestroy);
LEVIN_SAME_CALL(abort, ncclCommAbort);
LEVIN_SAME_CALL(async_error, ncclCommGetAsyncError);
LEVIN_SAME_CALL(count, ncclCommCount);
LEVIN_SAME_CALL(device, ncclCommCuDevice);
LEVIN_SAME_CALL(rank, ncclCommUserRank);
LEVIN_SAME_CALL(error_string, ncclGetErrorString);
LEVIN_SAME_CALL(last_error, ncclGetLastError);
LEVIN_SAME_CALL(all_reduce, ncclAllReduce);
LEVIN_SAME_CALL(reduce, ncclReduce);
LEVIN_SAME_CALL(broadcast, ncclBroadcast);
LEVIN_SAME_CALL(all_gather, ncclAllGather);
LEVIN_SAME_CALL(reduce_scatter, ncclReduceScatter);
LEVIN_SAME_CALL(send, ncclSend);
LEVIN_SAME_CALL(recv, ncclRecv);
LEVIN_SAME_CALL(group_start, ncclGroupStart);
LEVIN_SAME_CALL(group_end, ncclGroupEnd);
}  // namespace levin::kernels::cuda::nccl_api
#endif
