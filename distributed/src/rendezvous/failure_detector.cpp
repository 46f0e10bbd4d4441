#include "src/rendezvous/failure_detector.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

namespace levin::distributed {

namespace {

constexpr auto kSendTime = std::chrono::seconds(5);
// The launcher polls for ended processes and should see the failed one first: how long the others wait.
constexpr auto kEndSeen = std::chrono::milliseconds(50);

std::string kind_name(RankEvent::Kind kind) { return std::to_string(static_cast<int>(kind)); }

Frame frame_of(const RankEvent& e) { return {kind_name(e.kind), std::to_string(e.rank), e.text}; }

RankEvent event_of(const Frame& frame) {
  if (frame.size() != 3) throw SocketFailure{.reason = "not an event"};
  return {static_cast<RankEvent::Kind>(std::atoi(frame[0].c_str())), std::atoi(frame[1].c_str()), frame[2]};
}

}  // namespace

void throw_event(const RankEvent& event, const std::string& operation) {
  const std::string text = fmt::format("[{}] {}", operation, event.text);
  if (event.kind == RankEvent::Kind::mismatch) throw CollectiveMismatch(text);
  if (event.kind == RankEvent::Kind::timeout) throw CollectiveTimeout(text);
  throw RankLost(event.rank, text);
}

FailureDetector::FailureDetector(Store& store, int rank) : rank_(rank) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    throw StoreError("[failure_detector] pipe() failed: too many open files?");
  wake_read_ = Descriptor(ends[0]);
  wake_write_ = Descriptor(ends[1]);
  try {
    rank == 0 ? open_server(store) : connect(store);
  } catch (const SocketFailure& e) {
    throw StoreError(fmt::format("[failure_detector] rank {} could not connect with rank 0: {}.", rank, e.reason));
  }
  thread_ = std::thread([this] { run(); });
}

void FailureDetector::open_server(Store& store) {
  listener_ = listen_on({}, 0);
  std::string host = store.local_address();
  if (host.empty()) host = "127.0.0.1";
  store.set("failure_detector/address", fmt::format("{} {}", port_of(listener_.get()), host));
}

void FailureDetector::connect(Store& store) {
  const std::string address = store.get("failure_detector/address");
  const auto space = address.find(' ');
  const auto deadline = from_now(store.timeout());
  peers_.push_back({.fd = connect_to(address.substr(space + 1), std::atoi(address.c_str()), deadline), .rank = 0});
  enable_keepalive(peers_.back().fd.get());
  send_frame(peers_.back().fd.get(), {"hello", std::to_string(rank_)}, deadline);
  receive_frame(peers_.back().fd.get(), deadline);  // from now on this rank receives all events
}

FailureDetector::~FailureDetector() {
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
  // After a failure the connections stay open until the process ends: their closing tells the others that its error has
  // been printed.
  static std::mutex mutex;
  static auto* kept = new std::list<Peer>;
  const std::lock_guard lock(mutex);
  kept->splice(kept->end(), peers_);
}

int FailureDetector::subscribe(Listener listener) {
  const std::lock_guard lock(listeners_mutex_);
  for (const RankEvent& e : delivered_) listener(e);
  listeners_.emplace(next_id_, std::move(listener));
  return next_id_++;
}

void FailureDetector::unsubscribe(int id) {
  const std::lock_guard lock(listeners_mutex_);
  listeners_.erase(id);
}

void FailureDetector::report(RankEvent::Kind kind, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (failed_ && kind == RankEvent::Kind::failed) return;  // the first reason counts
  failed_ = failed_ || kind == RankEvent::Kind::failed;
  queue_.push_back({kind, rank_, text});
  const char byte = 1;
  [[maybe_unused]] const auto n = write(wake_write_.get(), &byte, 1);  // if the pipe is full, the thread wakes anyway
}

int FailureDetector::next_due() const {
  if (delayed_.empty()) return -1;
  const auto due = std::min_element(delayed_.begin(), delayed_.end(), [](const Delayed& a, const Delayed& b) {
                     return a.due < b.due;
                   })->due;
  return static_cast<int>(std::max<std::int64_t>(0, std::chrono::ceil<Milliseconds>(due - Clock::now()).count()));
}

void FailureDetector::run() {
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
        enable_keepalive(fd.get());
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

// Sends this rank's reports. Returns false when the detector stops.
bool FailureDetector::send_queued() {
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

// Reads a peer's messages. Returns false when the connection is closed.
bool FailureDetector::listen_to(Peer& peer) {
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

void FailureDetector::closed(const Peer& peer) {
  if (peer.rank < 0 || peer.left) return;  // a stranger, or one that said goodbye
  handle({RankEvent::Kind::lost, peer.rank,
          fmt::format("rank {} is lost: its connection closed, so its process has ended or its machine is gone.",
                      peer.rank)},
         &peer);
}

void FailureDetector::handle(const RankEvent& event, const Peer* from) {
  if (rank_ == 0) history_.push_back(event);
  for (Peer& p : peers_) {
    // A member sends rank 0 only what it found itself; rank 0 sends every event to all.
    if (&p != from && p.rank >= 0 && (rank_ == 0 || from == nullptr)) send_to(p, event);
  }
  const auto now = Clock::now();
  const bool gone = event.kind == RankEvent::Kind::lost || event.kind == RankEvent::Kind::left;
  for (Delayed& d : delayed_) {  // the process has ended, so its error has been printed
    if (gone && d.event.rank == event.rank && d.event.kind == RankEvent::Kind::failed) d.due = now + kEndSeen;
  }
  if (event.kind == RankEvent::Kind::left) {
    if (event.rank != rank_) delayed_.push_back({now + kLeaveGrace, event});
  } else if (event.kind == RankEvent::Kind::failed && event.rank != rank_) {
    delayed_.push_back({now + kLastWords, event});
  } else if (std::none_of(delayed_.begin(), delayed_.end(), [&](const Delayed& d) {
               return d.event.rank == event.rank && d.event.kind == RankEvent::Kind::failed;
             })) {
    deliver(event);  // the loss of a rank that reported a failure adds nothing
  }
}

void FailureDetector::deliver(const RankEvent& event) {
  const std::lock_guard lock(listeners_mutex_);
  delivered_.push_back(event);
  for (const auto& [id, listener] : listeners_) listener(event);
}

void FailureDetector::send_to(Peer& peer, const RankEvent& event) {
  try {
    send_frame(peer.fd.get(), frame_of(event), Clock::now() + kSendTime);
  } catch (const SocketFailure&) {  // the next read finds the connection closed
  }
}

}  // namespace levin::distributed
