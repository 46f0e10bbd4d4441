#include "src/transports/gloo_transport.h"

#include <fmt/format.h>
#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <array>
#include <condition_variable>
#include <set>
#include <vector>

#include "src/transports/sigpipe.h"

namespace levin::distributed {

namespace {

// The loss of a rank shows as a broken connection and as an event of the failure detector, in any order: the time to
// wait for the latter.
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

using gloo::transport::UnboundBuffer;

constexpr std::uint64_t kMailboxSlot = 0;
constexpr std::size_t kAhead = 2;  // messages of a rank that can arrive before they are taken

// The mailbox messages from and to another rank.
struct Mailbox {
  Scratch memory{};  // the message to send, then the slots of received messages, used in turn
  std::unique_ptr<UnboundBuffer> out{};
  // One buffer per slot: a connection that closes breaks pending receives, but not those that are complete.
  std::array<std::unique_ptr<UnboundBuffer>, kAhead> in{};
  std::size_t next = 0;  // slot to take next
  bool sending = false, taken = false;
  std::array<bool, kAhead> broken{};
};

}  // namespace

struct GlooTransport::Impl {
  std::shared_ptr<gloo::rendezvous::Context> context;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::optional<RankEvent> event;
  std::set<UnboundBuffer*> waiting;
  // For collectives, which run one at a time.
  std::vector<Mailbox> boxes;  // by rank
  Scratch scratch;

  // Mailboxes of two ranks are large, as a further message costs more in thread wake-ups than in copied bytes.
  std::size_t room() const { return context->size == 2 ? std::size_t{512} << 10 : mailbox_room(context->size); }
  void open_boxes() {
    boxes.resize(static_cast<std::size_t>(context->size));
    for (int r = 0; r < context->size; ++r) {
      Mailbox& box = boxes[static_cast<std::size_t>(r)];
      if (r == context->rank) continue;
      std::byte* memory = box.memory.of((1 + kAhead) * room());
      box.out = context->createUnboundBuffer(memory, room());
      for (std::size_t i = 0; i < kAhead; ++i) {
        box.in[i] = context->createUnboundBuffer(memory + (1 + i) * room(), room());
      }
      for (std::size_t i = 0; i < kAhead; ++i) make_room(r);
    }
  }
  // Posts the receive for the slot after next. The other rank may have finished its program and closed the connection.
  void make_room(int from) {
    Mailbox& box = boxes[static_cast<std::size_t>(from)];
    try {
      box.in[box.next]->recv(from, kMailboxSlot, 0, room());
    } catch (const gloo::Exception&) {
      box.broken[box.next] = true;
    }
    box.next = (box.next + 1) % kAhead;
  }

