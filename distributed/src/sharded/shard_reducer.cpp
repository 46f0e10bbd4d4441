#include "src/sharded/shard_reducer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <levin/autograd/engine.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>

#include <algorithm>

namespace levin::distributed {

namespace {

/// A unit and its progress in backward.
struct Watched {
  std::shared_ptr<const FlatUnit> unit;
  std::vector<std::uint8_t> ready{};  // in this backward
  std::vector<std::uint8_t> used{};   // since the last exchange
  std::size_t waiting = 0;
  Tensor part{};  // this rank's part of the averages, in flight
  Work work{};
};

}  // namespace

struct ShardReducer::Impl : std::enable_shared_from_this<Impl> {
  std::shared_ptr<ProcessGroup> group;
  Options options;
  std::vector<Watched> units;
  std::vector<HookHandle> hooks;
  bool sync = true, running = false;
  std::size_t next = 0;  // index of the next unit to send
  int64_t overlapped = 0;

  void begin();
  void gradient_ready(std::size_t u, std::size_t i);
  void send(Watched& w) const;
  void settle(Watched& w, const std::uint8_t* used_somewhere) const;
  void finish();
  void refuse_missing() const;
  std::vector<std::uint8_t> used_on_any(const std::vector<Watched*>& list) const;
};

void ShardReducer::Impl::begin() {
  running = true;
  next = 0;
  for (Watched& w : units) {
    const auto& entries = w.unit->entries();
    w.ready.assign(entries.size(), 0);
    w.waiting = 0;
    for (const UnitEntry& e : entries) w.waiting += e.parameter.requires_grad() ? 1 : 0;
  }
  on_backward_end([self = shared_from_this()] { self->finish(); },
                  [self = shared_from_this()] {
                    self->running = false;
                    if (self->options.backward_done) self->options.backward_done();
                  });
}

void ShardReducer::Impl::gradient_ready(std::size_t u, std::size_t i) {
  const no_grad guard;
  if (!running) begin();
  Watched& w = units[u];
  if (w.ready[i] != 0)
    throw GradError(fmt::format("[zero] the gradient of {} became ready twice in one backward.",
                                w.unit->entries()[i].parameter.name));
  w.ready[i] = w.used[i] = 1;
  if (--w.waiting > 0) return;
  if (options.unit_ready) options.unit_ready(u);
  if (!sync) return;
  for (; next < units.size() && units[next].waiting == 0; ++next) {
    send(units[next]);
    if (next + 1 < units.size()) ++overlapped;
  }
}

// Sends nothing for a unit whose parameters are all frozen.
void ShardReducer::Impl::send(Watched& w) const {
  const auto trains = [](const UnitEntry& e) { return e.parameter.requires_grad(); };
  if (std::none_of(w.unit->entries().begin(), w.unit->entries().end(), trains)) return;
  w.part = w.unit->empty_part();
  w.work = group->reduce_scatter(w.part, w.unit->take_gradients(), ReduceOp::avg);
}

// A parameter that no rank used keeps its gradient. The result is added to gradients of an earlier exchange.
void ShardReducer::Impl::settle(Watched& w, const std::uint8_t* used_somewhere) const {
  if (!w.part.defined()) return;
  w.work.wait();
  w.work = Work();
  const Tensor part = std::exchange(w.part, Tensor());
  const auto& entries = w.unit->entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const UnitEntry& e = entries[i];
    if (!e.parameter.requires_grad() || (used_somewhere != nullptr && used_somewhere[i] == 0)) continue;
    const Tensor grad = w.unit->piece_of(part, e), before = e.piece.grad();
    if (before.defined())
      before.add_(grad);
    else
      e.piece.set_grad(grad);
  }
}

