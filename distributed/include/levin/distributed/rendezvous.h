#pragma once
// The rank of this process and the address of the master, from the variables that launchers set.

#include <levin/distributed/store.h>

#include <map>

namespace levin::distributed {

/// Environment variables: their values by their names.
using Environment = std::map<std::string, std::string>;

/// Returns the variables of this process.
Environment environment();

/// The place of a process in its job.
struct RankInfo {
  int rank = 0;              ///< in the job, from 0
  int world_size = 1;        ///< processes of the job
  int local_rank = 0;        ///< among the processes of this machine; selects the device
  int local_world_size = 1;  ///< processes on this machine
  int node_rank = 0;         ///< index of this machine
  std::string master_addr = "127.0.0.1";  ///< host of rank 0
  int master_port = 29500;  ///< as the launcher gave it
  int store_port = 29500;   ///< port of our store; differs from master_port where a launcher uses that one itself
  std::string source = "single process";  ///< the variables that were used, for messages
};

/// Settings from the command line: --num-nodes, --devices, --node-rank.
struct RankOptions {
  int num_nodes = 1;   ///< machines of the job
  int devices = 1;     ///< processes on each machine
  int node_rank = -1;  ///< -1: NODE_RANK or GROUP_RANK
};

/// Reads the place of this process from the first of these that is set:
/// - RANK and WORLD_SIZE (env://, torchrun), with LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK or GROUP_RANK;
/// - num_nodes above 1 (then MASTER_ADDR is needed), or devices above 1 with LOCAL_RANK: the rank is the node's rank
///   times devices plus LOCAL_RANK;
/// - OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE and _NODE_RANK (mpirun);
/// - SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, SLURM_NODEID and the first host of the node list (srun);
/// - none of these: a single process.
/// MASTER_ADDR and MASTER_PORT always take precedence over derived values. Under torchrun
/// (TORCHELASTIC_USE_AGENT_STORE=True) the agent listens on MASTER_PORT itself, so the store uses LEVIN_STORE_PORT or
/// else the next port. Throws RendezvousError that names the variable and its value.
RankInfo rank_info(const Environment& env, const RankOptions& options = {});

/// True if these variables show that a launcher (torchrun, mpirun, srun or launch()) started this process as one of
/// several.
bool has_launcher(const Environment& env);

/// Returns the first name of a SLURM host list: "gpu[07-09,12],cpu1" gives "gpu07".
std::string first_host(const std::string& host_list);

/// Opens the store of a job: "env://" listens on rank 0 at master_addr:store_port, "tcp://host:port" at another
/// address, "file:///path" uses a file. Throws StoreError, or RendezvousError for another scheme.
std::shared_ptr<Store> open_store(const RankInfo& info, const std::string& address = "env://",
                                  Duration timeout = kDefaultTimeout);

/// Waits until all ranks have joined the store. Throws RendezvousError if ranks are missing after the timeout (it names
/// them), if another rank has another world size, or if two processes have the same rank.
void join(Store& store, const RankInfo& info, std::optional<Duration> timeout = std::nullopt);

}  // namespace levin::distributed
