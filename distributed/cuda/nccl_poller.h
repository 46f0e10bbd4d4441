#pragma once
// Watches over the operations of a group that are queued on the device: says which are done, which take too long, and
// that NCCL has failed. A thread looks at their events; the host thread that queued them goes on.

#include <levin/kernels/cuda.h>

#include <list>
#include <thread>

#include "cuda/nccl_comm.h"
#include "src/watched_group.h"
#include "src/work.h"

namespace levin::distributed {

/// A Work whose end is an event of the group's stream.
struct NcclWork final : Work::State {
  NcclWork(std::string name_, int device_, bool host_waits_)
      : State(std::move(name_)), device(device_), host_waits(host_waits_) {}
  /// The event is recorded.
  void set_queued();
  bool order_streams() override;

  const int device;
  const bool host_waits;
  cuda::Event event;
  bool queued = false;
};

/// An operation under way. Its tensors live until it is done.
struct NcclOperation {
  Collective collective{};
  Announcement own;
  std::shared_ptr<NcclWork> work;
  Milliseconds limit;
  Clock::time_point deadline;
  NcclComm* comm = nullptr;
};

class NcclPoller {
 public:
  /// What ends a group. Each is called on the poller's thread.
  struct Group {
    std::function<std::optional<RankEvent>()> ended;
    std::function<void(const NcclOperation&)> timed_out;   ///< ended() has an event afterwards
    std::function<void(const std::string& words)> failed;  ///< likewise
    std::function<void()> abort;                           ///< of all communicators
  };
  explicit NcclPoller(Group group) : group_(std::move(group)) {}
  void add(NcclOperation operation);
  /// Returns when all operations are done or have failed.
  void finish();

  /// How long another reason is waited for when NCCL reports an error: it is often that a rank has gone, whose name
  /// and last words come by the watch.
  static constexpr auto kGrace = std::chrono::milliseconds(2500);

 private:
  void run();
  bool look();
  bool is_done(const NcclOperation& operation);
  void end(const RankEvent& event);

  Group group_;
  std::list<NcclOperation> operations_;  // of the thread
  std::string words_;                    // of NCCL, on its first error
  Clock::time_point suspected_{};
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::list<NcclOperation> added_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace levin::distributed
