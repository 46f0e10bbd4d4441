#pragma once
// Defines operation tables: LEVIN_KERNEL(SoftmaxArgs, softmax, cpu::softmax), in namespace levin::kernels. In a CUDA
// build the function cuda::softmax of the same signature fills the second column, and its absence is a link error.
// LEVIN_KERNEL_OF(..., types) is for a cpu function that takes only some of the contract's types.

#include <levin/core/config.h>
#include <levin/kernels/kernel.h>

#if LEVIN_HAS_CUDA
#define LEVIN_KERNEL_OF(Args, name, cpu_function, cpu_types) \
  namespace cuda {                                           \
  void name(const Args&, Stream&);                           \
  }                                                          \
  constinit Kernel<void(const Args&, Stream&)> name { #name, cpu_function, cuda::name, cpu_types }
#else
#define LEVIN_KERNEL_OF(Args, name, cpu_function, cpu_types) \
  constinit Kernel<void(const Args&, Stream&)> name { #name, cpu_function, nullptr, cpu_types }
#endif
#define LEVIN_KERNEL(Args, name, cpu_function) LEVIN_KERNEL_OF(Args, name, cpu_function, DTypes::every())

/// For what has no CUDA kernel, with the reason.
#define LEVIN_HOST_ONLY(Args, name, cpu_function, reason) \
  constinit Kernel<void(const Args&, Stream&)> name { #name, cpu_function }
