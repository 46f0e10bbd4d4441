#pragma once
// Whose kernels compute products and convolutions: our own, or NVIDIA's libraries'. For the whole process.

#include <atomic>

namespace levin::kernels::cuda {

/// Set only after the library was opened.
inline std::atomic<bool> prefer_cublas{false};
inline std::atomic<bool> prefer_cudnn{false};

}  // namespace levin::kernels::cuda
