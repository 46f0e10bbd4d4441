#include "src/groups/monitored_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "src/transports/gloo_transport.h"
#include "src/transports/shared_transport.h"
#include "src/transports/slow_transport.h"

namespace levin::distributed {

namespace {

/// Transport of a group of one rank. It only records how the group ended.
class NoTransport final : public Transport {
 public:
  std::unique_ptr<Channel> channel(const std::string&, Clock::time_point, Traffic) override { return nullptr; }
  void end(const RankEvent& event) override {
    const std::lock_guard lock(mutex_);
    if (!event_) event_ = event;
  }
  std::optional<RankEvent> ended() const override {
    const std::lock_guard lock(mutex_);
    return event_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<RankEvent> event_;
};

std::unique_ptr<Transport> connected(const GroupPlace& place) {
  if (place.ranks.size() == 1) return std::make_unique<NoTransport>();
  PrefixStore own(place.id, place.store);
  const int size = static_cast<int>(place.ranks.size());
  if (auto memory = SharedMemory::open(own, place.rank, size, place.transport)) {
    return std::make_unique<SharedTransport>(std::move(memory));
  }
  std::string address = place.store->local_address();
  if (address.empty()) address = "127.0.0.1";
  return std::make_unique<GlooTransport>(own, address, place.rank, size, place.timeout);
}

std::unique_ptr<Transport> connect(const GroupPlace& place) {
  auto transport = connected(place);
  return place.latency > Duration() ? make_slow_transport(std::move(transport), place.latency) : std::move(transport);
}

}  // namespace

std::string operation_name(Collective::Kind kind, std::uint64_t sequence) {
  return fmt::format("{} #{}", to_string(kind), sequence);
}

MonitoredGroup::MonitoredGroup(GroupPlace place)
    : ProcessGroup(place.rank, place.ranks, place.timeout),
      place_(std::move(place)),
      failures_at_start_(std::uncaught_exceptions()),
      transport_(connect(place_)) {
  if (!place_.detector) return;
  subscription_ = place_.detector->subscribe([this](const RankEvent& e) {
    if (std::find(place_.ranks.begin(), place_.ranks.end(), e.rank) != place_.ranks.end()) transport_->end(e);
  });
}

MonitoredGroup::~MonitoredGroup() {
  if (place_.detector) place_.detector->unsubscribe(subscription_);
}

void MonitoredGroup::abort_after_exception() {
  if (std::uncaught_exceptions() > failures_at_start_) {
    abort(fmt::format("an exception ended the part of rank {}", world_rank()));
  }
}

std::shared_ptr<ProcessGroup> MonitoredGroup::new_group(const std::vector<int>& members) {
  check_members(members);
  GroupPlace place = place_;
  place.rank = -1;
  place.ranks.clear();
  for (std::size_t i = 0; i < members.size(); ++i) {
    place.ranks.push_back(world_rank(members[i]));
    if (members[i] == rank()) place.rank = static_cast<int>(i);
  }
  place.id = fmt::format("{}/{}/{}", place_.id, fmt::join(place.ranks, "-"), made_[place.ranks]++);
  place.timeout = timeout();
  if (place.rank < 0) return nullptr;
  return as_part(make_like_this(std::move(place)));
}

void MonitoredGroup::abort(const std::string& reason) {
  const RankEvent event{RankEvent::Kind::failed, world_rank(), fmt::format("rank {} failed: {}", world_rank(), reason)};
  end_everywhere(event);
}

void MonitoredGroup::report(const RankEvent& event) {
  if (place_.detector) place_.detector->report(event.kind, event.text);
}

void MonitoredGroup::check(const CollectiveHeader& own, const CollectiveHeader& other, int from) {
  CollectiveHeader expected = own;
  if (static_cast<Collective::Kind>(own.kind) == Collective::Kind::recv) {
    expected.kind = static_cast<std::uint8_t>(Collective::Kind::send);
    expected.root = other.root;
  }
  if (headers_match(other, expected)) return;
  fail({RankEvent::Kind::mismatch, world_rank(),
        fmt::format("rank {} calls {}, but rank {} calls {}. All ranks must call the same operations in the same "
                    "order, on as many elements of one type.",
                    world_rank(from), describe(other), world_rank(), describe(own))},
       "mismatch");
}

void MonitoredGroup::fail_for(const SplitMismatch& m, const std::string& operation) {
  fail({RankEvent::Kind::mismatch, world_rank(),
        fmt::format("rank {} sends {} elements to rank {}, which expects {}. Do the splits match?", world_rank(m.from),
                    m.sent, world_rank(), m.expected)},
       operation);
}

void MonitoredGroup::time_out(const std::string& what, const std::string& operation, Duration limit) {
  fail({RankEvent::Kind::timeout, world_rank(),
        fmt::format("rank {} waited {} s in {}: a rank is stalled or does not take part.", world_rank(),
                    limit.seconds(), what)},
       operation);
}

void MonitoredGroup::fail(const RankEvent& event, const std::string& operation) {
  end_everywhere(event);
  throw_event(event, operation);
}

void MonitoredGroup::end_everywhere(const RankEvent& event) {
  transport_->end(event);
  report(event);
}

}  // namespace levin::distributed
