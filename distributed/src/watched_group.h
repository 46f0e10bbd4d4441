#pragma once
// What groups of several processes have in common: who is in them, how they end, and how calls are compared.

#include <map>

#include "src/algorithms.h"

namespace levin::distributed {

/// One rank's place in a group that is being made.
struct GroupPlace {
  std::shared_ptr<Store> store{};
  std::shared_ptr<Watch> watch{};  ///< may be null for one rank, as the store
  std::string id{};                ///< names the group's part of the store
  int rank = 0;
  std::vector<int> ranks{};  ///< of the members, in the world
  Milliseconds timeout{};
  TransportKind transport{};
  Milliseconds latency{};  ///< added to every message
};

class WatchedGroup : public ProcessGroup {
 public:
  std::shared_ptr<ProcessGroup> new_group(const std::vector<int>& members) override;
  void abort(const std::string& reason) override;

 protected:
  explicit WatchedGroup(GroupPlace place);
  /// Whatever uses the transport has ended before.
  ~WatchedGroup() override;
  virtual std::shared_ptr<ProcessGroup> make_like_this(GroupPlace place) const = 0;

  /// To be called first by destructors: others wait for what this rank will not do any more, where an exception ends
  /// its part. A program that ends as planned has waited for its works.
  void abort_after_exception();

  const GroupPlace& place() const { return place_; }
  Transport& transport() const { return *transport_; }  ///< of one rank: it only knows how the group ended
  std::optional<RankEvent> ended() const { return transport_->ended(); }
  int world_rank() const { return world_rank(rank()); }
  int world_rank(int member) const { return place_.ranks[static_cast<std::size_t>(member)]; }

  /// Different plans end the group: `other` is what rank `from` announced.
  void check(const Announcement& own, const Announcement& other, int from);
  [[noreturn]] void fail_for(const SplitMismatch& mismatch, const std::string& operation);
  /// `what` was waited for in vain: an announced call.
  [[noreturn]] void time_out(const std::string& what, const std::string& operation, Milliseconds limit);
  /// Ends the group on all ranks, and throws.
  [[noreturn]] void fail(const RankEvent& event, const std::string& operation);
  virtual void end_everywhere(const RankEvent& event);
  /// Tells all ranks, this one included.
  void report(const RankEvent& event);

 private:
  GroupPlace place_;
  int failures_at_start_;
  std::unique_ptr<Transport> transport_;
  int subscription_ = 0;
  std::map<std::vector<int>, int> made_;
};

/// What an operation is called in messages: "all_reduce #3".
std::string operation_name(Collective::Kind kind, std::uint64_t sequence);
inline bool is_message(Collective::Kind kind) {
  return kind == Collective::Kind::send || kind == Collective::Kind::recv;
}

}  // namespace levin::distributed
