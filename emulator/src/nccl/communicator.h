#pragma once
// The communicators of this process and the helpers that their calls share.

#include "operation.h"

#include <deque>
#include <set>
#include <string>
#include <thread>

/// One rank of a communicator. The runtime's mutex guards its mutable state.
struct ncclComm {
  std::shared_ptr<levin::emulator::nccl::Segment> segment;
  int rank = 0, device = 0;
  std::uint64_t collectives = 0, splits = 0;
  std::vector<std::uint64_t> sent, received;  ///< messages to and from each rank
  bool finalized = false;

  /// A queued call with its thread and its group (0: none).
  struct Queued {
    levin::emulator::OpRef op;
    std::shared_ptr<levin::emulator::nccl::Operation> operation;
    std::uint64_t number = 0;  ///< number of the collective; 0 for messages
    std::uint64_t group = 0;
    std::thread::id thread;
  };
  std::deque<Queued> queued;
  std::set<std::thread::id> users;  ///< threads that have made calls on it
};

namespace levin::emulator::nccl {

/// Records an error as a sentence for ncclGetLastError and for the emulator's last_report(), and returns its code.
ncclResult_t refuse(ncclResult_t code, const std::string& text);

/// Check that the communicator exists (check_known), and also that it is not finalized and has not failed
/// (check_usable).
ncclResult_t check_known(ncclComm_t comm, const char* call);
ncclResult_t check_usable(ncclComm_t comm, const char* call);

/// Returns all communicators of this process. Called under the runtime's mutex.
std::set<ncclComm*>& communicators();
bool is_alive(ncclComm_t comm);
/// Adds it to the communicators. The first one starts the listener and driver threads.
void enter(ncclComm* comm);
/// Removes it, and stops its threads if it was the last of its kind.
void leave(ncclComm* comm);
/// Runs all queued calls of the rank.
void complete(ncclComm* comm);

/// Returns the seconds after which a wait for other ranks times out.
int patience();

/// A communicator under construction. The ranks of one group pass through the phases together.
class Joining {
 public:
  virtual ~Joining() = default;
  virtual ncclResult_t begin() = 0;
  virtual ncclResult_t meet() = 0;
  virtual ncclResult_t end() = 0;
  virtual void undo() = 0;
};

/// Runs it now, or at the end of the thread's current group.
ncclResult_t join(std::unique_ptr<Joining> joining);

/// A checked call that is deferred to the end of its group.
struct Issued {
  ncclComm_t comm;
  Call call;
  int peer_from = -1, peer_to = -1;  ///< peers of messages
  const char* send = nullptr;
  char* receive = nullptr;
  std::vector<Range> touches;
  cudaStream_t stream = nullptr;
};
ncclResult_t issue(Issued issued);
/// Records the error of a call in a group for ncclGroupEnd.
ncclResult_t note_in_group(ncclResult_t code);

}  // namespace levin::emulator::nccl
