#pragma once
// Shared by the benchmarks of levin_bench: filters on names, and the counters of a row.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace levin::bench {

/// A row is wanted if its name contains one of the texts, or if there are none.
using Filters = std::vector<std::string>;
bool wanted(const std::string& name, const Filters& filters);

/// Registers the operation cases that have inputs for benchmarks.
void add_operations(const Filters& filters);
/// Registers the operations that ./run compare measures beside PyTorch, as `compare/NAME fwd` and
/// `compare/NAME fwd+bwd`.
void add_compared_operations(const Filters& filters);
/// Registers the rungs of the GEMM ladder, and OpenBLAS where it is installed.
void add_gemm_ladder(const Filters& filters);
/// Registers the rungs of the convolution's ladder, of which Winograd's ships for these shapes.
void add_conv_ladder(const Filters& filters);

/// The speed of the machine at this moment, in flops and bytes per second: the best of three short runs of the loops
/// that measure the peaks. It is taken before each repetition, because clocks and neighbours change within seconds.
struct Speed {
  double flops, bytes;
};
Speed speed_now();

/// Sets a row's counters: the bytes and flops of one call, and the machine's speed before the repetition.
void set_counters(benchmark::State& state, double bytes, double flops, const Speed& speed);

}  // namespace levin::bench
