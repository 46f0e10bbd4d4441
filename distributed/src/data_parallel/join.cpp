// The part of DDP before a forward, and training with uneven inputs: before each step of a join the ranks tell each
// other whether they take part. Those that have finished then mirror the operations of the others, with zeros.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/distributed/ddp.h>

namespace levin::distributed {

// The operations of the ranks with batches in one step.
struct DistributedDataParallel::Step {
  int active = 0;        // number of ranks with batches
  int lowest = -1;       // the lowest of them
  bool sync = false;     // gradients are exchanged
  bool buffers = false;  // buffers are broadcast before the forward
};

class DistributedDataParallel::Joining {
 public:
  Joining(DistributedDataParallel& ddp, const JoinOptions& options) : ddp_(ddp) { ddp.joining_ = &options; }
  ~Joining() {
    ddp_.joining_ = nullptr;
    ddp_.reducer_.set_active(ddp_.group_->size(), 0, true);
  }
  Joining(const Joining&) = delete;
  Joining& operator=(const Joining&) = delete;

 private:
  DistributedDataParallel& ddp_;
};

DistributedDataParallel::Step DistributedDataParallel::announce(bool active) {
  const std::vector<std::uint8_t> own = {active, reducer_.sync(), broadcast_buffers_ && buffers_due_};
  const auto width = static_cast<int64_t>(own.size());
  const Tensor all = empty({group_->size() * width}, {.dtype = kUInt8});
  group_->all_gather(all, from_data(own, {width})).wait();
  Step step;
  std::vector<int> through, others;
  for (int r = 0; r < group_->size(); ++r) {
    const std::uint8_t* said = all.data<std::uint8_t>() + r * width;
    if (said[0] == 0) {
      through.push_back(r);
      continue;
    }
    if (step.active++ == 0) {
      step.lowest = r;
      step.sync = said[1] != 0;
      step.buffers = said[2] != 0;
    } else if (step.sync != (said[1] != 0)) {
      others.push_back(r);
    }
  }
  if (step.active == 0) return step;
  if (!others.empty()) {
    throw CollectiveMismatch(fmt::format(
        "[join] rank {} {} its gradients in this step, but rank {} does not do so. Ranks accumulate over the "
        "same steps; the last ones of a rank may have to be left out.",
        step.lowest, step.sync ? "exchanges" : "keeps", fmt::join(others, ", ")));
  }
  if (joining_->throw_on_early_termination && !through.empty()) {
    throw DistributedError(
        fmt::format("[join] rank {} has no more batches, so all ranks end here.", fmt::join(through, ", ")));
  }
  reducer_.set_active(step.active, step.lowest, joining_->divide_by_initial_world_size);
  lowest_active_ = step.lowest;
  return step;
}

void DistributedDataParallel::before_forward() {
  const bool counts = module_.is_training() && (joining_ == nullptr || grad_enabled());
  if (!counts) return;
  const int root = joining_ != nullptr ? announce(true).lowest : 0;
  // Buffers that were broadcast at the start, or before a forward without an exchange, are not broadcast again.
  if (broadcast_buffers_ && buffers_due_) broadcast_all(*group_, buffers(), root);
  buffers_due_ = reducer_.sync();
}

std::vector<Tensor> DistributedDataParallel::buffers() const {
  std::vector<Tensor> all;
  for (const auto& [name, t] : module_.named_buffers()) all.push_back(t);
  return all;
}

void DistributedDataParallel::join(const std::function<void()>& body, const JoinOptions& options) {
  if (joining_ != nullptr) throw ValueError("[join] a join is in progress; joins cannot be nested.");
  lowest_active_ = -1;
  {
    const Joining scope(*this, options);
    body();
    for (;;) {
      const Step step = announce(false);
      if (step.active == 0) break;
      if (step.buffers) broadcast_all(*group_, buffers(), step.lowest);
      buffers_due_ = step.sync;
      if (!step.sync) continue;
      reducer_.shadow(static_cast<bool>(options.shadow_step));
      if (options.shadow_step) options.shadow_step();
    }
  }
  if (lowest_active_ < 0) return;  // no rank had a batch
  std::vector<Tensor> tensors = buffers();
  for (const Parameter& p : module_.parameters()) tensors.push_back(p);
  broadcast_all(*group_, tensors, lowest_active_);
  buffers_due_ = false;
}

}  // namespace levin::distributed
