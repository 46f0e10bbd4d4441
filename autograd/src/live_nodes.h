#pragma once
// Tracks nodes while a GraphWatch is alive.

#include <atomic>
#include <cstdint>

namespace levin::detail {

extern std::atomic<int> graph_watches;  ///< number of GraphWatch objects that are alive
inline bool graph_is_watched() { return graph_watches.load(std::memory_order_relaxed) > 0; }
void note_node(std::uint64_t sequence, const char* name);
void forget_node(std::uint64_t sequence);
/// Returns the number of operations recorded so far.
std::uint64_t node_count();

}  // namespace levin::detail
