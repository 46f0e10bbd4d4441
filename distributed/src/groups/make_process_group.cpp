// Makes groups by the names of their backends.

#include <fmt/format.h>

#include <cstdlib>
#include <numeric>

#include "src/groups/backends.h"

namespace levin::distributed {

namespace {

constexpr const char* kBoth = "cpu:gloo,cuda:nccl";

TransportKind transport_kind(std::string name) {
  const char* variable = std::getenv("LEVIN_TRANSPORT");
  if (name.empty() && variable != nullptr) name = variable;
  if (name.empty() || name == "auto") return TransportKind::automatic;
  if (name == "tcp") return TransportKind::tcp;
  if (name == "shared") return TransportKind::shared;
  throw ValueError(
      fmt::format("[make_process_group] there is no transport \"{}\" (option or LEVIN_TRANSPORT); choose auto, tcp or "
                  "shared.",
                  name));
}

void check_options(const std::string& backend, const GroupOptions& o) {
  if (backend != "single" && backend != "gloo" && backend != "nccl" && backend != kBoth) {
    throw ValueError(fmt::format("[make_process_group] there is no backend \"{}\"; choose single, gloo, nccl or {}.",
                                 backend, kBoth));
  }
  if (o.world_size < 1 || o.rank < 0 || o.rank >= o.world_size) {
    throw ValueError(
        fmt::format("[make_process_group] rank {} of {} does not exist; ranks count from 0.", o.rank, o.world_size));
  }
  if (backend == "single" && o.world_size > 1) {
    throw ValueError(fmt::format("[make_process_group] single is for one rank, not {}; choose gloo.", o.world_size));
  }
  if (o.world_size > 1 && !o.store) {
    throw ValueError("[make_process_group] more than one rank needs a store for the rendezvous.");
  }
  if (o.nccl_algo != "ring" && o.nccl_algo != "tree" && o.nccl_algo != "auto") {
    throw ValueError(
        fmt::format("[make_process_group] NCCL has no algorithm \"{}\"; choose ring, tree or auto.", o.nccl_algo));
  }
}

}  // namespace

std::shared_ptr<ProcessGroup> make_process_group(const std::string& backend, const GroupOptions& options) {
  check_options(backend, options);
  const bool nccl = backend == "nccl" || backend == kBoth;
  if (options.world_size == 1 && !nccl) return make_single_group({0}, options.timeout);
  NcclOptions of_nccl;
  if (nccl) of_nccl = {.device = nccl_device(options.device), .algorithm = options.nccl_algo};
  GroupPlace place{.store = options.store,
                   .id = "world",
                   .rank = options.rank,
                   .ranks = std::vector<int>(static_cast<std::size_t>(options.world_size)),
                   .timeout = options.timeout,
                   .transport = transport_kind(options.transport),
                   .latency = options.latency};
  std::iota(place.ranks.begin(), place.ranks.end(), 0);
  if (options.world_size > 1) place.detector = std::make_shared<FailureDetector>(*options.store, options.rank);
  if (!nccl) return make_gloo_group(std::move(place));
  // The host group is made first, so that a failure ends it first: then nothing continues with unfinished results of
  // NCCL.
  auto host = backend == kBoth ? make_gloo_group(place) : nullptr;
  place.id = "nccl";
  auto device = make_nccl_group(std::move(place), of_nccl);
  return host ? make_device_groups(std::move(host), std::move(device)) : device;
}

}  // namespace levin::distributed
