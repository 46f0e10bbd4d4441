#pragma once
// Starts the local ranks of a job: this program again, once for each rank, with the variables that rank_info reads.

#include <levin/core/owned_ptr.h>
#include <levin/distributed/rendezvous.h>

namespace levin::distributed {

struct LaunchOptions {
  int processes = 1;  ///< on this machine
  int num_nodes = 1;
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;                           ///< 0: a free one; several nodes must name it
  std::string program = "/proc/self/exe";        ///< a path
  std::vector<std::string> arguments{};          ///< with the program's name; empty: those of this process
  Environment environment{};                     ///< added to this process's own
  Milliseconds grace = std::chrono::seconds(5);  ///< for the others to end when one rank has failed
};

struct LaunchResult {
  std::vector<int> statuses;  ///< of each local rank: its exit status, or 128 + the signal that ended it
  int first_failed = -1;      ///< the local rank that failed first
  /// 0, or the status of the rank that failed first.
  int exit_status() const { return first_failed < 0 ? 0 : statuses[static_cast<std::size_t>(first_failed)]; }
};

/// True in a process that launch() started.
bool is_launched();

/// Runs the ranks by executing the program anew (no fork of a running one), and waits for them. When one fails, the
/// others get `grace` to end by themselves, then SIGTERM, then SIGKILL; SIGTERM and SIGUSR1 to this process are passed
/// on. Ranks die with this process, so none is left behind. Throws ValueError for a number of processes below 1, and
/// DistributedError when the program cannot be started.
LaunchResult launch(const LaunchOptions& options);

/// The other local ranks of a job of which this process itself is local rank 0. They die with this process; the object
/// waits for them in its end, and ends those that outlast `grace`.
class LocalRanks {
 public:
  /// Starts local ranks 1 to `processes` - 1; the master's port is not 0. Throws as launch does.
  explicit LocalRanks(const LaunchOptions& options);
  ~LocalRanks();
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

 private:
  struct Impl;
  OwnedPtr<Impl> impl_;
};

/// A free port of this machine for the master of a job. While the object lives, the system gives the port to no other
/// program, not even for the end of a connection; who knows its number may listen there.
class HeldPort {
 public:
  /// Throws DistributedError where no port is free.
  HeldPort();
  ~HeldPort();
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;
  int number() const;

 private:
  struct Impl;
  OwnedPtr<Impl> impl_;
};

}  // namespace levin::distributed
