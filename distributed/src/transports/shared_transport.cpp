#include "src/transports/shared_transport.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

namespace levin::distributed {

namespace {

struct MessageHead {
  std::uint64_t slot, bytes;
};

// A message in progress. Messages between two ranks are moved one after the other.
struct Transfer {
  std::byte* memory;
  MessageHead head;
  int* done;  // counter of completed messages in its buffer
  bool head_moved = false;
  std::size_t moved = 0;
};

// One end of a pipe.
class PipeEnd {
 public:
  PipeEnd(SharedMemory& memory, int from, int to, Traffic traffic)
      : pipe_(memory.pipe(from, to, traffic)), data_(memory.pipe_data(from, to, traffic)), room_(memory.pipe_bytes()) {}

  // Writes at most `bytes`, as many as fit, and returns their number.
  std::size_t write(const void* from, std::size_t bytes) {
    const std::uint64_t at = pipe_.written.load(std::memory_order_relaxed);
    const std::size_t n = std::min(bytes, room_ - static_cast<std::size_t>(at - pipe_.read.load()));
    const std::size_t start = at % room_, first = std::min(n, room_ - start);
    if (n == 0) return 0;
    std::memcpy(data_ + start, from, first);
    if (n > first) std::memcpy(data_, static_cast<const std::byte*>(from) + first, n - first);
    pipe_.written.store(at + n);
    return n;
  }
  std::size_t read(void* to, std::size_t bytes) {
    const std::uint64_t at = pipe_.read.load(std::memory_order_relaxed);
    const std::size_t n = std::min(bytes, readable());
    const std::size_t start = at % room_, first = std::min(n, room_ - start);
    if (n == 0) return 0;
    std::memcpy(to, data_ + start, first);
    if (n > first) std::memcpy(static_cast<std::byte*>(to) + first, data_, n - first);
    pipe_.read.store(at + n);
    return n;
  }
  // Reads a complete head without consuming it.
  bool peek(MessageHead& head) const {
    if (readable() < sizeof head) return false;
    auto* to = reinterpret_cast<std::byte*>(&head);
    const std::uint64_t at = pipe_.read.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < sizeof head; ++i) to[i] = data_[(at + i) % room_];
    return true;
  }
  void skip_head() { pipe_.read.fetch_add(sizeof(MessageHead)); }
  std::size_t writable() const {
    return room_ - static_cast<std::size_t>(pipe_.written.load(std::memory_order_relaxed) - pipe_.read.load());
  }

 private:
  std::size_t readable() const {
    return static_cast<std::size_t>(pipe_.written.load() - pipe_.read.load(std::memory_order_relaxed));
  }
  SharedPipe& pipe_;
  std::byte* data_;
  std::size_t room_;
};

bool push(PipeEnd pipe, Transfer& t) {
  if (!t.head_moved) {
    if (pipe.writable() < sizeof t.head) return false;
    pipe.write(&t.head, sizeof t.head);
    t.head_moved = true;
  }
  t.moved += pipe.write(t.memory + t.moved, t.head.bytes - t.moved);
  return t.moved == t.head.bytes;
}

// Leaves a message with another slot or size than the awaited one in the pipe: the header check reports that ranks call
// different operations.
bool pull(PipeEnd pipe, Transfer& t) {
  if (!t.head_moved) {
    MessageHead head{};
    if (!pipe.peek(head) || head.slot != t.head.slot || head.bytes != t.head.bytes) return false;
    pipe.skip_head();
    t.head_moved = true;
  }
  t.moved += pipe.read(t.memory + t.moved, t.head.bytes - t.moved);
  return t.moved == t.head.bytes;
}

}  // namespace

class SharedChannel final : public Channel, public SharedBlocks, public Mailboxes {
 public:
  SharedChannel(SharedTransport& transport, std::string name, Clock::time_point deadline, Traffic traffic)
      : transport_(transport),
        memory_(*transport.memory_),
        name_(std::move(name)),
        deadline_(deadline),
        traffic_(traffic),
        base_(transport.steps_),
        sends_(static_cast<std::size_t>(memory_.size())),
        receives_(sends_.size()),
        taken_(sends_.size()) {}

  int rank() const override { return memory_.rank(); }
  int size() const override { return memory_.size(); }
  std::unique_ptr<MessageBuffer> buffer(void* memory, std::size_t bytes) override;
  SharedBlocks* blocks() override { return this; }
  Mailboxes* mailboxes() override { return traffic_ == Traffic::collective ? this : nullptr; }
  std::byte* scratch(std::size_t bytes) override { return scratch_.of(bytes); }

