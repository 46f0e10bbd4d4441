#pragma once
// The implementations of ProcessGroup.

#include <levin/distributed/process_group.h>

namespace levin::distributed {

class Watch;
enum class TransportKind : std::uint8_t;

std::shared_ptr<ProcessGroup> make_single_group(std::vector<int> ranks, Milliseconds timeout);
/// `id` names the group's part of the store.
std::shared_ptr<ProcessGroup> make_gloo_group(std::shared_ptr<Store> store, std::shared_ptr<Watch> watch,
                                              const std::string& id, int rank, std::vector<int> ranks,
                                              Milliseconds timeout, TransportKind kind);

}  // namespace levin::distributed
