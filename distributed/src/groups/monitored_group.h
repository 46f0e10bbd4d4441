#pragma once
// The common part of groups of several processes: members, failure handling, and the comparison of calls.

#include <map>

#include "src/collectives/algorithms.h"

namespace levin::distributed {

/// Arguments that make one rank's part of a group.
struct GroupPlace {
  std::shared_ptr<Store> store{};
  std::shared_ptr<FailureDetector> detector{};  ///< may be null with one rank, as may the store
  std::string id{};                             ///< prefix of the group's keys in the store
  int rank = 0;
  std::vector<int> ranks{};  ///< world ranks of the members
  Duration timeout{};
  TransportKind transport{};
  Duration latency{};  ///< added to every message
};

class MonitoredGroup : public ProcessGroup {
 public:
  std::shared_ptr<ProcessGroup> new_group(const std::vector<int>& members) override;
  void abort(const std::string& reason) override;

 protected:
  explicit MonitoredGroup(GroupPlace place);
  /// Derived destructors must have ended everything that uses the transport.
  ~MonitoredGroup() override;
  virtual std::shared_ptr<ProcessGroup> make_like_this(GroupPlace place) const = 0;

  /// Must be called first by derived destructors. If an exception ends this rank's part, other ranks may wait for
  /// operations that this rank will never run; a program that ends normally has waited for its works.
  void abort_after_exception();

  const GroupPlace& place() const { return place_; }
  Transport& transport() const { return *transport_; }  ///< with one rank it only records how the group ended
  std::optional<RankEvent> ended() const { return transport_->ended(); }
  int world_rank() const { return world_rank(rank()); }
  int world_rank(int member) const { return place_.ranks[static_cast<std::size_t>(member)]; }

  /// Ends the group if this rank's header and the header of rank `from` do not match.
  void check(const CollectiveHeader& own, const CollectiveHeader& other, int from);
  [[noreturn]] void fail_for(const SplitMismatch& mismatch, const std::string& operation);
  /// Ends the group because the call described by `what` has timed out.
  [[noreturn]] void time_out(const std::string& what, const std::string& operation, Duration limit);
  /// Ends the group on all ranks, and throws.
  [[noreturn]] void fail(const RankEvent& event, const std::string& operation);
  virtual void end_everywhere(const RankEvent& event);
  /// Reports an event to all ranks, including this one.
  void report(const RankEvent& event);

 private:
  GroupPlace place_;
  int failures_at_start_;
  std::unique_ptr<Transport> transport_;
  int subscription_ = 0;
  std::map<std::vector<int>, int> made_;
};

/// Returns the name of an operation in messages: "all_reduce #3".
std::string operation_name(Collective::Kind kind, std::uint64_t sequence);
inline bool is_message(Collective::Kind kind) {
  return kind == Collective::Kind::send || kind == Collective::Kind::recv;
}

}  // namespace levin::distributed
