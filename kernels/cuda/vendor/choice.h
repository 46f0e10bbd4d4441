#pragma once
// The choice between Levin's kernels and NVIDIA's libraries for products and convolutions, for the whole process.

#include <atomic>

namespace levin::kernels::cuda {

/// Set only after the library has been opened.
inline std::atomic<bool> prefer_cublas{false};
inline std::atomic<bool> prefer_cudnn{false};

}  // namespace levin::kernels::cuda
