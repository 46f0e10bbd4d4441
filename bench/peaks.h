#pragma once

#include <string>

namespace levin::bench {

/// Returns the measured peak of f32 multiply-adds with this process's threads, in flops per second.
double peak_flops();
/// Returns the measured bandwidth of a copy of 64 MiB, in bytes per second read and written.
double peak_bytes();
/// Returns Highway's name of the best instruction set that this processor has and the kernels are compiled for.
std::string instruction_set();

}  // namespace levin::bench
