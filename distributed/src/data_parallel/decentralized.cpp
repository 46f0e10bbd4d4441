#include <fmt/format.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/distributed/bagua.h>

#include <algorithm>
#include <utility>

#include "src/data_parallel/exchange.h"
#include "src/data_parallel/flat.h"

namespace levin::distributed {

namespace {

void wait_for(const std::vector<Work>& works) {
  for (const Work& w : works) w.wait();
}

}  // namespace

// --- consensus

namespace {

/// Averages `all` (ranks, ...) as consensus() does.
Tensor average_from_first(const Tensor& all) {
  const Tensor first = all.select(0, 0);
  if (!all.is_floating()) return first.clone();
  const DType wide = all.dtype() == kFloat64 ? kFloat64 : kFloat32;
  const Tensor x0 = first.to(wide);
  Tensor away = zeros(x0.sizes(), like(x0));
  const auto ranks = static_cast<int>(all.size(0));
  for (int r = 1; r < ranks; ++r) away = add(away, sub(all.select(0, r).to(wide), x0));
  return add(x0, div(away, ranks)).to(all.dtype());
}

}  // namespace

StateDict consensus(ProcessGroup& group, const StateDict& replica) {
  const no_grad guard;
  StateDict average;
  for (const auto& [name, own] : replica) {
    std::vector<int64_t> sizes(own.sizes().begin(), own.sizes().end());
    sizes.insert(sizes.begin(), group.size());
    const Tensor all = empty(Shape{std::span<const int64_t>(sizes)}, like(own));
    group.all_gather(all, own.detach().contiguous()).wait();
    average.set(name, average_from_first(all));
  }
  return average;
}

// --- PeerAverage

struct PeerAverage::Part {
  Places places;
  Tensor own, other;  // `other` is undefined where all ranks are averaged in `own`
  std::vector<Work> works;
};

PeerAverage::PeerAverage(std::shared_ptr<ProcessGroup> group, Peers peers)
    : group_(group_of_its_own(*group)), peers_(peers) {
  if (peers == Peers::shift_one && group->size() > 1 && group->size() % 2 != 0)
    throw ValueError(
        fmt::format("[decentralized] shift_one makes pairs, and there are {} ranks. Use an even number, or peers all.",
                    group->size()));
}

PeerAverage::~PeerAverage() = default;

int PeerAverage::peer(int rank, int size, int64_t step) {
  const int half = size / 2, shift = static_cast<int>(step % half);
  return rank < half ? half + (rank + shift) % half : (rank - half - shift + half) % half;
}

void PeerAverage::begin(const std::vector<Parameter>& parameters) {
  const no_grad guard;
  const auto weights = detached(parameters);
  parts_.clear();
  for (const Places& places : by_type(weights)) {
    Part part{.places = places, .own = packed(weights, places), .other = {}, .works = {}};
    if (peers_ == Peers::all || group_->size() == 1) {
      part.works = {group_->all_reduce(part.own, ReduceOp::avg)};
    } else {
      const int other = peer(group_->rank(), group_->size(), steps_);
      part.other = empty_like(part.own);
      part.works = {group_->send(part.own, other), group_->recv(part.other, other)};
    }
    parts_.push_back(std::move(part));
  }
  ++steps_;
}

void PeerAverage::finish(const std::vector<Parameter>& parameters) {
  if (parts_.empty()) begin(parameters);
  const no_grad guard;
  const auto weights = detached(parameters);
  for (const Part& part : std::exchange(parts_, {})) {
    wait_for(part.works);
    unpack(part.other.defined() ? mul(add(part.own, part.other), 0.5) : part.own, weights, part.places);
  }
}

// --- RingDifferences

RingDifferences::RingDifferences(std::shared_ptr<ProcessGroup> group) : group_(group_of_its_own(*group)) {}
int RingDifferences::left() const { return (group_->rank() + group_->size() - 1) % group_->size(); }
int RingDifferences::right() const { return (group_->rank() + 1) % group_->size(); }

void RingDifferences::meet(const std::vector<Parameter>& parameters) {
  if (!own_.empty() || group_->size() == 1) return;
  const no_grad guard;
  std::vector<Work> works;
  for (const Parameter& p : parameters) {
    own_.push_back(p.detach().contiguous().clone());
    left_.push_back(empty_like(own_.back()));
    right_.push_back(empty_like(own_.back()));
    works.push_back(group_->send(own_.back(), left(), 0));
    works.push_back(group_->send(own_.back(), right(), 1));
    works.push_back(group_->recv(right_.back(), right(), 0));
    works.push_back(group_->recv(left_.back(), left(), 1));
  }
  wait_for(works);
}

void RingDifferences::exchange(const std::vector<Parameter>& parameters) {
  if (group_->size() == 1) return;
  const no_grad guard;
  // A message holds the levels (elements of all parameters) and the ranges (parameters, 2).
  int64_t numel = 0;
  for (const Tensor& t : own_) numel += t.numel();
  const auto count = static_cast<int64_t>(own_.size());
  const Device device = own_.front().device();
  const auto message = [&] {
    return ByteRows{empty({numel}, {.dtype = kUInt8, .device = device}),
                    empty({count, 2}, {.dtype = kFloat32, .device = device})};
  };
  const ByteRows sent = message(), from_left = message(), from_right = message();
  int64_t at = 0;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const Tensor mixed = add(parameters[i].detach(), mul(add(left_[i], right_[i]), 1.0 / 3));
    const ByteRows change = quantize_rows(sub(mixed, mul(own_[i], 5.0 / 3)).reshape({1, -1}));
    sent.levels.narrow(0, at, own_[i].numel()).copy_(change.levels.flatten());
    sent.ranges.narrow(0, static_cast<int64_t>(i), 1).copy_(change.ranges);
    at += own_[i].numel();
  }
  std::vector<Work> works;
  for (const bool levels : {true, false}) {
    const auto& part = levels ? &ByteRows::levels : &ByteRows::ranges;
    works.push_back(group_->send(sent.*part, left(), 0));
    works.push_back(group_->send(sent.*part, right(), 1));
    works.push_back(group_->recv(from_right.*part, right(), 0));
    works.push_back(group_->recv(from_left.*part, left(), 1));
  }
  wait_for(works);
  const auto add_to = [&](const std::vector<Tensor>& copies, const ByteRows& changes) {
    int64_t begin = 0;
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const Tensor levels = changes.levels.narrow(0, begin, copies[i].numel()).view({1, copies[i].numel()});
      const Tensor ranges = changes.ranges.narrow(0, static_cast<int64_t>(i), 1);
      copies[i].add_(dequantize_rows({levels, ranges}).view(copies[i].sizes()).to(copies[i].dtype()));
      begin += copies[i].numel();
    }
  };
  add_to(own_, sent);
  add_to(left_, from_left);
  add_to(right_, from_right);
  for (std::size_t i = 0; i < own_.size(); ++i) parameters[i].detach().copy_(own_[i]);
}

