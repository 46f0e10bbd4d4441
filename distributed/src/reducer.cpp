#include <fmt/format.h>
#include <fmt/ranges.h>
#include <levin/autograd/engine.h>
#include <levin/autograd/modes.h>
#include <levin/distributed/ddp.h>

#include <algorithm>

namespace levin::distributed {

namespace {

constexpr double kMiB = 1024.0 * 1024.0;

struct Slot {
  Tensor view;  // the parameter's gradient, a part of the bucket's memory
  std::size_t bucket = 0;
};

struct Bucket {
  std::vector<std::size_t> parameters;
  Tensor memory;  // (elements of all its parameters)
  std::size_t waiting = 0;
  Work work{};
};

}  // namespace

struct Reducer::Impl : std::enable_shared_from_this<Impl> {
  std::vector<Parameter> parameters;
  std::shared_ptr<ProcessGroup> group;
  DistributedDataParallelOptions options;
  std::vector<HookHandle> hooks;
  std::vector<Bucket> buckets;
  std::vector<Slot> slots;         // of each parameter
  std::vector<bool> ready;         // in the running backward
  std::vector<std::size_t> order;  // in which gradients became ready
  std::size_t next = 0;            // the bucket to be sent next
  bool sync = true, running = false, rebuilt = false;
  std::vector<std::size_t> new_order;  // to be taken up by the next backward
  int64_t overlapped = 0;

  void make_buckets(const std::vector<std::size_t>& in_order);
  void add_bucket(std::vector<std::size_t> members);
  void begin();
  void gradient_ready(std::size_t p);
  void mark_ready(std::size_t p);
  void finish();
  void count_unused(const std::vector<std::size_t>& unused, const std::vector<Tensor>& before);
  [[noreturn]] void refuse_unused(const std::vector<std::size_t>& unused);
  void agree_on_order();
};

// A bucket holds one dtype on one device and closes when it has reached its size.
void Reducer::Impl::make_buckets(const std::vector<std::size_t>& in_order) {
  buckets.clear();
  slots.assign(parameters.size(), {});
  std::vector<std::vector<std::size_t>> open;
  for (const std::size_t p : in_order) {
    const auto fits = [&](const std::vector<std::size_t>& members) {
      const Parameter& first = parameters[members.front()];
      return first.dtype() == parameters[p].dtype() && first.device() == parameters[p].device();
    };
    auto bucket = std::find_if(open.begin(), open.end(), fits);
    if (bucket == open.end()) bucket = open.insert(open.end(), std::vector<std::size_t>{});
    bucket->push_back(p);
    double bytes = 0;
    for (const std::size_t m : *bucket) {
      bytes += static_cast<double>(parameters[m].numel() * size_of(parameters[m].dtype()));
    }
    if (bytes < kMiB * (buckets.empty() ? options.first_bucket_mb : options.bucket_cap_mb)) continue;
    add_bucket(std::move(*bucket));
    open.erase(bucket);
  }
  for (auto& members : open) add_bucket(std::move(members));
}

void Reducer::Impl::add_bucket(std::vector<std::size_t> members) {
  const Parameter& first = parameters[members.front()];
  int64_t numel = 0;
  for (const std::size_t p : members) numel += parameters[p].numel();
  Bucket bucket{.parameters = std::move(members), .memory = empty({numel}, like(first))};
  int64_t at = 0;
  for (const std::size_t p : bucket.parameters) {
    const Parameter& parameter = parameters[p];
    slots[p] = {bucket.memory.narrow(0, at, parameter.numel()).view(parameter.sizes()), buckets.size()};
    at += parameter.numel();
    if (!parameter.grad().defined()) continue;
    slots[p].view.copy_(parameter.grad());
    parameter.set_grad(slots[p].view);
  }
  buckets.push_back(std::move(bucket));
}

// The first gradient of a backward is ready.
void Reducer::Impl::begin() {
  running = true;
  if (!new_order.empty()) make_buckets(std::exchange(new_order, {}));
  ready.assign(parameters.size(), false);
  order.clear();
  next = 0;
  for (Bucket& b : buckets) b.waiting = b.parameters.size();
  on_backward_end([self = shared_from_this()] { self->finish(); },
                  [self = shared_from_this()] { self->running = false; });
}

void Reducer::Impl::gradient_ready(std::size_t p) {
  if (!sync) return;
  const no_grad guard;
  if (!running) begin();
  if (ready[p]) {
    throw GradError(fmt::format("[ddp] the gradient of {} became ready twice in one backward.", parameters[p].name));
  }
  order.push_back(p);
  const Slot& slot = slots[p];
  const Tensor grad = parameters[p].grad();
  if (!grad.shares_storage(slot.view) || grad.storage_offset() != slot.view.storage_offset()) {
    slot.view.copy_(grad);
    parameters[p].set_grad(slot.view);
  }
  const std::size_t before = next;
  mark_ready(p);
  if (order.size() < parameters.size()) overlapped += static_cast<int64_t>(next - before);
}

// Buckets are sent in their order, whatever order they become ready in: it must be the same on all ranks.
void Reducer::Impl::mark_ready(std::size_t p) {
  ready[p] = true;
  --buckets[slots[p].bucket].waiting;
  for (; next < buckets.size() && buckets[next].waiting == 0; ++next) {
    buckets[next].work = group->all_reduce(buckets[next].memory, ReduceOp::avg);
  }
}

void Reducer::Impl::finish() {
  running = false;
  const no_grad guard;
  std::vector<std::size_t> unused;
  std::vector<Tensor> before;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!ready[p]) unused.push_back(p);
  }
  if (!unused.empty() && !options.find_unused_parameters) refuse_unused(unused);
  for (const std::size_t p : unused) {
    const Tensor grad = parameters[p].grad();
    before.push_back(grad.defined() ? grad.clone() : Tensor());
    if (!grad.defined()) {
      slots[p].view.zero_();
    } else if (!grad.shares_storage(slots[p].view)) {
      slots[p].view.copy_(grad);
    }
  }
  for (const std::size_t p : unused) mark_ready(p);
  for (const Bucket& b : buckets) b.work.wait();
  if (options.find_unused_parameters) count_unused(unused, before);
  if (!rebuilt) agree_on_order();
}

