#pragma once
// Monitors the operations that a group has queued on the device: detects their completion, timeouts and NCCL errors. A
// thread polls their events, so that the host thread that queued them can go on.

#include <levin/kernels/cuda.h>

#include <list>
#include <thread>

#include "cuda/nccl_comm.h"
#include "src/groups/monitored_group.h"
#include "src/groups/work.h"

namespace levin::distributed {

/// A Work that ends with an event on the group's stream.
struct NcclWork final : Work::State {
  NcclWork(std::string name_, int device_, bool host_waits_)
      : State(std::move(name_)), device(device_), host_waits(host_waits_) {}
  /// Called when the event has been recorded.
  void set_queued();
  bool order_streams() override;

  const int device;
  const bool host_waits;
  cuda::Event event;
  bool queued = false;
};

/// An operation in flight. It keeps its tensors alive until it is done.
struct NcclOperation {
  Collective collective{};
  CollectiveHeader own;
  std::shared_ptr<NcclWork> work;
  Duration limit;
  Clock::time_point deadline;
  NcclComm* comm = nullptr;
};

class NcclPoller {
 public:
  /// Callbacks into a group, called on the poller's thread.
  struct Group {
    std::function<std::optional<RankEvent>()> ended;
    std::function<void(const NcclOperation&)> timed_out;   ///< ended() has an event afterwards
    std::function<void(const std::string& words)> failed;  ///< ended() has an event afterwards
    std::function<void()> abort;                           ///< aborts all communicators
  };
  explicit NcclPoller(Group group) : group_(std::move(group)) {}
  void add(NcclOperation operation);
  /// Returns when all operations are done or have failed.
  void finish();

  /// Time to wait for a better reason when NCCL reports an error: often a rank has gone, and the failure detector
  /// delivers its number and its last message.
  static constexpr auto kGrace = std::chrono::milliseconds(2500);

 private:
  void run();
  bool look();
  bool is_done(const NcclOperation& operation);
  void end(const RankEvent& event);

  Group group_;
  std::list<NcclOperation> operations_;  // used by the thread only
  std::string words_;                    // NCCL's first error message
  Clock::time_point suspected_{};
  std::mutex mutex_;  // guards added_ and stopping_
  std::condition_variable changed_;
  std::list<NcclOperation> added_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace levin::distributed
