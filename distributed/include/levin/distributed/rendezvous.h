#pragma once
// Who am I, and where are the others? Read from the variables that launchers set.

#include <levin/distributed/store.h>

#include <map>

namespace levin::distributed {

using Environment = std::map<std::string, std::string>;

/// The variables of this process.
Environment environment();

/// The place of one process among all.
struct RankInfo {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;        ///< among the processes of this machine: chooses the device
  int local_world_size = 1;  ///< processes on this machine
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = 29500;  ///< as the launcher gave it
  int store_port = 29500;   ///< where our store listens; differs from master_port where a launcher holds that one
  std::string source = "single process";  ///< which variables were believed, for messages
};

/// What the program itself knows: --num-nodes, --devices, --node-rank.
struct RankOptions {
  int num_nodes = 1;
  int devices = 1;     ///< processes on each machine
  int node_rank = -1;  ///< -1: NODE_RANK or GROUP_RANK
};

/// Reads the place of this process from, in this order:
/// - RANK and WORLD_SIZE (env://, torchrun), with LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK or GROUP_RANK;
/// - num_nodes or devices above 1 with LOCAL_RANK or a node's rank: rank = node's rank x devices + LOCAL_RANK;
/// - OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE and _NODE_RANK (mpirun);
/// - SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, SLURM_NODEID and the first host of the node list (srun);
/// - nothing: a single process.
/// MASTER_ADDR and MASTER_PORT always win over what is derived. Under torchrun (TORCHELASTIC_USE_AGENT_STORE=True) the
/// agent listens on MASTER_PORT itself, so the store takes LEVIN_STORE_PORT or else the next port.
/// Throws RendezvousError that names the variable and its value.
RankInfo rank_info(const Environment& env, const RankOptions& options = {});

/// Whether these variables say that somebody has started this process as one of several: torchrun, mpirun, srun, or
/// launch().
bool has_launcher(const Environment& env);

/// The first name of a SLURM host list: "gpu[07-09,12],cpu1" gives "gpu07".
std::string first_host(const std::string& host_list);

/// Opens the store of a job: "env://" listens on rank 0 at master_addr:store_port, "tcp://host:port" elsewhere,
/// "file:///path" in a file. Throws StoreError, or RendezvousError for another scheme.
std::shared_ptr<Store> open_store(const RankInfo& info, const std::string& address = "env://",
                                  Milliseconds timeout = kDefaultTimeout);

/// Waits until all ranks have come to the store. Throws RendezvousError: ranks are missing after the timeout (names
/// them), another rank came with another world size, or two processes have the same rank.
void join(Store& store, const RankInfo& info, std::optional<Milliseconds> timeout = std::nullopt);

}  // namespace levin::distributed
