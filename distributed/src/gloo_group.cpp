// The group of host tensors, over shared memory or Gloo's connections: a queue of collectives on a thread of its own,
// and one each for sends and receives, so that two ranks which both send first do not wait for each other.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <levin/autograd/modes.h>

#include <map>

#include "src/algorithms.h"
#include "src/backends.h"
#include "src/gloo_transport.h"
#include "src/lane.h"
#include "src/shared_transport.h"
#include "src/work.h"

namespace levin::distributed {

namespace {

using Kind = Collective::Kind;

double seconds(Milliseconds t) { return static_cast<double>(t.count()) / 1000.0; }

class GlooGroup final : public ProcessGroup {
 public:
  GlooGroup(std::shared_ptr<Store> store, std::shared_ptr<Watch> watch, const std::string& id, int rank,
            std::vector<int> ranks, Milliseconds timeout, TransportKind kind)
      : ProcessGroup(rank, std::move(ranks), timeout),
        store_(std::move(store)),
        watch_(std::move(watch)),
        kind_(kind),
        failures_at_start_(std::uncaught_exceptions()) {
    PrefixStore own(id, store_);
    transport_ = connect(own);
    subscription_ = watch_->subscribe([this](const RankEvent& e) {
      if (place_of(e.rank) >= 0) transport_->end(e);
    });
  }

  ~GlooGroup() override {
    // Others wait for what this rank will not do any more; a program that ends as planned has waited for its works.
    if (std::uncaught_exceptions() > failures_at_start_) {
      abort(fmt::format("an exception ended the part of rank {}", world_rank()));
    }
    for (Lane* lane : {&collectives_, &sends_, &receives_}) lane->finish();
    watch_->unsubscribe(subscription_);
  }

  std::string name() const override { return "gloo"; }

  std::shared_ptr<ProcessGroup> new_group(const std::vector<int>& members) override {
    check_members(members);
    std::vector<int> world_ranks;
    int own = -1;
    for (std::size_t i = 0; i < members.size(); ++i) {
      world_ranks.push_back(ranks()[static_cast<std::size_t>(members[i])]);
      if (members[i] == rank()) own = static_cast<int>(i);
    }
    const std::string id = fmt::format("group/{}/{}", fmt::join(world_ranks, "-"), made_[world_ranks]++);
    if (own < 0) return nullptr;
    return as_part(make_gloo_group(store_, watch_, id, own, world_ranks, timeout(), kind_));
  }

  void abort(const std::string& reason) override {
    const RankEvent event{RankEvent::Kind::failed, world_rank(),
                          fmt::format("rank {} failed: {}", world_rank(), reason)};
    transport_->end(event);
    watch_->report(event.kind, event.text);
  }

 protected:
  Work begin(Collective c) override {
    const bool message = c.kind == Kind::send || c.kind == Kind::recv;
    const std::uint64_t sequence = message ? ++messages_ : ++collectives_begun_;
    auto state = std::make_shared<Work::State>(fmt::format("{} #{}", to_string(c.kind), sequence));
    if (c.output.defined()) c.output.storage()->bump_version();
    Lane& lane = c.kind == Kind::send ? sends_ : c.kind == Kind::recv ? receives_ : collectives_;
    const Announcement own = announcement_of(c, message ? 0 : sequence, size());
    const Tensor result = c.output;
    for (Tensor* t : {&c.output, &c.input}) {
      if (t->defined() && t->device().type != DeviceType::cpu) *t = t->detach().cpu();
    }
    lane.add([this, state, own, result, limit = timeout(), c = std::move(c)] {
      try {
        const WithoutSigpipe guard;
        run(c, own, state->name, limit);
        if (result.defined() && !result.is_same(c.output)) copy_back(result, c.output);
        state->finish();
      } catch (...) {
        state->finish(std::current_exception());
      }
    });
    return Work(std::move(state));
  }

