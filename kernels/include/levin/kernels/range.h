#pragma once
// Named time ranges for NVIDIA's profilers (NVTX 3), for code that does not include CUDA's headers.

namespace levin::kernels {

/// Begins a range in this thread, nested in those that are open. Does nothing without CUDA or without an attached
/// profiler.
void push_range(const char* name);
/// Ends the innermost range.
void pop_range();

}  // namespace levin::kernels
