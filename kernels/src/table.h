#pragma once
// Defines operation tables: LEVIN_KERNEL(SoftmaxArgs, softmax, cpu::softmax), in namespace levin::kernels. In a CUDA
// build the function cuda::softmax of the same signature fills the second column, and its absence is a link error.

#include <levin/core/config.h>
#include <levin/kernels/kernel.h>

#if LEVIN_HAS_CUDA
#define LEVIN_KERNEL(Args, name, cpu_function) \
  namespace cuda {                             \
  void name(const Args&, Stream&);             \
  }                                            \
  constinit Kernel<void(const Args&, Stream&)> name { #name, cpu_function, cuda::name }
#else
#define LEVIN_KERNEL(Args, name, cpu_function) \
  constinit Kernel<void(const Args&, Stream&)> name { #name, cpu_function }
#endif

/// For what has no CUDA kernel, with the reason.
#define LEVIN_HOST_ONLY(Args, name, cpu_function, reason) \
  constinit Kernel<void(const Args&, Stream&)> name { #name, cpu_function }
