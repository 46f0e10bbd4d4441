#pragma once
// Defines operation tables: LEVIN_KERNEL(SoftmaxArgs, softmax, cpu::softmax), in namespace levin::kernels. The function
// cuda::softmax of the same signature fills the second column. In a CUDA build a missing function is a link error;
// otherwise the reference is weak, so that the column is empty unless the program links the kernels for the emulator.
// LEVIN_KERNEL_OF(..., types) is for a cpu function that takes only some of the contract's types.

#include <levin/core/config.h>
#include <levin/kernels/kernel.h>

#if LEVIN_HAS_CUDA
#define LEVIN_CUDA_LINKAGE
#else
#define LEVIN_CUDA_LINKAGE [[gnu::weak]]
#endif
#define LEVIN_KERNEL_OF(Args, name, cpu_function, cpu_types) \
  namespace cuda {                                           \
  LEVIN_CUDA_LINKAGE void name(const Args&, Stream&);        \
  }                                                          \
  constinit Kernel<void(const Args&, Stream&)> name { #name, cpu_function, cuda::name, cpu_types }
#define LEVIN_KERNEL(Args, name, cpu_function) LEVIN_KERNEL_OF(Args, name, cpu_function, DTypes::every())

/// Defines the table of an operation that has no CUDA kernel, with the reason.
#define LEVIN_HOST_ONLY(Args, name, cpu_function, reason) \
  constinit Kernel<void(const Args&, Stream&)> name { #name, cpu_function }