void ShardReducer::Impl::refuse_missing() const {
  std::vector<std::string> missing;
  std::size_t all = 0;
  for (const Watched& w : units) {
    const auto& entries = w.unit->entries();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!entries[i].parameter.requires_grad()) continue;
      ++all;
      if (w.ready[i] == 0) missing.push_back(entries[i].parameter.name);
    }
  }
  const std::string text = fmt::format(
      "[zero] backward did not reach {} of {} parameters on rank {}: {}. Use them in the loss, or set "
      "find_unused_parameters.",
      missing.size(), all, group->rank(), fmt::join(missing, ", "));
  group->abort(text);
  throw GradError(text);
}

std::vector<std::uint8_t> ShardReducer::Impl::used_on_any(const std::vector<Watched*>& list) const {
  std::vector<std::uint8_t> own;
  for (const Watched* w : list) own.insert(own.end(), w->used.begin(), w->used.end());
  const Tensor flags = from_data(own, {static_cast<int64_t>(own.size())});
  group->all_reduce(flags, ReduceOp::max).wait();
  return flags.to_vector<std::uint8_t>();
}

void ShardReducer::Impl::finish() {
  running = false;
  const no_grad guard;
  if (sync) {
    if (next < units.size() && !options.find_unused_parameters) refuse_missing();
    for (; next < units.size(); ++next) send(units[next]);
    std::vector<Watched*> all;
    for (Watched& w : units) all.push_back(&w);
    const auto used = options.find_unused_parameters ? used_on_any(all) : std::vector<std::uint8_t>();
    std::size_t at = 0;
    for (Watched& w : units) {
      settle(w, used.empty() ? nullptr : used.data() + at);
      at += w.used.size();
      w.used.assign(w.used.size(), 0);
    }
  }
  if (options.backward_done) options.backward_done();
}

ShardReducer::ShardReducer(std::shared_ptr<ProcessGroup> group, Options options) : impl_(std::make_shared<Impl>()) {
  impl_->group = std::move(group);
  impl_->options = std::move(options);
}

ShardReducer::~ShardReducer() {
  for (HookHandle& h : impl_->hooks) h.remove();
}

void ShardReducer::add(std::shared_ptr<const FlatUnit> unit) {
  const std::size_t u = impl_->units.size(), count = unit->entries().size();
  for (std::size_t i = 0; i < count; ++i) {
    // Frozen parameters have no gradient accumulator yet, but may be unfrozen later.
    const Parameter& p = unit->entries()[i].parameter;
    const bool frozen = !p.requires_grad();
    if (frozen) p.requires_grad_();
    impl_->hooks.push_back(p.register_post_accumulate_grad_hook(
        [impl = impl_.get(), u, i](const Tensor&) { impl->gradient_ready(u, i); }));
    if (frozen) p.requires_grad_(false);
  }
  impl_->units.push_back({.unit = std::move(unit), .used = std::vector<std::uint8_t>(count, 0)});
}

void ShardReducer::set_sync(bool on) { impl_->sync = on; }
bool ShardReducer::sync() const { return impl_->sync; }
int64_t ShardReducer::overlapped() const { return impl_->overlapped; }

void ShardReducer::reduce(const std::vector<const FlatUnit*>& units) {
  const no_grad guard;
  std::vector<Watched*> list;
  for (Watched& w : impl_->units)
    if (std::find(units.begin(), units.end(), w.unit.get()) != units.end()) list.push_back(&w);
  for (Watched* w : list) {
    const auto& entries = w->unit->entries();
    for (std::size_t i = 0; i < entries.size(); ++i) w->used[i] = entries[i].parameter.grad().defined() ? 1 : 0;
  }
  if (list.empty()) return;
  const auto used = impl_->used_on_any(list);
  std::size_t at = 0;
  for (Watched* w : list) {
    const std::uint8_t* flags = used.data() + at;
    at += w->used.size();
    w->used.assign(w->used.size(), 0);
    if (std::find(flags, used.data() + at, 1) == used.data() + at) continue;
    impl_->send(*w);
    impl_->settle(*w, flags);
  }
}

}  // namespace levin::distributed