// --- AsyncAverage

struct AsyncAverage::Part {
  Places places;
  Tensor sent, average;
  Work work;
};

AsyncAverage::AsyncAverage(std::shared_ptr<ProcessGroup> group, Duration interval)
    : group_(group), background_(group_of_its_own(*group)), interval_(interval), next_(monotonic_seconds()) {}

AsyncAverage::~AsyncAverage() = default;

void AsyncAverage::begin(const std::vector<Parameter>& parameters) {
  const no_grad guard;
  const auto weights = detached(parameters);
  for (const Places& places : by_type(weights)) {
    Part part{.places = places, .sent = packed(weights, places), .average = {}, .work = {}};
    part.average = part.sent.clone();
    part.work = background_->all_reduce(part.average, ReduceOp::avg);
    parts_.push_back(std::move(part));
  }
  ++begun_;
  next_ = monotonic_seconds() + interval_.seconds();
}

void AsyncAverage::take_in(const std::vector<Parameter>& parameters) {
  const no_grad guard;
  const auto weights = detached(parameters);
  for (const Part& part : std::exchange(parts_, {})) {
    part.work.wait();
    const Tensor now = packed(weights, part.places);
    unpack(add(now, sub(part.average, part.sent)), weights, part.places);
  }
}

void AsyncAverage::after_step(const std::vector<Parameter>& parameters) {
  const auto arrived = [](const Part& part) { return part.work.is_completed(); };
  if (!parts_.empty() && std::ranges::all_of(parts_, arrived)) take_in(parameters);
  if (parts_.empty() && monotonic_seconds() >= next_) begin(parameters);
}

void AsyncAverage::settle(const std::vector<Parameter>& parameters) {
  const Tensor most = from_data({begun_}, {1});
  group_->all_reduce(most, ReduceOp::max).wait();
  while (begun_ < most.item<int64_t>()) {
    take_in(parameters);
    begin(parameters);
  }
  take_in(parameters);
}

}  // namespace levin::distributed
