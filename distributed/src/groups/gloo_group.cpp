// The group of host tensors, over shared memory or Gloo's connections. One queue runs collectives on a thread of its
// own, and sends and receives have one each, so that two ranks that both send first do not wait for each other.

#include <levin/autograd/modes.h>

#include "src/groups/backends.h"
#include "src/groups/monitored_group.h"
#include "src/groups/task_queue.h"
#include "src/groups/work.h"
#include "src/transports/sigpipe.h"

namespace levin::distributed {

namespace {

using Kind = Collective::Kind;

// State of a work in a queue, which may outlive the group.
struct QueuedState final : Work::State {
  QueuedState(std::string name_, std::shared_ptr<TaskQueue> queue_)
      : State(std::move(name_)), queue(std::move(queue_)) {}
  void help() override {
    queue->help([this] {
      const std::lock_guard lock(mutex);
      return done;
    });
  }
  const std::shared_ptr<TaskQueue> queue;
};

class GlooGroup final : public MonitoredGroup {
 public:
  explicit GlooGroup(GroupPlace place) : MonitoredGroup(std::move(place)) {}

  ~GlooGroup() override {
    abort_after_exception();
    for (const auto& queue : {collectives_, sends_, receives_}) queue->finish();
  }

  std::string name() const override { return "gloo"; }

  Tensor shared_empty(const Shape& sizes, const TensorOptions& options) override {
    SharedTensors* tensors = options.device.value_or(kCpu).type == DeviceType::cpu ? transport().tensors() : nullptr;
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
    const auto& queue = c.kind == Kind::send ? sends_ : c.kind == Kind::recv ? receives_ : collectives_;
    auto state = std::make_shared<QueuedState>(operation_name(c.kind, sequence), queue);
    if (c.output.defined()) c.output.storage()->bump_version();
    const CollectiveHeader own = header_of(c, message ? 0 : sequence, size());
    const Tensor result = c.output;
    for (Tensor* t : {&c.output, &c.input}) {
      if (t->defined() && t->device().type != DeviceType::cpu) *t = t->detach().cpu();
    }
    queue->add([this, state, own, result, limit = timeout(), c = std::move(c)] {
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

  void run(const Collective& c, const CollectiveHeader& own, const std::string& operation, Duration limit) {
    const auto channel =
        transport().channel(operation, from_now(limit), is_message(c.kind) ? Traffic::message : Traffic::collective);
    try {
      if (const auto event = ended()) throw_event(*event, operation);
      if (c.kind == Kind::send) return run_send(*channel, c, own);
      if (c.kind == Kind::recv)
        return run_recv(*channel, c, [&](const CollectiveHeader& other) { check(own, other, c.root); });
      run_collective(*channel, c, own, [&](const CollectiveHeader& other, int from) { check(own, other, from); });
    } catch (const SplitMismatch& m) {
      fail_for(m, operation);
    } catch (const CollectiveTimeout&) {
      if (const auto event = ended()) throw_event(*event, operation);  // reported by another rank
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

  std::optional<bool> sees_tensors_;  // whether all ranks map each other's arenas; set by the first shared_empty()
  std::uint64_t collectives_begun_ = 0, messages_ = 0;
  const std::shared_ptr<TaskQueue> collectives_ = std::make_shared<TaskQueue>(), sends_ = std::make_shared<TaskQueue>(),
                                   receives_ = std::make_shared<TaskQueue>();
};

}  // namespace

std::shared_ptr<ProcessGroup> make_gloo_group(GroupPlace place) {
  if (place.ranks.size() == 1) return make_single_group(std::move(place.ranks), place.timeout);
  return std::make_shared<GlooGroup>(std::move(place));
}

}  // namespace levin::distributed
