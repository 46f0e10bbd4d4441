// Loads cuBLAS and cuDNN as tables of functions and turns their errors into exceptions.

#include "kernels/cuda/vendor/cublas.h"
#include "kernels/cuda/vendor/cudnn.h"
#include "kernels/cuda/vendor/library.h"

#include <levin/core/error.h>

#include <fmt/format.h>

namespace levin::kernels::cuda {

namespace {

cublas_api::Functions open_cublas() {
  static const LibraryNames names{
      "cuBLAS", "LEVIN_CUBLAS_LIBRARY", {"libcublas.so.13", "libcublas.so.12", "libcublas.so"}};
  SharedLibrary library(names);
  cublas_api::Functions f;
  library.find(f.create, "cublasCreate_v2");
  library.find(f.set_stream, "cublasSetStream_v2");
  library.find(f.set_workspace, "cublasSetWorkspace_v2");
  library.find(f.set_math_mode, "cublasSetMathMode");
  library.find(f.status_string, "cublasGetStatusString");
  library.find(f.gemm, "cublasGemmEx");
  library.find(f.gemm_batched, "cublasGemmStridedBatchedEx");
  library.keep();
  return f;
}

cudnn_api::Functions open_cudnn() {
  static const LibraryNames names{"cuDNN", "LEVIN_CUDNN_LIBRARY", {"libcudnn.so.9", "libcudnn.so"}};
  constexpr std::size_t oldest = 90000;
  SharedLibrary library(names);
  cudnn_api::Functions f;
  library.find(f.version, "cudnnGetVersion");
  if (f.version() < oldest) {
    throw DeviceError(fmt::format("[cuda] cuDNN has version {}, but 9.0 or newer is needed. Set {} to the path of one.",
                                  f.version(), names.variable));
  }
  library.find(f.error_string, "cudnnGetErrorString");
  library.find(f.create, "cudnnCreate");
  library.find(f.set_stream, "cudnnSetStream");
  library.find(f.create_tensor, "cudnnCreateTensorDescriptor");
  library.find(f.set_tensor, "cudnnSetTensor4dDescriptor");
  library.find(f.destroy_tensor, "cudnnDestroyTensorDescriptor");
  library.find(f.create_filter, "cudnnCreateFilterDescriptor");
  library.find(f.set_filter, "cudnnSetFilter4dDescriptor");
  library.find(f.destroy_filter, "cudnnDestroyFilterDescriptor");
  library.find(f.create_convolution, "cudnnCreateConvolutionDescriptor");
  library.find(f.set_convolution, "cudnnSetConvolution2dDescriptor");
  library.find(f.set_groups, "cudnnSetConvolutionGroupCount");
  library.find(f.set_math, "cudnnSetConvolutionMathType");
  library.find(f.destroy_convolution, "cudnnDestroyConvolutionDescriptor");
  library.find(f.forward.algorithms, "cudnnGetConvolutionForwardAlgorithm_v7");
  library.find(f.forward.workspace_size, "cudnnGetConvolutionForwardWorkspaceSize");
  library.find(f.forward.run, "cudnnConvolutionForward");
  library.find(f.backward_input.algorithms, "cudnnGetConvolutionBackwardDataAlgorithm_v7");
  library.find(f.backward_input.workspace_size, "cudnnGetConvolutionBackwardDataWorkspaceSize");
  library.find(f.backward_input.run, "cudnnConvolutionBackwardData");
  library.find(f.backward_weight.algorithms, "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
  library.find(f.backward_weight.workspace_size, "cudnnGetConvolutionBackwardFilterWorkspaceSize");
  library.find(f.backward_weight.run, "cudnnConvolutionBackwardFilter");
  library.keep();
  return f;
}

}  // namespace

const cublas_api::Functions& cublas() {
  static const cublas_api::Functions functions = open_cublas();
  return functions;
}

const cudnn_api::Functions& cudnn() {
  static const cudnn_api::Functions functions = open_cudnn();
  return functions;
}

void check_failed(cublas_api::Status status, const char* call) {
  const std::string text = fmt::format("[matmul] {} failed: {}.", call, cublas().status_string(status));
  if (status == cublas_api::kAllocationFailed) throw OutOfMemory(text + " Use a smaller batch or model.");
  throw DeviceError(text + " Use levin::cuda::set_preferred_blas_library(\"levin\") to go on without cuBLAS.");
}

void check_failed(cudnn_api::Status status, const char* call) {
  throw DeviceError(
      fmt::format("[conv2d] {} failed: {}. Use levin::cuda::set_preferred_conv_library(\"levin\") to go "
                  "on without cuDNN.",
                  call, cudnn().error_string(status)));
}

}  // namespace levin::kernels::cuda
