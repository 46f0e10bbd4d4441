#pragma once
// Named stretches of time for NVIDIA's profilers (NVTX 3), for those who do not see CUDA's headers.

namespace levin::kernels {

/// Begins a range of this thread, nested in those that are open. Without CUDA, and without a profiler that listens,
/// nothing happens.
void push_range(const char* name);
/// Ends the innermost one.
void pop_range();

}  // namespace levin::kernels
