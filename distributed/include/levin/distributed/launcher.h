#pragma once
// Starts the local ranks of a job: executes this program once for each rank, with the variables that rank_info reads.

#include <levin/core/owned_ptr.h>
#include <levin/distributed/rendezvous.h>

namespace levin::distributed {

/// The local ranks of a job and how they are started. With several machines (`num_nodes`) each of them starts its own
/// ranks, with its index as `node_rank` and the address of machine 0 as `master_addr`.
struct LaunchOptions {
  int processes = 1;  ///< number of processes on this machine
  int num_nodes = 1;
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;                       ///< 0: any free port; with several nodes it must be given
  std::string program = "/proc/self/exe";    ///< path
  std::vector<std::string> arguments{};      ///< with the program's name; empty: those of this process
  Environment environment{};                 ///< added to the environment of this process
  Duration grace = Duration::of_seconds(5);  ///< time for the others to end after one rank has failed
};

/// How the local ranks of a launch ended.
struct LaunchResult {
  std::vector<int> statuses;  ///< of each local rank: its exit status, or 128 + the signal that ended it
  int first_failed = -1;      ///< the local rank that failed first, or -1
  /// Returns 0, or the status of the rank that failed first.
  int exit_status() const { return first_failed < 0 ? 0 : statuses[static_cast<std::size_t>(first_failed)]; }
};

/// True in a process that launch() started.
bool is_launched();

/// Executes the program once for each rank (it does not fork the running process) and waits for all of them. When one
/// fails, the others have `grace` to end by themselves, then get SIGTERM, then SIGKILL. SIGTERM and SIGUSR1 to this
/// process are passed on. The ranks die with this process, so none is left behind. Throws ValueError for numbers of
/// processes or nodes out of range and for several nodes without a master_port, and DistributedError when the program
/// cannot be started.
LaunchResult launch(const LaunchOptions& options);

/// The other local ranks of a job in which this process is local rank 0. They die with this process. The destructor
/// waits for them, and ends those that take longer than `grace`.
class LocalRanks {
 public:
  /// Starts local ranks 1 to `processes` - 1; master_port must not be 0. Throws what launch throws.
  explicit LocalRanks(const LaunchOptions& options);
  ~LocalRanks();
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

 private:
  struct Impl;
  OwnedPtr<Impl> impl_;
};

/// Reserves a free port of this machine for the master of a job. While the object lives, the system gives the port to
/// no other program, not even as the local end of a connection; a program that knows the number may listen on it.
class HeldPort {
 public:
  /// Throws DistributedError if no port is free.
  HeldPort();
  ~HeldPort();
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;
  /// The port.
  int number() const;

 private:
  struct Impl;
  OwnedPtr<Impl> impl_;
};

}  // namespace levin::distributed
