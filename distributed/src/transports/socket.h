#pragma once
// TCP with deadlines: owning descriptors, and frames of byte strings.

#include <levin/distributed/store.h>

#include <optional>
#include <utility>

#include "src/clock.h"

namespace levin::distributed {

/// Owns an open descriptor, or none (-1).
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

/// Thrown when a connection or a frame fails; the caller puts the reason into a sentence.
struct SocketFailure {
  std::string reason;  ///< "connection refused"
  bool host_unknown = false;
  bool timed_out = false;  ///< no answer in time; otherwise the other side closed or the network failed
};

/// Opens a listening socket on all addresses, or on `host`; port 0 takes a free one. Throws SocketFailure.
Descriptor listen_on(const std::string& host, int port);
/// Reserves a free port by a socket that does not listen: while it is open no other program is given the port, but
/// listen_on may open it. Throws SocketFailure.
Descriptor hold_port();
int port_of(int fd);
/// Returns the numeric address of this end of a connection.
std::string local_address_of(int fd);
/// Accepts a waiting connection; returns none if it is gone again.
Descriptor accept_from(int listener);
/// Connects, retrying with growing pauses until the deadline while nothing listens. Throws SocketFailure.
Descriptor connect_to(const std::string& host, int port, Clock::time_point deadline);
/// Makes a connection to a machine that has vanished fail after about four seconds instead of hours.
void enable_keepalive(int fd);

using Frame = std::vector<std::string>;
/// Writes a complete frame; throws SocketFailure.
void send_frame(int fd, const Frame& frame, Clock::time_point deadline);
/// Reads one frame; throws SocketFailure, also for malformed data.
Frame receive_frame(int fd, Clock::time_point deadline);

/// Collects bytes as they arrive and returns complete frames, for a server that must not block.
class FrameReader {
 public:
  /// Reads the available bytes. Returns false when the other side has closed, failed, or sent malformed data.
  bool read_some(int fd);
  std::optional<Frame> next();
  bool broken() const { return broken_; }

 private:
  std::string bytes_;
  bool broken_ = false;
};

}  // namespace levin::distributed
