#include "src/watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

namespace levin::distributed {

namespace {

constexpr auto kSendTime = std::chrono::seconds(5);
// Whoever started the processes looks for their ends now and then, and is to see that of the failed one first.
constexpr auto kEndSeen = std::chrono::milliseconds(50);

std::string kind_name(RankEvent::Kind kind) { return std::to_string(static_cast<int>(kind)); }

Frame frame_of(const RankEvent& e) { return {kind_name(e.kind), std::to_string(e.rank), e.text}; }

RankEvent event_of(const Frame& frame) {
  if (frame.size() != 3) throw SocketFailure{.reason = "no event"};
  return {static_cast<RankEvent::Kind>(std::atoi(frame[0].c_str())), std::atoi(frame[1].c_str()), frame[2]};
}

}  // namespace

void throw_event(const RankEvent& event, const std::string& operation) {
  const std::string text = fmt::format("[{}] {}", operation, event.text);
  if (event.kind == RankEvent::Kind::mismatch) throw CollectiveMismatch(text);
  if (event.kind == RankEvent::Kind::timeout) throw CollectiveTimeout(text);
  throw RankLost(event.rank, text);
}

Watch::Watch(Store& store, int rank) : rank_(rank) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw StoreError("[watch] no pipe could be made: too many open files?");
  wake_read_ = Descriptor(ends[0]);
  wake_write_ = Descriptor(ends[1]);
  try {
    rank == 0 ? open_server(store) : connect(store);
  } catch (const SocketFailure& e) {
    throw StoreError(fmt::format("[watch] rank {} could not connect with rank 0: {}.", rank, e.reason));
  }
  thread_ = std::thread([this] { run(); });
}

void Watch::open_server(Store& store) {
  listener_ = listen_on({}, 0);
  std::string host = store.local_address();
  if (host.empty()) host = "127.0.0.1";
  store.set("watch/address", fmt::format("{} {}", port_of(listener_.get()), host));
}

void Watch::connect(Store& store) {
  const std::string address = store.get("watch/address");
  const auto space = address.find(' ');
  const auto deadline = Clock::now() + store.timeout();
  peers_.push_back({.fd = connect_to(address.substr(space + 1), std::atoi(address.c_str()), deadline), .rank = 0});
  watch_liveness(peers_.back().fd.get());
  send_frame(peers_.back().fd.get(), {"hello", std::to_string(rank_)}, deadline);
  receive_frame(peers_.back().fd.get(), deadline);  // from now on this rank is told of everything
}

