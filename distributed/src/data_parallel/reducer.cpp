#include <fmt/format.h>
#include <fmt/ranges.h>
#include <levin/autograd/engine.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/autograd/row_gradient.h>
#include <levin/distributed/ddp.h>

#include <algorithm>
#include <utility>

#include "src/data_parallel/exchange.h"

namespace levin::distributed {

namespace {

constexpr double kMiB = 1024.0 * 1024.0;

struct Slot {
  Tensor view;  // the parameter's gradient, a view of the bucket's memory
  std::size_t bucket = 0;
};

struct Bucket {
  std::vector<std::size_t> parameters;
  Tensor memory;  // (elements of all its parameters)
  std::size_t waiting = 0;
  CommStages stages{};  // still to run
};

}  // namespace

struct Reducer::Impl : std::enable_shared_from_this<Impl> {
  std::vector<Parameter> parameters;
  std::shared_ptr<ProcessGroup> group;
  DistributedDataParallelOptions options;
  CommHook hook = allreduce_hook;
  bool own_hook = false;
  std::vector<HookHandle> hooks;
  std::vector<Bucket> buckets;
  std::vector<Slot> slots;         // by parameter
  std::vector<bool> ready;         // in the current backward
  std::vector<std::uint8_t> used;  // since the last exchange, also under no_sync
  std::vector<std::size_t> order;  // in which gradients became ready
  std::size_t next = 0;            // index of the next bucket to send
  bool sync = true, running = false, rebuilt = false;
  std::vector<int64_t> common_order;   // of all ranks, once they have agreed
  std::vector<std::size_t> new_order;  // to be applied by the next backward
  int64_t overlapped = 0;
  int lowest_active = 0;
  double correction = 1;  // factor for averages over all ranks when some do not take part

  // Unused parameters. With a static graph those of the first step count: on all ranks since the first exchange, on
  // this one since its own first backward, which may come later.
  std::vector<std::size_t> unused;
  std::vector<Tensor> before;                // their gradients before this backward
  std::vector<std::uint8_t> used_somewhere;  // whether any rank used it, by parameter
  bool known = false, known_here = false;
  std::vector<std::size_t> unused_here;

