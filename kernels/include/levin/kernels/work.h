#pragma once
// The least work of a kernel call by its contract; the profiler compares it with the measured time.

#include <levin/kernels/kernel.h>

#include <typeinfo>

namespace levin::kernels {

struct Work {
  double bytes = 0;  ///< read and written in memory; elements that are broadcast count once
  double flops = 0;
  DType dtype = DType::f32;  ///< in which it computes
};

/// The work of the call kernel(args), where `args` points to a value of `type` (see KernelObserver). The type of a
/// table that is not of this library has no known work: zeros.
Work work_of(const char* kernel, const std::type_info& type, const void* args);

}  // namespace levin::kernels
