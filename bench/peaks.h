#pragma once

namespace levin::bench {

/// Measured f32 multiply-adds of this process's threads, in flops a second.
double peak_flops();
/// Measured copy of 64 MiB, in bytes a second (read and written).
double peak_bytes();

}  // namespace levin::bench
