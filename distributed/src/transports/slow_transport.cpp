#include "src/transports/slow_transport.h"

#include <cstring>
#include <deque>
#include <thread>

namespace levin::distributed {

namespace {

// Every message has a stamp: its arrival time by the clock that all processes of this host share. The receiver waits
// until then, so that messages in flight at the same time arrive at the same time.
using Stamp = Clock::rep;

constexpr std::uint64_t kStampSlots = std::uint64_t{1} << 62;  // added to a message's slot, in which this bit is unused

Stamp stamp_after(Milliseconds latency) { return (Clock::now() + latency).time_since_epoch().count(); }
void sleep_until(Stamp stamp) { std::this_thread::sleep_until(Clock::time_point(Clock::duration(stamp))); }

class SlowBuffer final : public MessageBuffer {
 public:
  SlowBuffer(Channel& inner, void* memory, std::size_t bytes, Milliseconds latency)
      : inner_(inner), buffer_(inner.buffer(memory, bytes)), latency_(latency) {}
  void send(int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    Stamped& s = add(sent_, stamp_after(latency_));
    s.buffer->send(to, slot | kStampSlots, 0, sizeof s.stamp);
    buffer_->send(to, slot, offset, bytes);
  }
  void recv(int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    Stamped& s = add(expected_, 0);
    s.buffer->recv(from, slot | kStampSlots, 0, sizeof s.stamp);
    buffer_->recv(from, slot, offset, bytes);
  }
  void wait_send() override {
    buffer_->wait_send();
    sent_.front().buffer->wait_send();
    sent_.pop_front();
  }
  void wait_recv() override {
    buffer_->wait_recv();
    expected_.front().buffer->wait_recv();
    sleep_until(expected_.front().stamp);
    expected_.pop_front();
  }

 private:
  struct Stamped {
    Stamp stamp;
    std::unique_ptr<MessageBuffer> buffer{};
  };
  Stamped& add(std::deque<Stamped>& list, Stamp stamp) {
    Stamped& s = list.emplace_back(stamp);
    s.buffer = inner_.buffer(&s.stamp, sizeof s.stamp);
    return s;
  }

  Channel& inner_;
  std::unique_ptr<MessageBuffer> buffer_;
  Milliseconds latency_;
  std::deque<Stamped> sent_, expected_;
};

class SlowMailboxes final : public Mailboxes {
 public:
  SlowMailboxes(Mailboxes& inner, int size, Milliseconds latency)
      : inner_(inner), latency_(latency), written_(static_cast<std::size_t>(size)) {}
  std::size_t room() const override { return inner_.room() - sizeof(Stamp); }
  std::byte* write(int to) override {
    std::byte*& message = written_[static_cast<std::size_t>(to)];
    message = inner_.write(to);
    return message + sizeof(Stamp);
  }
  void send(int to, std::size_t bytes) override {
    const Stamp stamp = stamp_after(latency_);
    std::memcpy(written_[static_cast<std::size_t>(to)], &stamp, sizeof stamp);
    inner_.send(to, sizeof stamp + bytes);
  }
  std::byte* take(int from) override {
    std::byte* message = inner_.take(from);
    Stamp stamp = 0;
    std::memcpy(&stamp, message, sizeof stamp);
    sleep_until(stamp);
    return message + sizeof stamp;
  }
  void finish() override { inner_.finish(); }

 private:
  Mailboxes& inner_;
  Milliseconds latency_;
  std::vector<std::byte*> written_;  // last message to each rank
};

class SlowChannel final : public Channel {
 public:
  SlowChannel(std::unique_ptr<Channel> inner, Milliseconds latency) : inner_(std::move(inner)), latency_(latency) {
    if (Mailboxes* mailboxes = inner_->mailboxes()) mailboxes_.emplace(*mailboxes, size(), latency);
  }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<MessageBuffer> buffer(void* memory, std::size_t bytes) override {
    return std::make_unique<SlowBuffer>(*inner_, memory, bytes, latency_);
  }
  Mailboxes* mailboxes() override { return mailboxes_ ? &*mailboxes_ : nullptr; }
  std::byte* scratch(std::size_t bytes) override { return inner_->scratch(bytes); }

 private:
  std::unique_ptr<Channel> inner_;
  Milliseconds latency_;
  std::optional<SlowMailboxes> mailboxes_;
};

class SlowTransport final : public Transport {
 public:
  SlowTransport(std::unique_ptr<Transport> inner, Milliseconds latency) : inner_(std::move(inner)), latency_(latency) {}
  std::unique_ptr<Channel> channel(const std::string& name, Clock::time_point deadline, Traffic traffic) override {
    return std::make_unique<SlowChannel>(inner_->channel(name, deadline, traffic), latency_);
  }
  void end(const RankEvent& event) override { inner_->end(event); }
  std::optional<RankEvent> ended() const override { return inner_->ended(); }

 private:
  std::unique_ptr<Transport> inner_;
  Milliseconds latency_;
};

}  // namespace

std::unique_ptr<Transport> make_slow_transport(std::unique_ptr<Transport> inner, Milliseconds latency) {
  return std::make_unique<SlowTransport>(std::move(inner), latency);
}

}  // namespace levin::distributed