 private:
  int world_rank() const { return ranks()[static_cast<std::size_t>(rank())]; }
  int world_rank(int member) const { return ranks()[static_cast<std::size_t>(member)]; }
  int place_of(int world) const {
    const auto at = std::find(ranks().begin(), ranks().end(), world);
    return at == ranks().end() ? -1 : static_cast<int>(at - ranks().begin());
  }

  std::unique_ptr<Transport> connect(Store& own) const {
    if (auto memory = SharedMemory::open(own, rank(), size(), kind_)) {
      return std::make_unique<SharedTransport>(std::move(memory));
    }
    std::string address = store_->local_address();
    if (address.empty()) address = "127.0.0.1";
    return std::make_unique<GlooTransport>(own, address, rank(), size(), timeout());
  }

  static void copy_back(const Tensor& to, const Tensor& from) {
    const no_grad guard;
    to.copy_(from);
    device_backend(to.device()).synchronize(to.device().index);
  }

  void run(const Collective& c, const Announcement& own, const std::string& operation, Milliseconds limit) {
    const bool message = c.kind == Kind::send || c.kind == Kind::recv;
    const auto channel =
        transport_->channel(operation, Clock::now() + limit, message ? Traffic::message : Traffic::collective);
    try {
      if (const auto event = transport_->ended()) throw_event(*event, operation);
      if (c.kind == Kind::send) return run_send(*channel, c, own);
      if (c.kind == Kind::recv)
        return run_recv(*channel, c, [&](const Announcement& other) { check(own, other, c.root); });
      const int before = (rank() + size() - 1) % size();
      check(own, exchange(*channel, own), before);
      run_collective(*channel, c);
    } catch (const SplitMismatch& m) {
      fail({RankEvent::Kind::mismatch, world_rank(),
            fmt::format("rank {} sends {} elements to rank {}, which expects {}. Do the splits fit together?",
                        world_rank(m.from), m.sent, world_rank(), m.expected)},
           operation);
    } catch (const CollectiveTimeout&) {
      if (transport_->ended()) throw;  // told by another rank
      fail({RankEvent::Kind::timeout, world_rank(),
            fmt::format("rank {} waited {} s in {}: a rank is stalled or does not take part.", world_rank(),
                        seconds(limit), describe(own))},
           operation);
    }
  }

  // Different plans end the group before any data moves.
  void check(const Announcement& own, const Announcement& other, int from) {
    Announcement expected = own;
    if (static_cast<Kind>(own.kind) == Kind::recv) {
      expected.kind = static_cast<std::uint8_t>(Kind::send);
      expected.root = other.root;
    }
    if (other == expected) return;
    fail({RankEvent::Kind::mismatch, world_rank(),
          fmt::format(
              "rank {} calls {}, but rank {} calls {}. All ranks must call the same operations in the same order, "
              "on as many elements of one type.",
              world_rank(from), describe(other), world_rank(), describe(own))},
         "mismatch");
  }

  [[noreturn]] void fail(const RankEvent& event, const std::string& operation) {
    transport_->end(event);
    watch_->report(event.kind, event.text);
    throw_event(event, operation);
  }

  std::shared_ptr<Store> store_;
  std::shared_ptr<Watch> watch_;
  TransportKind kind_;
  int failures_at_start_;
  std::unique_ptr<Transport> transport_;
  int subscription_ = 0;
  std::map<std::vector<int>, int> made_;
  std::uint64_t collectives_begun_ = 0, messages_ = 0;
  Lane collectives_, sends_, receives_;
};

}  // namespace

std::shared_ptr<ProcessGroup> make_gloo_group(std::shared_ptr<Store> store, std::shared_ptr<Watch> watch,
                                              const std::string& id, int rank, std::vector<int> ranks,
                                              Milliseconds timeout, TransportKind kind) {
  if (ranks.size() == 1) return make_single_group(std::move(ranks), timeout);
  return std::make_shared<GlooGroup>(std::move(store), std::move(watch), id, rank, std::move(ranks), timeout, kind);
}

}  // namespace levin::distributed