  void make_buckets(const std::vector<std::size_t>& in_order);
  void add_bucket(std::vector<std::size_t> members);
  void take_up_order();
  void begin();
  void gradient_ready(std::size_t p);
  void mark_ready(std::size_t p);
  void mark_unused(std::size_t p);
  void send(std::size_t b, const Tensor& memory);
  void finish_buckets();
  void finish();
  void find_used(const std::vector<std::uint8_t>& own);
  void settle_unused();
  void find_unused();
  void shadow(bool keep);
  void keep_averages(std::size_t b, const Tensor& averages);
  void check_first_step();
  [[noreturn]] void refuse(const std::string& text);
  std::string names_of(const std::vector<std::size_t>& list) const;
  void agree_on_order();
  void follow(const std::vector<int64_t>& agreed);
};

// A bucket holds one dtype on one device, and is closed when it has reached its size.
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
  Bucket bucket{.parameters = std::move(members), .memory = group->shared_empty({numel}, like(first))};
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

void Reducer::Impl::take_up_order() {
  if (!new_order.empty()) make_buckets(std::exchange(new_order, {}));
}

// Called when the first gradient of a backward is ready.
void Reducer::Impl::begin() {
  running = true;
  take_up_order();
  ready.assign(parameters.size(), false);
  order.clear();
  unused.clear();
  before.clear();
  next = 0;
  for (Bucket& b : buckets) b.waiting = b.parameters.size();
  on_backward_end([self = shared_from_this()] { self->finish(); },
                  [self = shared_from_this()] { self->running = false; });
  for (const std::size_t p : unused_here) mark_unused(p);
}

void Reducer::Impl::gradient_ready(std::size_t p) {
  used[p] = 1;
  if (!sync) return;
  const no_grad guard;
  if (!running) begin();
  if (ready[p]) {
    if (std::find(unused.begin(), unused.end(), p) != unused.end()) {
      refuse(fmt::format("[ddp] backward reached {} on rank {}, which its first step did not. Unset static_graph.",
                         parameters[p].name, group->rank()));
    }
    throw GradError(fmt::format("[ddp] the gradient of {} became ready twice in one backward.", parameters[p].name));
  }
  require_dense_grad("ddp", parameters[p]);
  order.push_back(p);
  const Slot& slot = slots[p];
  const Tensor grad = parameters[p].grad();
  if (!grad.shares_storage(slot.view) || grad.storage_offset() != slot.view.storage_offset()) {
    slot.view.copy_(grad);
    parameters[p].set_grad(slot.view);
  }
  const std::size_t sent = next;
  mark_ready(p);
  if (order.size() + unused.size() < parameters.size()) overlapped += static_cast<int64_t>(next - sent);
}

// Buckets are sent in a fixed order, whatever order they become ready in: it must be the same on all ranks.
void Reducer::Impl::mark_ready(std::size_t p) {
  ready[p] = true;
  --buckets[slots[p].bucket].waiting;
  for (; next < buckets.size() && buckets[next].waiting == 0; ++next) send(next, buckets[next].memory);
}

// A parameter that backward does not reach counts with its gradient of earlier backwards, or with zero.
void Reducer::Impl::mark_unused(std::size_t p) {
  const Tensor grad = parameters[p].grad();
  unused.push_back(p);
  before.push_back(grad.defined() ? grad.clone() : Tensor());
  if (!grad.defined()) {
    slots[p].view.zero_();
  } else if (!grad.shares_storage(slots[p].view)) {
    slots[p].view.copy_(grad);
  }
  mark_ready(p);
}

void Reducer::Impl::send(std::size_t b, const Tensor& memory) {
  GradBucket bucket{.index = b, .buffer = memory, .parameters = buckets[b].parameters};
  int64_t at = 0;
  for (const std::size_t p : bucket.parameters) {
    const Parameter& parameter = parameters[p];
    bucket.gradients.push_back(memory.narrow(0, at, parameter.numel()).view(parameter.sizes()));
    at += parameter.numel();
  }
  buckets[b].stages = hook(*group, bucket);
}

void Reducer::Impl::finish_buckets() {
  std::vector<CommStages> all;
  for (Bucket& b : buckets) all.push_back(std::exchange(b.stages, {}));
  run_stages(all);
}

void Reducer::Impl::finish() {
  running = false;
  const no_grad guard;
  if (!std::all_of(ready.begin(), ready.end(), [](bool r) { return r; })) find_unused();
  finish_buckets();
  if (correction != 1) {
    for (const Bucket& b : buckets) b.memory.mul_(correction);
  }
  find_used(used);
  used.assign(parameters.size(), 0);
  settle_unused();
  if (options.static_graph && !std::exchange(known_here, true)) check_first_step();
  if (!rebuilt) agree_on_order();
}

// For a static graph. The first step of other ranks may have been an earlier one in which this rank did not take part.
void Reducer::Impl::check_first_step() {
  unused_here = unused;
  for (const std::size_t p : order) {
    if (used_somewhere[p] != 0) continue;
    refuse(fmt::format("[ddp] backward reached {} on rank {}, which no rank's first step did. Unset static_graph.",
                       parameters[p].name, group->rank()));
  }
}

void Reducer::Impl::find_unused() {
  std::vector<std::size_t> missing;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!ready[p]) missing.push_back(p);
  }
  if (options.static_graph && known_here) {
    refuse(fmt::format("[ddp] backward did not reach {} on rank {}, as its first step did. Unset static_graph.",
                       names_of(missing), group->rank()));
  }
  if (!options.static_graph && !options.find_unused_parameters) {
    refuse(
        fmt::format("[ddp] backward did not reach {} of {} parameters on rank {}: {}. Use them in the loss, or set "
                    "find_unused_parameters.",
                    missing.size(), parameters.size(), group->rank(), names_of(missing)));
  }
  for (const std::size_t p : missing) mark_unused(p);
}

// Finds the parameters that any rank used: in each exchange, or with a static graph in the first one.
void Reducer::Impl::find_used(const std::vector<std::uint8_t>& own) {
  if (options.static_graph ? std::exchange(known, true) : !options.find_unused_parameters) return;
  const Tensor flags = from_data(own, {static_cast<int64_t>(own.size())});
  group->all_reduce(flags, ReduceOp::max).wait();
  used_somewhere = flags.to_vector<std::uint8_t>();
}