// A parameter that some rank used gets the average; one that none used keeps what it had.
void Reducer::Impl::count_unused(const std::vector<std::size_t>& unused, const std::vector<Tensor>& before) {
  std::vector<std::uint8_t> used(parameters.size(), 1);
  for (const std::size_t p : unused) used[p] = 0;
  const Tensor flags = from_data(used, {static_cast<int64_t>(used.size())});
  group->all_reduce(flags, ReduceOp::max).wait();
  for (std::size_t i = 0; i < unused.size(); ++i) {
    const std::size_t p = unused[i];
    if (flags.data<std::uint8_t>()[p] != 0) {
      parameters[p].set_grad(slots[p].view);
    } else if (before[i].defined()) {
      slots[p].view.copy_(before[i]);
      parameters[p].set_grad(slots[p].view);
    }
  }
}

void Reducer::Impl::refuse_unused(const std::vector<std::size_t>& unused) {
  std::vector<std::string> names;
  for (const std::size_t p : unused) names.push_back(parameters[p].name);
  const std::string text = fmt::format(
      "[ddp] backward did not reach {} of {} parameters on rank {}: {}. Use them in the loss, or set "
      "find_unused_parameters.",
      names.size(), parameters.size(), group->rank(), fmt::join(names, ", "));
  group->abort(text);
  throw GradError(text);
}

// What rank 0 saw is the order of the buckets from now on; what it did not see comes last.
void Reducer::Impl::agree_on_order() {
  rebuilt = true;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (std::find(order.begin(), order.end(), p) == order.end()) order.push_back(p);
  }
  const std::vector<int64_t> own(order.begin(), order.end());
  const Tensor common = from_data(own, {static_cast<int64_t>(own.size())});
  group->broadcast(common, 0).wait();
  for (const int64_t p : common.to_vector<int64_t>()) new_order.push_back(static_cast<std::size_t>(p));
}

Reducer::Reducer(std::vector<Parameter> parameters, std::shared_ptr<ProcessGroup> group,
                 const DistributedDataParallelOptions& options)
    : impl_(std::make_shared<Impl>()) {
  const no_grad guard;
  std::erase_if(parameters, [](const Parameter& p) { return !p.requires_grad(); });
  if (parameters.empty())
    throw ValueError("[ddp] the module has no parameter that requires grad, so nothing is to be averaged.");
  impl_->parameters = std::move(parameters);
  impl_->group = std::move(group);
  impl_->options = options;
  std::vector<std::size_t> reversed;
  for (std::size_t p = impl_->parameters.size(); p-- > 0;) reversed.push_back(p);
  impl_->make_buckets(reversed);
  for (std::size_t p = 0; p < impl_->parameters.size(); ++p) {
    impl_->hooks.push_back(impl_->parameters[p].register_post_accumulate_grad_hook(
        [impl = impl_.get(), p](const Tensor&) { impl->gradient_ready(p); }));
  }
}

Reducer::~Reducer() {
  for (HookHandle& h : impl_->hooks) h.remove();
}

void Reducer::set_sync(bool on) { impl_->sync = on; }
bool Reducer::sync() const { return impl_->sync; }
int64_t Reducer::overlapped() const { return impl_->overlapped; }

std::vector<std::vector<std::string>> Reducer::buckets() const {
  std::vector<std::vector<std::string>> names;
  for (const Bucket& b : impl_->buckets) {
    names.emplace_back();
    for (const std::size_t p : b.parameters) names.back().push_back(impl_->parameters[p].name);
  }
  return names;
}

}  // namespace levin::distributed
