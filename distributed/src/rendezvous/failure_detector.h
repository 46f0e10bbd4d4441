#pragma once
// Detects the failure of ranks, for every backend. Each process holds one idle connection to rank 0. It closes when the
// process dies, whatever the process was doing, and it carries a message when something goes wrong, so that all ranks
// know at once, also those that wait for another rank. The group's transport then ends all waits.

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "src/transports/socket.h"

namespace levin::distributed {

/// The failure or the exit of a rank.
struct RankEvent {
  enum class Kind { lost, failed, mismatch, timeout, left };
  Kind kind;
  int rank;          ///< in the world
  std::string text;  ///< one sentence
};

/// Throws the exception for an event; its text begins with `operation`.
[[noreturn]] void throw_event(const RankEvent& event, const std::string& operation);

class FailureDetector {
 public:
  /// Rank 0 listens and publishes its address in the store; the others connect. Throws StoreError.
  FailureDetector(Store& store, int rank);
  ~FailureDetector();
  FailureDetector(const FailureDetector&) = delete;
  FailureDetector& operator=(const FailureDetector&) = delete;

  using Listener = std::function<void(const RankEvent&)>;
  /// Calls the listener for each event, on the detector's thread, and for past events at once. The exit of a rank is
  /// delivered kLeaveGrace later, when everything that it sent has arrived; its failure when its process has ended, or
  /// after kLastWords, so that its own error is printed before those of the others.
  int subscribe(Listener listener);
  void unsubscribe(int id);
  /// Reports an event of this rank to all ranks, including this one.
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
  std::vector<RankEvent> history_;  // on rank 0, for ranks that connect late
  std::vector<Delayed> delayed_;
  std::mutex mutex_;  // guards queue_, stopping_ and failed_
  std::vector<RankEvent> queue_;
  bool stopping_ = false, failed_ = false;
  std::recursive_mutex listeners_mutex_;
  std::map<int, Listener> listeners_;
  std::vector<RankEvent> delivered_;
  int next_id_ = 0;
  std::thread thread_;
};

}  // namespace levin::distributed