// A parameter that any rank used gets the average; the others keep their gradients.
void Reducer::Impl::settle_unused() {
  for (std::size_t i = 0; i < unused.size(); ++i) {
    const std::size_t p = unused[i];
    if (used_somewhere[p] != 0) {
      parameters[p].set_grad(slots[p].view);
    } else if (before[i].defined()) {
      slots[p].view.copy_(before[i]);
      parameters[p].set_grad(slots[p].view);
    }
  }
  before.clear();
}

// A parameter that no rank used keeps its gradient, as on the ranks that take part.
void Reducer::Impl::keep_averages(std::size_t b, const Tensor& averages) {
  int64_t at = 0;
  for (const std::size_t p : buckets[b].parameters) {
    const int64_t numel = parameters[p].numel();
    if (used_somewhere.empty() || used_somewhere[p] != 0) {
      slots[p].view.copy_(averages.narrow(0, at, numel).view(parameters[p].sizes()));
      parameters[p].set_grad(slots[p].view);
    }
    at += numel;
  }
}

void Reducer::Impl::shadow(bool keep) {
  const no_grad guard;
  take_up_order();
  std::vector<Tensor> memories;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    memories.push_back(zeros_like(buckets[b].memory));
    send(b, memories.back());
  }
  finish_buckets();
  find_used(std::vector<std::uint8_t>(parameters.size(), 0));
  for (std::size_t b = 0; keep && b < buckets.size(); ++b) keep_averages(b, memories[b].mul_(correction));
  if (!rebuilt) agree_on_order();
}

std::string Reducer::Impl::names_of(const std::vector<std::size_t>& list) const {
  std::vector<std::string> names;
  for (const std::size_t p : list) names.push_back(parameters[p].name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void Reducer::Impl::refuse(const std::string& text) {
  group->abort(text);
  throw GradError(text);
}

// The order seen by the lowest active rank becomes the order of the buckets; parameters that it did not see come last.
void Reducer::Impl::agree_on_order() {
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (std::find(order.begin(), order.end(), p) == order.end()) order.push_back(p);
  }
  const std::vector<int64_t> own(order.begin(), order.end());
  const Tensor common = from_data(own, {static_cast<int64_t>(own.size())});
  group->broadcast(common, lowest_active).wait();
  follow(common.to_vector<int64_t>());
}

void Reducer::Impl::follow(const std::vector<int64_t>& agreed) {
  rebuilt = true;
  common_order = agreed;
  new_order.clear();
  for (const int64_t p : agreed) new_order.push_back(static_cast<std::size_t>(p));
}

Reducer::Reducer(std::vector<Parameter> parameters, std::shared_ptr<ProcessGroup> group,
                 const DistributedDataParallelOptions& options)
    : impl_(std::make_shared<Impl>()) {
  const no_grad guard;
  std::erase_if(parameters, [](const Parameter& p) { return !p.requires_grad(); });
  if (parameters.empty())
    throw ValueError("[ddp] the module has no parameter that requires grad, so there is nothing to average.");
  impl_->parameters = std::move(parameters);
  impl_->group = std::move(group);
  impl_->options = options;
  impl_->used.assign(impl_->parameters.size(), 0);
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

void Reducer::register_comm_hook(CommHook hook) {
  if (impl_->own_hook) throw ValueError("[ddp] a communication hook is registered already; a reducer has one.");
  impl_->hook = std::move(hook);
  impl_->own_hook = true;
}

void Reducer::set_active(int ranks, int lowest, bool divide_by_all) {
  impl_->lowest_active = lowest;
  impl_->correction = divide_by_all ? 1 : static_cast<double>(impl_->group->size()) / ranks;
}

void Reducer::shadow(bool keep) { impl_->shadow(keep); }
void Reducer::set_sync(bool on) { impl_->sync = on; }
bool Reducer::sync() const { return impl_->sync; }
std::vector<int64_t> Reducer::order() const { return impl_->common_order; }

void Reducer::set_order(const std::vector<int64_t>& order) {
  std::vector<int64_t> sorted = order;
  std::ranges::sort(sorted);
  bool each = sorted.size() == impl_->parameters.size();
  for (std::size_t i = 0; each && i < sorted.size(); ++i) each = sorted[i] == static_cast<int64_t>(i);
  if (!each)
    throw ValueError(fmt::format("[ddp] an order of {} places was given for {} parameters. Give each of them once.",
                                 order.size(), impl_->parameters.size()));
  impl_->follow(order);
}

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