  // Waits on a buffer until done or interrupted by end().
  template <class Wait>
  void wait(UnboundBuffer* buffer, const std::string& name, Clock::time_point deadline, int peer,
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

// The waits of one operation.
struct Waiter {
  Impl& impl;
  std::string name;
  Clock::time_point deadline;

  // A broken connection may also show when a transfer begins; fail() then waits for the reason.
  template <class Begin>
  void begin(UnboundBuffer& buffer, int peer, const Begin& begin_transfer) const {
    try {
      begin_transfer();
    } catch (const gloo::Exception&) {
      fail(buffer, peer);
    }
  }
  void fail(UnboundBuffer& buffer, int peer) const {
    impl.wait(&buffer, name, deadline, peer, [](Milliseconds) { return false; });
  }
  void send(UnboundBuffer& buffer, int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) const {
    begin(buffer, to, [&] { buffer.send(to, slot, offset, bytes); });
  }
  void recv(UnboundBuffer& buffer, int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) const {
    begin(buffer, from, [&] { buffer.recv(from, slot, offset, bytes); });
  }
  void wait_send(UnboundBuffer& buffer, int peer) const {
    impl.wait(&buffer, name, deadline, peer, [&](Milliseconds t) { return buffer.waitSend(t); });
  }
  void wait_recv(UnboundBuffer& buffer, int peer) const {
    impl.wait(&buffer, name, deadline, peer, [&](Milliseconds t) { return buffer.waitRecv(t); });
  }
};

class GlooBuffer final : public MessageBuffer {
 public:
  GlooBuffer(const Waiter& waiter, void* memory, std::size_t bytes)
      : waiter_(waiter), buffer_(waiter.impl.context->createUnboundBuffer(memory, bytes)) {}

  void send(int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    waiter_.send(*buffer_, peer_ = to, slot, offset, bytes);
  }
  void recv(int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) override {
    waiter_.recv(*buffer_, peer_ = from, slot, offset, bytes);
  }
  void wait_send() override { waiter_.wait_send(*buffer_, peer_); }
  void wait_recv() override { waiter_.wait_recv(*buffer_, peer_); }

 private:
  const Waiter& waiter_;
  std::unique_ptr<UnboundBuffer> buffer_;
  int peer_ = 0;
};

class GlooChannel final : public Channel, public Mailboxes {
 public:
  GlooChannel(Impl& impl, std::string name, Clock::time_point deadline, Traffic traffic)
      : impl_(impl), waiter_{impl, std::move(name), deadline}, traffic_(traffic) {}
  int rank() const override { return impl_.context->rank; }
  int size() const override { return impl_.context->size; }
  std::unique_ptr<MessageBuffer> buffer(void* memory, std::size_t bytes) override {
    return std::make_unique<GlooBuffer>(waiter_, memory, bytes);
  }
  Mailboxes* mailboxes() override { return traffic_ == Traffic::collective ? this : nullptr; }
  std::byte* scratch(std::size_t bytes) override { return impl_.scratch.of(bytes); }

  std::size_t room() const override { return impl_.room(); }
  std::byte* write(int to) override {
    send_is_done(to);
    return box(to).memory.of(0);
  }
  void send(int to, std::size_t bytes) override {
    box(to).sending = true;
    waiter_.send(*box(to).out, to, kMailboxSlot, 0, bytes);
  }
  std::byte* take(int from) override {
    Mailbox& b = box(from);
    UnboundBuffer& message = *b.in[b.next];
    if (b.broken[b.next]) waiter_.fail(message, from);
    waiter_.wait_recv(message, from);
    b.taken = true;
    return b.memory.of(0) + (1 + b.next) * room();
  }
  void finish() override {
    for (int r = 0; r < size(); ++r) {
      if (std::exchange(box(r).taken, false)) impl_.make_room(r);
    }
    for (int r = 0; r < size(); ++r) send_is_done(r);
  }

 private:
  Mailbox& box(int r) { return impl_.boxes[static_cast<std::size_t>(r)]; }
  void send_is_done(int to) {
    if (std::exchange(box(to).sending, false)) waiter_.wait_send(*box(to).out, to);
  }

  Impl& impl_;
  Waiter waiter_;
  Traffic traffic_;
};

}  // namespace

GlooTransport::GlooTransport(Store& store, const std::string& local_address, int rank, int size, Duration timeout)
    : impl_(std::make_unique<Impl>()) {
  const WithoutSigpipe guard;  // Gloo's own thread begins here and inherits the mask
  try {
    auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(local_address.c_str()));
    impl_->context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    impl_->context->setTimeout(timeout);
    GlooStore adapter(store);
    impl_->context->connectFullMesh(adapter, device);
    impl_->open_boxes();
  } catch (const gloo::Exception& e) {
    throw StoreError(fmt::format("[gloo] rank {} could not connect with the other {} ranks from {}: {}", rank, size - 1,
                                 local_address, e.what()));
  }
}

GlooTransport::~GlooTransport() = default;

// Slots keep the two kinds of traffic apart.
std::unique_ptr<Channel> GlooTransport::channel(const std::string& name, Clock::time_point deadline, Traffic traffic) {
  return std::make_unique<GlooChannel>(*impl_, name, deadline, traffic);
}

void GlooTransport::end(const RankEvent& event) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->event) return;
  impl_->event = event;
  for (UnboundBuffer* b : impl_->waiting) {
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
