#pragma once
// Ports, and a foreign program that listens on one.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

namespace levin::test {

inline sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// Listens on a free port of the loopback interface.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    socklen_t length = sizeof address;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    listen(fd_, 8);
  }
  ~Listener() { close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  int fd() const { return fd_; }
  int port() const { return port_; }

 private:
  int fd_, port_ = 0;
};

/// Returns the errno with which another program fails to bind the port, or 0.
inline int bind_error(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(port);
  const int error = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  close(fd);
  return error;
}

/// A foreign service that answers its first client with a text.
class Stranger {
 public:
  explicit Stranger(const std::string& text)
      : thread_([this, text] {
          const int caller = accept(listener_.fd(), nullptr, nullptr);
          if (caller < 0) return;
          send(caller, text.data(), text.size(), MSG_NOSIGNAL);
          close(caller);
        }) {}
  ~Stranger() {
    shutdown(listener_.fd(), SHUT_RDWR);
    thread_.join();
  }
  int port() const { return listener_.port(); }

 private:
  Listener listener_;
  std::thread thread_;
};

/// Sends a text to a port of this machine and hangs up.
inline void say_to(int port, const std::string& text) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    send(fd, text.data(), text.size(), MSG_NOSIGNAL);
  }
  close(fd);
}

}  // namespace levin::test
