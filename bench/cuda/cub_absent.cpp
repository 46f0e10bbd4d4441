// The emulator's build has no CUB, because its headers need nvcc.

#include "bench/cuda/problem.h"

namespace levin::bench {

namespace {
Peer absent() { return {.name = "cub", .missing = "CUB's headers are compiled by nvcc alone."}; }
}  // namespace

Peer cub_sum_peer(const Tensor&, const Tensor&) { return absent(); }
Peer cub_scan_peer(const Tensor&, const Tensor&) { return absent(); }
Peer cub_sort_peer(const Tensor&, const Tensor&, const Tensor&) { return absent(); }

}  // namespace levin::bench
