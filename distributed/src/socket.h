#pragma once
// TCP with deadlines: descriptors that close themselves, and frames of byte strings.

#include <levin/distributed/store.h>

#include <optional>
#include <utility>

namespace levin::distributed {

using Clock = std::chrono::steady_clock;

/// An open descriptor, or none (-1).
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

/// Why a connection or a frame did not come about, for the caller to put into a sentence.
struct SocketFailure {
  std::string reason;  ///< "connection refused"
  bool host_unknown = false;
  bool timed_out = false;  ///< nothing came in time; otherwise the other side closed or the network failed
};

/// A listening socket on all addresses, or on `host`; port 0 takes a free one. Throws SocketFailure.
Descriptor listen_on(const std::string& host, int port);
/// A free port, as a socket that does not listen: while it is open the port is given to no other program, but listen_on
/// may open it. Throws SocketFailure.
Descriptor hold_port();
int port_of(int fd);
/// The numeric address of this end of a connection.
std::string local_address_of(int fd);
/// Accepts a waiting connection; none if it is gone again.
Descriptor accept_from(int listener);
/// Connects, trying again with growing pauses while nobody listens, until the deadline. Throws SocketFailure.
Descriptor connect_to(const std::string& host, int port, Clock::time_point deadline);
/// A connection to a machine that has vanished fails after about four seconds instead of hours.
void watch_liveness(int fd);

using Frame = std::vector<std::string>;
/// Writes all of a frame; throws SocketFailure.
void send_frame(int fd, const Frame& frame, Clock::time_point deadline);
/// Reads one frame; throws SocketFailure, also for what is no frame.
Frame receive_frame(int fd, Clock::time_point deadline);

/// Collects bytes as they come and gives whole frames, for a server that must not wait.
class FrameReader {
 public:
  /// Reads what is there. False when the other side has closed, failed, or sent what is no frame.
  bool read_some(int fd);
  std::optional<Frame> next();
  bool broken() const { return broken_; }

 private:
  std::string bytes_;
  bool broken_ = false;
};

}  // namespace levin::distributed
