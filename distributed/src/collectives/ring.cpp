#include "src/collectives/ring.h"

namespace levin::distributed {

namespace {

// A part has at least two messages, so that one is reduced while the next is in flight; each message costs wake-ups.
constexpr std::size_t kLeast = std::size_t{64} << 10, kLargest = std::size_t{512} << 10;
constexpr std::size_t kAhead = 4;  // segments that may arrive before they are needed

std::size_t largest_part(const std::vector<std::size_t>& begin) {
  std::size_t largest = 0;
  for (std::size_t r = 0; r + 1 < begin.size(); ++r) largest = std::max(largest, begin[r + 1] - begin[r]);
  return largest;
}

}  // namespace

Ring::Ring(Channel& channel, std::uint64_t slot, std::byte* data, std::vector<std::size_t> begin)
    : channel_(channel), slot_(slot), data_(data), begin_(std::move(begin)) {
  const std::size_t half = (largest_part(begin_) / 2 + 63) / 64 * 64;
  segment_ = std::clamp(half, kLeast, kLargest);
  own_ = channel.buffer(data, begin_.back());
}

Segments Ring::part(int round) const {
  const auto r = static_cast<std::size_t>((channel_.rank() + 2 * size() - 1 - round) % size());
  return {begin_[r], begin_[r + 1], segment_};
}

void Ring::all_reduce(DType dtype, ReduceOp op, const std::function<void()>& agreed) {
  run(0, 2 * sums(), dtype, op, agreed);
}

void Ring::reduce_scatter(DType dtype, ReduceOp op, const std::function<void()>& agreed) {
  run(0, sums(), dtype, op, agreed);
}

void Ring::all_gather(const std::function<void()>& agreed) {
  run(sums(), 2 * sums(), DType::u8, ReduceOp::sum, agreed);
}

void Ring::run(int first, int last, DType dtype, ReduceOp op, const std::function<void()>& agreed) {
  for (int round = first; round < last; ++round) {
    part(round + 1).each([&](std::size_t at, std::size_t n) { expected_.push_back({round, at, n}); });
  }
  if (first < sums()) {
    const std::size_t bytes = kAhead * segment_;
    scratch_ = channel_.scratch(bytes);
    incoming_ = channel_.buffer(scratch_, bytes);
  }
  for (std::size_t i = 0; i < kAhead; ++i) expect(i);
  part(first).each([&](std::size_t at, std::size_t n) { send(at, n); });
  agreed();
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    take(i, dtype, op);
    if (expected_[i].round + 1 < last) send(expected_[i].at, expected_[i].bytes);
    expect(i + kAhead);
  }
  for (; sent_ > 0; --sent_) own_->wait_send();
}

// A final result may be received in place, as this rank's data there has already been added to it.
void Ring::expect(std::size_t i) {
  if (i >= expected_.size()) return;
  const Segment& s = expected_[i];
  if (s.round < sums()) {
    incoming_->recv(before(), slot_, i % kAhead * segment_, s.bytes);
  } else {
    own_->recv(before(), slot_, s.at, s.bytes);
  }
}

void Ring::take(std::size_t i, DType dtype, ReduceOp op) {
  const Segment& s = expected_[i];
  if (s.round >= sums()) return own_->wait_recv();
  incoming_->wait_recv();
  const std::size_t count = s.bytes / static_cast<std::size_t>(size_of(dtype));
  reduce_into(dtype, op, data_ + s.at, scratch_ + i % kAhead * segment_, count);
  if (op == ReduceOp::avg && s.round + 1 == sums()) divide(dtype, data_ + s.at, count, size());
}

void Ring::send(std::size_t at, std::size_t bytes) {
  own_->send(after(), slot_, at, bytes);
  ++sent_;
}

}  // namespace levin::distributed
