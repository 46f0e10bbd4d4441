#pragma once
// The few functions of cuDNN that Levin calls, declared here so that no build needs the headers of cuDNN and no program
// links it. A test compares names and numbers with cudnn_graph.h, cudnn_ops.h and cudnn_cnn.h if the toolkit is
// installed. NVIDIA, cuDNN API reference, version 9.

#include <levin/core/device.h>

#include <cuda_runtime.h>

#include <cstddef>

namespace levin::kernels::cuda {

namespace cudnn_api {

using Handle = void*;
using Tensor = void*;  ///< opaque descriptors, like the next two
using Filter = void*;
using Convolution = void*;
enum Status : int { kSuccess = 0, kNotSupported = 3000, kInternalError = 4000 };  // each begins a range of codes
enum Type : int { kFloat32 = 0, kFloat64 = 1, kFloat16 = 2, kBFloat16 = 9 };
enum Format : int { kNchw = 0 };
enum Mode : int { kCrossCorrelation = 1 };
enum Math : int { kDefaultMath = 0, kTensorOpMath = 1, kFmaMath = 3 };
enum Determinism : int { kDeterministic = 1 };

/// An algorithm and its properties as cuDNN reports them, for any of the three convolutions.
struct Algorithm {
  int algorithm;
  Status status;
  float time;
  std::size_t memory;
  Determinism determinism;
  Math math;
  int reserved[3];
};

/// The functions of one of the three convolutions. The operands are x and weight, weight and y, or x and y; the result
/// is the third.
struct Pass {
  Status (*algorithms)(Handle, void* first, void* second, Convolution, void* result, int wanted, int* found,
                       Algorithm*);
  Status (*workspace_size)(Handle, void* first, void* second, Convolution, void* result, int algorithm, std::size_t*);
  Status (*run)(Handle, const void* alpha, void* first, const void* first_data, void* second, const void* second_data,
                Convolution, int algorithm, void* workspace, std::size_t bytes, const void* beta, void* result,
                void* result_data);
};

/// cuDNN's functions by their names without the prefix.
struct Functions {
  std::size_t (*version)();
  const char* (*error_string)(Status);
  Status (*create)(Handle*);
  Status (*set_stream)(Handle, cudaStream_t);
  Status (*create_tensor)(Tensor*);
  Status (*set_tensor)(Tensor, Format, Type, int n, int c, int h, int w);
  Status (*destroy_tensor)(Tensor);
  Status (*create_filter)(Filter*);
  Status (*set_filter)(Filter, Type, Format, int outputs, int inputs, int h, int w);
  Status (*destroy_filter)(Filter);
  Status (*create_convolution)(Convolution*);
  Status (*set_convolution)(Convolution, int padding_h, int padding_w, int stride_h, int stride_w, int dilation_h,
                            int dilation_w, Mode, Type compute);
  Status (*set_groups)(Convolution, int groups);
  Status (*set_math)(Convolution, Math);
  Status (*destroy_convolution)(Convolution);
  Pass forward, backward_input, backward_weight;
};

}  // namespace cudnn_api

/// Opens cuDNN at the first call; throws DeviceError in one sentence if it cannot be used, and tries again at the next
/// call.
const cudnn_api::Functions& cudnn();

/// Throws DeviceError with the name of the call and cuDNN's message.
void check_failed(cudnn_api::Status status, const char* call);

inline void check(cudnn_api::Status status, const char* call) {
  if (status != cudnn_api::kSuccess) check_failed(status, call);
}

}  // namespace levin::kernels::cuda
