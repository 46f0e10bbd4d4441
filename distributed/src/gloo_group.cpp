// The group of host tensors, over shared memory or Gloo's connections: a queue of collectives on a thread of its own,
// and one each for sends and receives, so that two ranks which both send first do not wait for each other.

#include <levin/autograd/modes.h>

#include "src/backends.h"
#include "src/gloo_transport.h"
#include "src/lane.h"
#include "src/watched_group.h"
#include "src/work.h"

namespace levin::distributed {

namespace {

using Kind = Collective::Kind;

// A work in a lane, which outlives the group.
struct LaneState final : Work::State {
  LaneState(std::string name_, std::shared_ptr<Lane> lane_) : State(std::move(name_)), lane(std::move(lane_)) {}
  void help() override {
    lane->help([this] {
      const std::lock_guard lock(mutex);
      return done;
    });
  }
  const std::shared_ptr<Lane> lane;
};

class GlooGroup final : public WatchedGroup {
 public:
  explicit GlooGroup(GroupPlace place) : WatchedGroup(std::move(place)) {}

  ~GlooGroup() override {
    abort_after_exception();
    for (const auto& lane : {collectives_, sends_, receives_}) lane->finish();
  }

  std::string name() const override { return "gloo"; }

  Tensor shared_empty(const Shape& sizes, const TensorOptions& options) override {
    SharedTensors* tensors = options.device.type == DeviceType::cpu ? transport().tensors() : nullptr;
    if (tensors != nullptr && !sees_tensors_) sees_tensors_ = all_see(*tensors);
    const int64_t bytes = sizes.numel() * size_of(options.dtype.value_or(default_dtype()));
    const bool shared = tensors != nullptr && *sees_tensors_ && bytes > 0;
    const auto memory = shared ? tensors->allocate(static_cast<std::size_t>(bytes)) : nullptr;
    if (memory == nullptr) return ProcessGroup::shared_empty(sizes, options);
    return from_blob(memory.get(), sizes, options, [memory] {});
  }

 protected:
  std::shared_ptr<ProcessGroup> make_like_this(GroupPlace place) const override {
    return make_gloo_group(std::move(place));
  }

  Work begin(Collective c) override {
    const bool message = is_message(c.kind);
    const std::uint64_t sequence = message ? ++messages_ : ++collectives_begun_;
    const auto& lane = c.kind == Kind::send ? sends_ : c.kind == Kind::recv ? receives_ : collectives_;
    auto state = std::make_shared<LaneState>(operation_name(c.kind, sequence), lane);
    if (c.output.defined()) c.output.storage()->bump_version();
    const Announcement own = announcement_of(c, message ? 0 : sequence, size());
    const Tensor result = c.output;
    for (Tensor* t : {&c.output, &c.input}) {
      if (t->defined() && t->device().type != DeviceType::cpu) *t = t->detach().cpu();
    }
    lane->add([this, state, own, result, limit = timeout(), c = std::move(c)] {
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
  static void copy_back(const Tensor& to, const Tensor& from) {
    const no_grad guard;
    to.copy_(from);
    device_backend(to.device()).synchronize(to.device().index);
  }

  void run(const Collective& c, const Announcement& own, const std::string& operation, Milliseconds limit) {
    const auto channel = transport().channel(operation, Clock::now() + limit,
                                             is_message(c.kind) ? Traffic::message : Traffic::collective);
    try {
      if (const auto event = ended()) throw_event(*event, operation);
      if (c.kind == Kind::send) return run_send(*channel, c, own);
      if (c.kind == Kind::recv)
        return run_recv(*channel, c, [&](const Announcement& other) { check(own, other, c.root); });
      run_collective(*channel, c, own, [&](const Announcement& other, int from) { check(own, other, from); });
    } catch (const SplitMismatch& m) {
      fail_for(m, operation);
    } catch (const CollectiveTimeout&) {
      if (const auto event = ended()) throw_event(*event, operation);  // told by another rank
      time_out(describe(own), operation, limit);
    }
  }

  bool all_see(SharedTensors& tensors) {
    tensors.offer();
    barrier().wait();
    const Tensor accepted = from_data(std::vector<std::uint8_t>{tensors.accept()}, {1});
    all_reduce(accepted, ReduceOp::min).wait();
    return accepted.item<std::uint8_t>() != 0;
  }

  std::optional<bool> sees_tensors_;  // of each other's memory; asked by the first shared_empty()
  std::uint64_t collectives_begun_ = 0, messages_ = 0;
  const std::shared_ptr<Lane> collectives_ = std::make_shared<Lane>(), sends_ = std::make_shared<Lane>(),
                              receives_ = std::make_shared<Lane>();
};

}  // namespace

std::shared_ptr<ProcessGroup> make_gloo_group(GroupPlace place) {
  if (place.ranks.size() == 1) return make_single_group(std::move(place.ranks), place.timeout);
  return std::make_shared<GlooGroup>(std::move(place));
}

}  // namespace levin::distributed
