#include <levin/autograd/graph_watch.h>

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <mutex>

#include "live_nodes.h"

namespace levin {

namespace {

struct LiveNodes {
  std::mutex mutex;
  std::map<std::uint64_t, const char*> names;  // by sequence number
};

LiveNodes& live_nodes() {
  static LiveNodes& list = *new LiveNodes;  // never destroyed: nodes may be freed after every static object
  return list;
}

}  // namespace

constinit std::atomic<int> detail::graph_watches{0};

void detail::note_node(std::uint64_t sequence, const char* name) {
  LiveNodes& list = live_nodes();
  const std::lock_guard lock(list.mutex);
  list.names.emplace(sequence, name);
}

void detail::forget_node(std::uint64_t sequence) {
  LiveNodes& list = live_nodes();
  const std::lock_guard lock(list.mutex);
  list.names.erase(sequence);
}

GraphWatch::GraphWatch() : first_(detail::node_count()) { detail::graph_watches.fetch_add(1); }

GraphWatch::~GraphWatch() {
  LiveNodes& list = live_nodes();
  const std::lock_guard lock(list.mutex);
  if (detail::graph_watches.fetch_sub(1) == 1) list.names.clear();
}

std::int64_t GraphWatch::live() const {
  LiveNodes& list = live_nodes();
  const std::lock_guard lock(list.mutex);
  return std::distance(list.names.lower_bound(first_), list.names.end());
}

std::string GraphWatch::oldest() const {
  LiveNodes& list = live_nodes();
  const std::lock_guard lock(list.mutex);
  const auto found = list.names.lower_bound(first_);
  if (found == list.names.end()) return {};
  return fmt::format("{}, recorded {} operations ago", found->second, detail::node_count() - found->first);
}

}  // namespace levin
