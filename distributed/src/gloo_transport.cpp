#include "src/gloo_transport.h"

#include <fmt/format.h>
#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <signal.h>

#include <condition_variable>
#include <set>

namespace levin::distributed {

namespace {

// The loss of a rank reaches the group as a broken connection and as the watch's sentence, in any order.
constexpr auto kVerdictTime = std::chrono::seconds(3);

class GlooStore final : public gloo::rendezvous::Store {
 public:
  explicit GlooStore(distributed::Store& store) : store_(store) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(key, {data.begin(), data.end()});
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_.get(key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override { store_.wait(keys); }
  void wait(const std::vector<std::string>& keys, const Milliseconds& timeout) override { store_.wait(keys, timeout); }

 private:
  distributed::Store& store_;
};

}  // namespace

struct WithoutSigpipe::Mask {
  sigset_t set;
};

WithoutSigpipe::WithoutSigpipe() : old_(std::make_unique<Mask>()) {
  sigset_t pipe_only;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_only, &old_->set);
}

WithoutSigpipe::~WithoutSigpipe() { pthread_sigmask(SIG_SETMASK, &old_->set, nullptr); }

struct GlooTransport::Impl {
  std::shared_ptr<gloo::rendezvous::Context> context;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::optional<RankEvent> event;
  std::set<gloo::transport::UnboundBuffer*> waiting;

  // One wait of a buffer, which `end` can break off.
  template <class Wait>
  void wait(gloo::transport::UnboundBuffer* buffer, const std::string& name, Clock::time_point deadline, int peer,
            const Wait& wait_for) {
    {
      const std::lock_guard lock(mutex);
      if (event) throw_event(*event, name);
      waiting.insert(buffer);
    }
    bool done = false, broken = false;
    try {
      const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now());
      done = wait_for(std::max(left, Milliseconds(1)));
    } catch (const gloo::Exception&) {
      broken = true;
    }
    std::unique_lock lock(mutex);
    waiting.erase(buffer);
    if (done) return;
    if (broken && Clock::now() >= deadline && !event) {
      throw_event({RankEvent::Kind::timeout, peer,
                   fmt::format("rank {} waited for rank {} until the timeout.", context->rank, peer)},
                  name);
    }
    changed.wait_for(lock, kVerdictTime, [&] { return event.has_value(); });
    if (event) throw_event(*event, name);
    throw_event({RankEvent::Kind::lost, peer, fmt::format("the connection to rank {} of the group broke.", peer)},
                name);
  }
};

namespace {

using Impl = GlooTransport::Impl;

class GlooBuffer final : public MessageBuffer {
 public:
  GlooBuffer(Impl& impl, const std::string& name, Clock::time_point deadline, void* memory, std::size_t bytes)
      : impl_(impl), name_(name), deadline_(deadline), buffer_(impl.context->createUnboundBuffer(memory, bytes)) {}

  void send(int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    begin(to, [&] { buffer_->send(to, slot, offset, bytes); });
  }
  void recv(int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    begin(from, [&] { buffer_->recv(from, slot, offset, bytes); });
  }
  void wait_send() override {
    impl_.wait(buffer_.get(), name_, deadline_, peer_, [&](Milliseconds t) { return buffer_->waitSend(t); });
  }
  void wait_recv() override {
    impl_.wait(buffer_.get(), name_, deadline_, peer_, [&](Milliseconds t) { return buffer_->waitRecv(t); });
  }

 private:
  // A broken connection shows here too; then the wait that never ends finds out why.
  template <class Begin>
  void begin(int peer, const Begin& begin_transfer) {
    peer_ = peer;
    try {
      begin_transfer();
    } catch (const gloo::Exception&) {
      impl_.wait(buffer_.get(), name_, deadline_, peer_, [](Milliseconds) { return false; });
    }
  }

  Impl& impl_;
  const std::string& name_;
  Clock::time_point deadline_;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  int peer_ = 0;
};

class GlooChannel final : public Channel {
 public:
  GlooChannel(Impl& impl, std::string name, Clock::time_point deadline)
      : impl_(impl), name_(std::move(name)), deadline_(deadline) {}
  int rank() const override { return impl_.context->rank; }
  int size() const override { return impl_.context->size; }
  std::unique_ptr<MessageBuffer> buffer(void* memory, std::size_t bytes) override {
    return std::make_unique<GlooBuffer>(impl_, name_, deadline_, memory, bytes);
  }

 private:
  Impl& impl_;
  std::string name_;
  Clock::time_point deadline_;
};

}  // namespace

GlooTransport::GlooTransport(Store& store, const std::string& local_address, int rank, int size, Milliseconds timeout)
    : impl_(std::make_unique<Impl>()) {
  const WithoutSigpipe guard;  // Gloo's own thread begins here and inherits the mask
  try {
    auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(local_address.c_str()));
    impl_->context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    impl_->context->setTimeout(timeout);
    GlooStore adapter(store);
    impl_->context->connectFullMesh(adapter, device);
  } catch (const gloo::Exception& e) {
    throw StoreError(fmt::format("[gloo] rank {} could not connect with the other {} ranks from {}: {}", rank, size - 1,
                                 local_address, e.what()));
  }
}

GlooTransport::~GlooTransport() = default;

// Slots keep the two kinds of traffic apart.
std::unique_ptr<Channel> GlooTransport::channel(const std::string& name, Clock::time_point deadline, Traffic) {
  return std::make_unique<GlooChannel>(*impl_, name, deadline);
}

void GlooTransport::end(const RankEvent& event) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->event) return;
  impl_->event = event;
  for (gloo::transport::UnboundBuffer* b : impl_->waiting) {
    b->abortWaitRecv();
    b->abortWaitSend();
  }
  impl_->changed.notify_all();
}

std::optional<RankEvent> GlooTransport::ended() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->event;
}

}  // namespace levin::distributed
