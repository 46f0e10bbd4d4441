#pragma once
// Groups whose ranks are threads of this process.

#include <levin/distributed/process_group.h>

#include "distributed/threads.h"

namespace levin::test {

using GroupBody = std::function<void(distributed::ProcessGroup&)>;

/// Returns the bytes of a contiguous tensor.
inline std::vector<std::byte> bytes_of(const Tensor& t) {
  const auto* p = static_cast<const std::byte*>(t.raw_data());
  return {p, p + t.numel() * size_of(t.dtype())};
}

inline const std::vector<std::string> kTransports = {"tcp", "shared"};

/// Runs `body` on n ranks of a gloo group, each with its own store client, and returns their error messages.
inline std::vector<std::string> errors_in_group(int n, const GroupBody& body,
                                                Duration timeout = distributed::kDefaultTimeout,
                                                const std::string& transport = "auto") {
  const distributed::TcpStore table("127.0.0.1", 0, {.server = true});
  return errors_on_threads(n, [&](int rank) {
    const auto store = std::make_shared<distributed::TcpStore>("127.0.0.1", table.port());
    const auto group = distributed::make_process_group(
        "gloo", {.store = store, .rank = rank, .world_size = n, .timeout = timeout, .transport = transport});
    body(*group);
  });
}

/// Does the same; no rank may throw.
inline void in_group(int n, const GroupBody& body, const std::string& transport = "auto") {
  const auto errors = errors_in_group(n, body, distributed::kDefaultTimeout, transport);
  for (std::size_t r = 0; r < errors.size(); ++r) {
    if (!errors[r].empty()) throw std::runtime_error("rank " + std::to_string(r) + ": " + errors[r]);
  }
}

}  // namespace levin::test