  void add_send(int to, const Transfer& t) { sends_[static_cast<std::size_t>(to)].push_back(t); }
  void add_recv(int from, const Transfer& t) { receives_[static_cast<std::size_t>(from)].push_back(t); }

  // Moves messages of this channel until the condition holds.
  template <class Condition>
  void wait(const Condition& done) {
    for (;;) {
      const auto look = [&] {
        move_messages();
        return done() || transport_.has_ended_.load();
      };
      memory_.wait_a_moment(traffic_, look);
      if (done()) return;
      if (const auto event = transport_.ended()) throw_event(*event, name_);
      if (Clock::now() >= deadline_) {
        throw_event({RankEvent::Kind::timeout, rank(), fmt::format("rank {} waited until the timeout.", rank())},
                    name_);
      }
    }
  }

  std::size_t block() const override { return memory_.block(); }
  std::byte* stage(std::uint64_t step, int owner) override {
    wait_for(&SharedProgress::reduced, owner, reusable(step));
    return memory_.staged(rank(), owner, base_ + step);
  }
  void staged(std::uint64_t step) override { advance(&SharedProgress::staged, step); }
  std::byte* wait_staged(std::uint64_t step, int from) override {
    wait_for(&SharedProgress::staged, from, base_ + step + 1);
    return memory_.staged(from, rank(), base_ + step);
  }
  std::byte* result(std::uint64_t step) override {
    for (int r = 0; r < size(); ++r) wait_for(&SharedProgress::copied, r, reusable(step));
    return memory_.result(rank(), base_ + step);
  }
  void reduced(std::uint64_t step) override { advance(&SharedProgress::reduced, step); }
  const std::byte* wait_result(std::uint64_t step, int owner) override {
    wait_for(&SharedProgress::reduced, owner, base_ + step + 1);
    return memory_.result(owner, base_ + step);
  }
  void copied(std::uint64_t step) override { advance(&SharedProgress::copied, step); }
  void finish(std::uint64_t steps) override { transport_.steps_ = base_ += steps; }

  std::uint64_t place_of(const std::byte* tensor) const override {
    if (!transport_.accepted_.load()) return 0;
    const SharedArena& own = *transport_.arenas_[static_cast<std::size_t>(rank())];
    return own.holds(tensor) ? static_cast<std::uint64_t>(tensor - own.base()) : 0;
  }
  std::byte* tensor_at(int owner, std::uint64_t place) const override {
    return transport_.arenas_[static_cast<std::size_t>(owner)]->base() + place;
  }

  std::size_t room() const override { return memory_.mailbox_bytes(); }
  std::byte* write(int to) override {
    const SharedMailbox& own = memory_.mailbox(rank(), to);
    const std::uint64_t number = own.sent.load();
    const auto free = [&] { return number < own.taken.load() + SharedMemory::kDepth; };
    if (!free()) wait(free);
    return memory_.mailbox_slot(rank(), to, number);
  }
  void send(int to, std::size_t) override {
    memory_.mailbox(rank(), to).sent.fetch_add(1);
    memory_.ring(to, traffic_);
  }
  std::byte* take(int from) override {
    // An operation that was interrupted leaves messages behind, which the next one must not take for its own.
    if (const auto event = transport_.ended()) throw_event(*event, name_);
    const SharedMailbox& theirs = memory_.mailbox(from, rank());
    const std::uint64_t number = theirs.taken.load();
    const auto come = [&] { return theirs.sent.load() > number; };
    if (!come()) wait(come);
    taken_[static_cast<std::size_t>(from)] = true;
    return memory_.mailbox_slot(from, rank(), number);
  }
  void finish() override {
    for (int r = 0; r < size(); ++r) {
      if (!std::exchange(taken_[static_cast<std::size_t>(r)], false)) continue;
      memory_.mailbox(r, rank()).taken.fetch_add(1);
      memory_.ring(r, traffic_);
    }
  }

 private:
  using Counter = std::atomic<std::uint64_t> SharedProgress::*;

  // Progress that a rank must have made before the memory of this step can be reused.
  std::uint64_t reusable(std::uint64_t step) const {
    const std::uint64_t now = base_ + step + 1;
    return now > SharedMemory::kDepth ? now - SharedMemory::kDepth : 0;
  }
  void wait_for(Counter counter, int rank, std::uint64_t value) {
    const std::atomic<std::uint64_t>& now = memory_.progress(rank).*counter;
    if (now.load() < value) wait([&] { return now.load() >= value; });
  }
  void advance(Counter counter, std::uint64_t step) {
    (memory_.progress(rank()).*counter).store(base_ + step + 1);
    memory_.ring_others(traffic_);
  }

