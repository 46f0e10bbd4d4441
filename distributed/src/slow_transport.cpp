#include "src/slow_transport.h"

#include <deque>
#include <thread>

namespace levin::distributed {

namespace {

/// What was sent and has not set out yet, in its order. One thread uses it: it sends before it waits for anything.
class Delayed {
 public:
  explicit Delayed(Milliseconds latency) : latency_(latency) {}
  void add(std::function<void()> send) { waiting_.push_back({Clock::now() + latency_, std::move(send)}); }
  void flush() {
    for (; !waiting_.empty(); waiting_.pop_front()) {
      std::this_thread::sleep_until(waiting_.front().due);
      waiting_.front().send();
    }
  }

 private:
  struct Message {
    Clock::time_point due;
    std::function<void()> send;
  };
  Milliseconds latency_;
  std::deque<Message> waiting_;
};

class SlowBuffer final : public MessageBuffer {
 public:
  SlowBuffer(std::unique_ptr<MessageBuffer> inner, Delayed& delayed) : inner_(std::move(inner)), delayed_(delayed) {}
  void send(int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    delayed_.add([this, to, slot, offset, bytes] { inner_->send(to, slot, offset, bytes); });
  }
  void recv(int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    inner_->recv(from, slot, offset, bytes);
  }
  void wait_send() override {
    delayed_.flush();
    inner_->wait_send();
  }
  void wait_recv() override {
    delayed_.flush();
    inner_->wait_recv();
  }

 private:
  std::unique_ptr<MessageBuffer> inner_;
  Delayed& delayed_;
};

class SlowChannel final : public Channel {
 public:
  SlowChannel(std::unique_ptr<Channel> inner, Milliseconds latency) : inner_(std::move(inner)), delayed_(latency) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<MessageBuffer> buffer(void* memory, std::size_t bytes) override {
    return std::make_unique<SlowBuffer>(inner_->buffer(memory, bytes), delayed_);
  }

 private:
  std::unique_ptr<Channel> inner_;
  Delayed delayed_;
};

class SlowTransport final : public Transport {
 public:
  SlowTransport(std::unique_ptr<Transport> inner, Milliseconds latency)
      : inner_(std::move(inner)), latency_(latency) {}
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
