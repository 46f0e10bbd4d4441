#pragma once
// Who is still there? Each process holds one quiet connection to rank 0. It closes when the process dies, whatever the
// process was doing, and carries one message when something goes wrong, so that all ranks know within moments, also
// those that wait for somebody else. Serves every backend: what notices a loss then ends the waiting.

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "src/socket.h"

namespace levin::distributed {

/// What became of a rank.
struct RankEvent {
  enum class Kind { lost, failed, mismatch, timeout, left };
  Kind kind;
  int rank;          ///< in the world
  std::string text;  ///< a sentence
};

/// Throws the exception that belongs to an event, its text headed by `operation`.
[[noreturn]] void throw_event(const RankEvent& event, const std::string& operation);

class Watch {
 public:
  /// Rank 0 listens and tells its address through the store; the others connect. Throws StoreError.
  Watch(Store& store, int rank);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  using Listener = std::function<void(const RankEvent&)>;
  /// Called on the watch's thread for each event, also for those that came before. A rank that left is told of only
  /// kLeaveGrace later, when whatever it sent has arrived; one that failed when its process has ended, or after
  /// kLastWords, so that its own message stands before those of the others.
  int subscribe(Listener listener);
  void unsubscribe(int id);
  /// Tells all ranks, this one included.
  void report(RankEvent::Kind kind, const std::string& text);

  static constexpr auto kLeaveGrace = std::chrono::seconds(2);
  static constexpr auto kLastWords = std::chrono::seconds(1);

 private:
  struct Peer {
    Descriptor fd;
    FrameReader reader{};
    int rank = -1;
    bool left = false;
  };
  struct Delayed {
    Clock::time_point due;
    RankEvent event;
  };

  void open_server(Store& store);
  void connect(Store& store);
  void run();
  bool listen_to(Peer& peer);
  void closed(const Peer& peer);
  void handle(const RankEvent& event, const Peer* from);
  void deliver(const RankEvent& event);
  void send_to(Peer& peer, const RankEvent& event);
  bool send_queued();
  int next_due() const;

  int rank_;
  Descriptor listener_, wake_read_, wake_write_;
  std::list<Peer> peers_;
  std::vector<RankEvent> history_;  // of rank 0, for those that connect late
  std::vector<Delayed> delayed_;
  std::mutex mutex_;  // of what follows
  std::vector<RankEvent> queue_;
  bool stopping_ = false, failed_ = false;
  std::recursive_mutex listeners_mutex_;
  std::map<int, Listener> listeners_;
  std::vector<RankEvent> delivered_;
  int next_id_ = 0;
  std::thread thread_;
};

}  // namespace levin::distributed
