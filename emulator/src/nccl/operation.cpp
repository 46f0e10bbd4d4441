#include "operation.h"

#include <algorithm>
#include <cstring>

namespace levin::emulator::nccl {

namespace {

/// Returns the peer that steps receive from. The steps of a call have at most one peer on each side.
int peer_from(const std::vector<Step>& steps) {
  const auto it = std::find_if(steps.begin(), steps.end(), [](const Step& s) { return s.from >= 0; });
  return it == steps.end() ? -1 : it->from;
}
int peer_to(const std::vector<Step>& steps) {
  const auto it = std::find_if(steps.begin(), steps.end(), [](const Step& s) { return s.to >= 0; });
  return it == steps.end() ? -1 : it->to;
}

}  // namespace

void Operation::add(const Call& call, std::vector<Step> steps) {
  const int from = peer_from(steps), to = peer_to(steps);
  for (Lane& lane : lanes_) {
    if (lane.from != from || lane.to != to) continue;
    lane.parts.push_back({call, std::move(steps)});
    return;
  }
  Lane& lane = lanes_.emplace_back(Lane{from, to, {}});
  lane.parts.push_back({call, std::move(steps)});
}

Collective::State Operation::advance() {
  if (!begun_) announce();
  bool moved = false;
  for (Lane& lane : lanes_) {
    if (!segment_->failed()) moved = advance(lane) || moved;
  }
  if (segment_->failed()) {
    failure_ = segment_->text();
    return State::done;
  }
  if (std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& l) { return l.done(); })) {
    if (is_message()) segment_->slot(rank_).message_wanted.store(0);
    return State::done;
  }
  return moved || ask() ? State::moved : State::waits;
}

void Operation::abandon(const std::string& why) {
  segment_->fail(ncclRemoteError, rank_name(rank_) + " cannot go on with " + describe(first_call()) + ": " + why);
}

bool Operation::is_wanted() {
  RankSlot& slot = segment_->slot(rank_);
  return is_message() ? slot.message_wanted.load() != 0 : slot.wanted.load() > first_call().number;
}

/// Publishes this rank's call and compares it with those of the ranks that are at the same call.
void Operation::announce() {
  begun_ = true;
  if (is_message()) {
    segment_->slot(rank_).message_wanted.store(0);
    return;
  }
  const Call& call = first_call();
  segment_->slot(rank_).announced[call.number % 8].write(call);
  compare_announced();
}

void Operation::compare_announced() {
  const Call& call = first_call();
  for (int r = 0; r < segment_->ranks(); ++r) {
    Call theirs;
    if (!segment_->slot(r).announced[call.number % 8].read(call.number, theirs) || theirs == call) continue;
    return mismatch(r, theirs, call);
  }
}

void Operation::mismatch(int peer, const Call& theirs, const Call& ours) {
  const bool mine_first = rank_ < peer;
  const std::string a = rank_name(mine_first ? rank_ : peer) + " calls " + describe(mine_first ? ours : theirs);
  const std::string b = rank_name(mine_first ? peer : rank_) + " calls " + describe(mine_first ? theirs : ours);
  segment_->fail(ncclInvalidUsage, "the ranks' calls differ: " + a + ", but " + b +
                                       ". All ranks must make the same calls in the same order.");
}

bool Operation::advance(Lane& lane) {
  bool moved = false;
  while (!lane.done() && !segment_->failed()) {
    Part& part = lane.parts[lane.part];
    if (lane.step == part.steps.size()) {
      ++lane.part, lane.step = 0;
      moved = true;
    } else if (take_step(part.call, part.steps[lane.step])) {
      ++lane.step;
      moved = true;
    } else {
      break;
    }
  }
  return moved;
}

bool Operation::take_step(const Call& call, const Step& step) {
  if (step.from >= 0 && !segment_->channel(step.from, rank_).has_message()) return false;
  if (step.to >= 0 && !segment_->channel(rank_, step.to).has_room()) return false;
  if (step.from >= 0 && !accept(segment_->channel(step.from, rank_).incoming(), call, step)) return false;
  produce(call, step);
  if (step.to >= 0) {
    segment_->channel(rank_, step.to).written.fetch_add(1, std::memory_order_release);
    notify(step.to);
  }
  if (step.from >= 0) {
    segment_->channel(step.from, rank_).read.fetch_add(1, std::memory_order_release);
    notify(step.from);
  }
  return true;
}

bool Operation::accept(const Message& message, const Call& call, const Step& step) {
  if (message.call == call && message.bytes == step.count * size_of(call.type)) return true;
  mismatch(step.from, message.call, call);
  return false;
}

void Operation::produce(const Call& call, const Step& step) {
  const std::size_t bytes = step.count * size_of(call.type);
  const bool reduces = call.kind == Kind::all_reduce || call.kind == Kind::reduce || call.kind == Kind::reduce_scatter;
  const Reduction reduction{call.type, call.op, segment_->ranks()};
  Message* const outgoing = step.to >= 0 ? &segment_->channel(rank_, step.to).outgoing() : nullptr;
  char* value = nullptr;
  if (step.from >= 0) {
    value = segment_->channel(step.from, rank_).incoming().data;
    if (step.own) reduction.combine(value, step.own, step.count);
  } else {
    value = outgoing ? outgoing->data : step.out;
    if (reduces) {
      reduction.enter(value, step.own, step.count);
    } else {
      std::memmove(value, step.own, bytes);
    }
  }
  if (step.last) reduction.finish(value, step.count);
  if (step.out && step.out != value) std::memcpy(step.out, value, bytes);
  if (!outgoing) return;
  outgoing->call = call;
  outgoing->bytes = bytes;
  if (outgoing->data != value) std::memcpy(outgoing->data, value, bytes);
}

void Operation::notify(int peer) {
  if (!segment_->is_local(peer)) segment_->ring(peer);
}

/// Returns the rank that the step waits for. It must not have left before it did its part.
int Operation::awaited(const Step& step) {
  const auto left = [&](int r) { return r >= 0 && segment_->slot(r).presence.load() == Presence::left; };
  const bool from_left = left(step.from), to_left = left(step.to);
  const bool hears = step.from < 0 || segment_->channel(step.from, rank_).has_message();
  const bool has_room = step.to < 0 || segment_->channel(rank_, step.to).has_room();
  const int peer = hears ? step.to : step.from;
  if ((!hears && from_left) || (hears && !has_room && to_left)) {
    segment_->fail(ncclRemoteError, rank_name(peer) + " has destroyed its communicator, but " + rank_name(rank_) +
                                        " waits for it in " + describe(first_call()) + ".");
  }
  return peer;
}

/// Asks the ranks that this one waits for to run their part. Returns true if the request is new to one of them.
bool Operation::ask() {
  bool asked = false;
  for (const Lane& lane : lanes_) {
    if (lane.done()) continue;
    const int peer = awaited(lane.parts[lane.part].steps[lane.step]);
    if (is_message() && peer >= 0 && segment_->slot(peer).message_wanted.exchange(1) == 0) asked = true, notify(peer);
  }
  if (is_message() || segment_->failed()) return asked || segment_->failed();
  const std::uint64_t wanted = first_call().number + 1;
  for (int r = 0; r < segment_->ranks(); ++r) {
    std::uint64_t known = segment_->slot(r).wanted.load();
    if (r == rank_ || known >= wanted) continue;
    segment_->slot(r).wanted.store(wanted);
    asked = true;
    notify(r);
  }
  return asked;
}

}  // namespace levin::emulator::nccl
