#pragma once
// Communicators of this process and what their calls have in common.

#include "operation.h"

#include <deque>
#include <set>
#include <string>
#include <thread>

/// One rank. The runtime's mutex guards what changes.
struct ncclComm {
  std::shared_ptr<levin::emulator::nccl::Segment> segment;
  int rank = 0, device = 0;
  std::uint64_t collectives = 0, splits = 0;
  std::vector<std::uint64_t> sent, received;  ///< messages to and from each rank
  bool finalized = false;

  /// A call that was queued: by whom, in which group (0: in none).
  struct Queued {
    levin::emulator::OpRef op;
    std::shared_ptr<levin::emulator::nccl::Operation> operation;
    std::uint64_t number = 0;  ///< of a collective; 0: messages
    std::uint64_t group = 0;
    std::thread::id thread;
  };
  std::deque<Queued> queued;
  std::set<std::thread::id> users;  ///< threads that have called something on it
};

namespace levin::emulator::nccl {

/// What failed: a sentence for ncclGetLastError and for the emulator's last_report().
ncclResult_t refuse(ncclResult_t code, const std::string& text);

/// The communicator exists; and it is neither finalized nor has failed.
ncclResult_t check_known(ncclComm_t comm, const char* call);
ncclResult_t check_usable(ncclComm_t comm, const char* call);

/// All communicators of this process, under the runtime's mutex.
std::set<ncclComm*>& communicators();
bool is_alive(ncclComm_t comm);
/// Adds it to the communicators; the first starts the threads that listen and drive.
void enter(ncclComm* comm);
/// Takes it away, with its threads when it was the last of its kind.
void leave(ncclComm* comm);
/// Runs all that the rank has queued.
void complete(ncclComm* comm);

/// Seconds after which ranks no longer wait for one that doesn't come.
int patience();

/// A communicator that is being made: ranks of one group take each phase together.
class Joining {
 public:
  virtual ~Joining() = default;
  virtual ncclResult_t begin() = 0;
  virtual ncclResult_t meet() = 0;
  virtual ncclResult_t end() = 0;
  virtual void undo() = 0;
};

/// Runs it now, or at the end of the group that the thread is in.
ncclResult_t join(std::unique_ptr<Joining> joining);

/// A checked call that waits for the end of its group.
struct Issued {
  ncclComm_t comm;
  Call call;
  int peer_from = -1, peer_to = -1;  ///< of messages
  const char* send = nullptr;
  char* receive = nullptr;
  std::vector<Range> touches;
  cudaStream_t stream = nullptr;
};
ncclResult_t issue(Issued issued);
/// Remembers an error of a call in a group for its end.
ncclResult_t note_in_group(ncclResult_t code);

}  // namespace levin::emulator::nccl