  void move_messages() {
    for (int peer = 0; peer < size(); ++peer) {
      move_some(sends_[static_cast<std::size_t>(peer)], peer, push, PipeEnd(memory_, rank(), peer, traffic_));
      move_some(receives_[static_cast<std::size_t>(peer)], peer, pull, PipeEnd(memory_, peer, rank(), traffic_));
    }
  }
  void move_some(std::deque<Transfer>& queue, int peer, bool (*move)(PipeEnd, Transfer&), const PipeEnd& pipe) {
    if (queue.empty()) return;
    bool moved = false;
    while (!queue.empty()) {
      Transfer& t = queue.front();
      const std::size_t before = t.moved + (t.head_moved ? 1 : 0);
      const bool done = move(pipe, t);
      moved = moved || done || before != t.moved + (t.head_moved ? 1 : 0);
      if (!done) break;
      ++*t.done;
      queue.pop_front();
    }
    if (moved) memory_.ring(peer, traffic_);
  }

  SharedTransport& transport_;
  SharedMemory& memory_;
  std::string name_;
  Clock::time_point deadline_;
  Traffic traffic_;
  std::uint64_t base_;
  std::vector<std::deque<Transfer>> sends_, receives_;  // by peer
  std::vector<std::uint8_t> taken_;                     // whether a message was taken, by rank
  Scratch scratch_;
};

namespace {

class SharedBuffer final : public MessageBuffer {
 public:
  SharedBuffer(SharedChannel& channel, void* memory) : channel_(channel), memory_(static_cast<std::byte*>(memory)) {}
  void send(int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    channel_.add_send(to, {memory_ + offset, {slot, bytes}, &sent_});
  }
  void recv(int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    channel_.add_recv(from, {memory_ + offset, {slot, bytes}, &received_});
  }
  void wait_send() override { take(sent_); }
  void wait_recv() override { take(received_); }

 private:
  void take(int& count) {
    channel_.wait([&] { return count > 0; });
    --count;
  }

  SharedChannel& channel_;
  std::byte* memory_;
  int sent_ = 0, received_ = 0;
};

}  // namespace

std::unique_ptr<MessageBuffer> SharedChannel::buffer(void* memory, std::size_t) {
  return std::make_unique<SharedBuffer>(*this, memory);
}

SharedTransport::SharedTransport(std::unique_ptr<SharedMemory> memory) : memory_(std::move(memory)) {}
SharedTransport::~SharedTransport() = default;

std::unique_ptr<Channel> SharedTransport::channel(const std::string& name, Clock::time_point deadline,
                                                  Traffic traffic) {
  return std::make_unique<SharedChannel>(*this, name, deadline, traffic);
}

void SharedTransport::offer() {
  const auto rank = static_cast<std::size_t>(memory_->rank());
  arenas_.resize(static_cast<std::size_t>(memory_->size()));
  arenas_[rank] = SharedArena::create(memory_->token());
  memory_->offer(memory_->rank()) = {getpid(), arenas_[rank] ? arenas_[rank]->fd() : -1};
}

bool SharedTransport::accept() {
  for (int r = 0; r < memory_->size(); ++r) {
    auto& arena = arenas_[static_cast<std::size_t>(r)];
    const SharedOffer o = memory_->offer(r);
    if (r != memory_->rank() && o.fd >= 0) arena = SharedArena::open(o.pid, o.fd, memory_->token());
  }
  accepted_ = std::ranges::all_of(arenas_, [](const auto& arena) { return arena != nullptr; });
  return accepted_.load();
}

std::shared_ptr<void> SharedTransport::allocate(std::size_t bytes) {
  const auto& own = arenas_[static_cast<std::size_t>(memory_->rank())];
  std::byte* memory = ended() ? nullptr : own->allocate(bytes);
  if (memory == nullptr) return nullptr;
  return {memory, [own](std::byte* p) { own->free(p); }};
}

void SharedTransport::end(const RankEvent& event) {
  const std::lock_guard lock(mutex_);
  if (event_) return;
  event_ = event;
  has_ended_ = true;
  for (const Traffic t : {Traffic::collective, Traffic::message}) memory_->ring(memory_->rank(), t);
}

std::optional<RankEvent> SharedTransport::ended() const {
  const std::lock_guard lock(mutex_);
  return event_;
}

}  // namespace levin::distributed