Watch::~Watch() {
  if (!failed_) {
    report(RankEvent::Kind::left, fmt::format("rank {} has left the group: its part of the program is over.", rank_));
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_write_.close();
  thread_.join();
  if (!failed_) return;
  // After a failure the end of the process closes the connections, and so tells the others that it has had its say.
  static std::mutex mutex;
  static auto* kept = new std::list<Peer>;
  const std::lock_guard lock(mutex);
  kept->splice(kept->end(), peers_);
}

int Watch::subscribe(Listener listener) {
  const std::lock_guard lock(listeners_mutex_);
  for (const RankEvent& e : delivered_) listener(e);
  listeners_.emplace(next_id_, std::move(listener));
  return next_id_++;
}

void Watch::unsubscribe(int id) {
  const std::lock_guard lock(listeners_mutex_);
  listeners_.erase(id);
}

void Watch::report(RankEvent::Kind kind, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (failed_ && kind == RankEvent::Kind::failed) return;  // the first reason counts
  failed_ = failed_ || kind == RankEvent::Kind::failed;
  queue_.push_back({kind, rank_, text});
  const char byte = 1;
  [[maybe_unused]] const auto n = write(wake_write_.get(), &byte, 1);  // a full pipe wakes as well
}

int Watch::next_due() const {
  if (delayed_.empty()) return -1;
  const auto due = std::min_element(delayed_.begin(), delayed_.end(), [](const Delayed& a, const Delayed& b) {
                     return a.due < b.due;
                   })->due;
  return static_cast<int>(std::max<std::int64_t>(0, std::chrono::ceil<Milliseconds>(due - Clock::now()).count()));
}

void Watch::run() {
  for (;;) {
    std::vector<pollfd> watched = {{wake_read_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Peer& p : peers_) watched.push_back({p.fd.get(), POLLIN, 0});
    if (poll(watched.data(), watched.size(), next_due()) < 0) continue;
    std::size_t i = 2;
    for (auto p = peers_.begin(); p != peers_.end(); ++i) {
      const bool open = watched[i].revents == 0 || listen_to(*p);
      if (!open) closed(*p);
      p = open ? std::next(p) : peers_.erase(p);
    }
    if (watched[1].revents != 0) {
      if (Descriptor fd = accept_from(listener_.get())) {
        watch_liveness(fd.get());
        peers_.push_back({.fd = std::move(fd)});
      }
    }
    if (watched[0].revents != 0 && !send_queued()) return;
    std::vector<Delayed> due;
    const auto now = Clock::now();
    std::erase_if(delayed_, [&](const Delayed& d) { return d.due <= now && (due.push_back(d), true); });
    for (const Delayed& d : due) deliver(d.event);
  }
}

// Sends what this rank reports. False at the end.
bool Watch::send_queued() {
  char bytes[64];
  while (read(wake_read_.get(), bytes, sizeof bytes) > 0) {
  }
  std::vector<RankEvent> events;
  bool stop = false;
  {
    const std::lock_guard lock(mutex_);
    events.swap(queue_);
    stop = stopping_;
  }
  for (const RankEvent& e : events) handle(e, nullptr);
  return !stop;
}

// Reads what a peer says. False when the connection is closed.
bool Watch::listen_to(Peer& peer) {
  const bool open = peer.reader.read_some(peer.fd.get());
  try {
    while (auto frame = peer.reader.next()) {
      if (rank_ == 0 && peer.rank < 0) {
        if (frame->size() != 2 || frame->front() != "hello") return false;
        peer.rank = std::atoi((*frame)[1].c_str());
        send_frame(peer.fd.get(), {"welcome"}, Clock::now() + kSendTime);
        for (const RankEvent& e : history_) send_to(peer, e);
        continue;
      }
      const RankEvent event = event_of(*frame);
      if (event.kind == RankEvent::Kind::left && event.rank == peer.rank) peer.left = true;
      handle(event, &peer);
    }
  } catch (const SocketFailure&) {
    return false;
  }
  return open && !peer.reader.broken();
}

void Watch::closed(const Peer& peer) {
  if (peer.rank < 0 || peer.left) return;  // a stranger, or one that said goodbye
  handle({RankEvent::Kind::lost, peer.rank,
          fmt::format("rank {} is lost: its connection closed, so its process has ended or its machine is gone.",
                      peer.rank)},
         &peer);
}

void Watch::handle(const RankEvent& event, const Peer* from) {
  if (rank_ == 0) history_.push_back(event);
  for (Peer& p : peers_) {
    // A member tells rank 0 only what it found itself; rank 0 tells everybody.
    if (&p != from && p.rank >= 0 && (rank_ == 0 || from == nullptr)) send_to(p, event);
  }
  const auto now = Clock::now();
  const bool gone = event.kind == RankEvent::Kind::lost || event.kind == RankEvent::Kind::left;
  for (Delayed& d : delayed_) {  // the process has ended, so its message is out
    if (gone && d.event.rank == event.rank && d.event.kind == RankEvent::Kind::failed) d.due = now + kEndSeen;
  }
  if (event.kind == RankEvent::Kind::left) {
    if (event.rank != rank_) delayed_.push_back({now + kLeaveGrace, event});
  } else if (event.kind == RankEvent::Kind::failed && event.rank != rank_) {
    delayed_.push_back({now + kLastWords, event});
  } else if (std::none_of(delayed_.begin(), delayed_.end(), [&](const Delayed& d) {
               return d.event.rank == event.rank && d.event.kind == RankEvent::Kind::failed;
             })) {
    deliver(event);  // a loss that was announced adds nothing
  }
}

void Watch::deliver(const RankEvent& event) {
  const std::lock_guard lock(listeners_mutex_);
  delivered_.push_back(event);
  for (const auto& [id, listener] : listeners_) listener(event);
}

void Watch::send_to(Peer& peer, const RankEvent& event) {
  try {
    send_frame(peer.fd.get(), frame_of(event), Clock::now() + kSendTime);
  } catch (const SocketFailure&) {  // the next read finds the connection closed
  }
}

}  // namespace levin::distributed
