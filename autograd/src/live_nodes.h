#pragma once
// Records of nodes while a GraphWatch is alive.

#include <atomic>
#include <cstdint>

namespace levin::detail {

extern std::atomic<int> graph_watches;  ///< how many are alive
inline bool graph_is_watched() { return graph_watches.load(std::memory_order_relaxed) > 0; }
void note_node(std::uint64_t sequence, const char* name);
void forget_node(std::uint64_t sequence);
/// How many operations were recorded so far.
std::uint64_t node_count();

}  // namespace levin::detail
