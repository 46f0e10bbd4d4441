#include "src/transports/socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace levin::distributed {

namespace {

constexpr std::size_t kMaxFrame = std::size_t{64} << 20;

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const std::string& host, int port, int flags, int& status) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  status = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &list);
  return {list, &freeaddrinfo};
}

std::string reason_of(int error) { return std::strerror(error); }

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

void wait_for(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    pollfd entry{fd, events, 0};
    const int ready = poll(&entry, 1, milliseconds_until(deadline));
    if (ready > 0) return;
    if (ready == 0) throw SocketFailure{.reason = "no answer in time", .timed_out = true};
    if (errno != EINTR) throw SocketFailure{.reason = reason_of(errno)};
  }
}

void set_option(int fd, int level, int name, int value) { setsockopt(fd, level, name, &value, sizeof value); }

bool has_own_peer(int fd) {
  sockaddr_storage own{}, peer{};
  socklen_t own_length = sizeof own, peer_length = sizeof peer;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_length) == 0 &&
         getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_length) == 0 && own_length == peer_length &&
         std::memcmp(&own, &peer, own_length) == 0;
}

// Tries one address; returns 0 or the error.
int try_connect(const addrinfo& address, Clock::time_point deadline, Descriptor& result) {
  Descriptor fd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno;
  if (connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return errno;
    try {
      wait_for(fd.get(), POLLOUT, deadline);
    } catch (const SocketFailure&) {
      return ETIMEDOUT;
    }
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return error;
  }
  // A connecting socket may be assigned the very port that it calls, and so connect to itself.
  if (has_own_peer(fd.get())) return ECONNREFUSED;
  set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  result = std::move(fd);
  return 0;
}

void append_number(std::string& out, std::size_t value) {
  const auto v = static_cast<std::uint32_t>(value);
  for (unsigned shift = 0; shift < 32; shift += 8) out += static_cast<char>((v >> shift) & 0xffu);
}

std::size_t number_at(const std::string& bytes, std::size_t at) {
  std::size_t v = 0;
  for (std::size_t i = 0; i < 4; ++i)
    v |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return v;
}

// A frame is its length, then each part as length and bytes. Returns nothing when the lengths are inconsistent.
std::optional<Frame> parse(const std::string& body) {
  Frame frame;
  std::size_t at = 0;
  while (at < body.size()) {
    if (body.size() - at < 4) return std::nullopt;
    const std::size_t length = number_at(body, at);
    at += 4;
    if (length > body.size() - at) return std::nullopt;
    frame.push_back(body.substr(at, length));
    at += length;
  }
  return frame;
}

void receive_bytes(int fd, std::string& into, std::size_t count, Clock::time_point deadline) {
  into.resize(count);
  for (std::size_t done = 0; done < count;) {
    const ssize_t n = recv(fd, into.data() + done, count - done, MSG_DONTWAIT);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n == 0) {
      throw SocketFailure{.reason = "the other side closed the connection"};
    } else if (errno == EAGAIN) {
      wait_for(fd, POLLIN, deadline);
    } else if (errno != EINTR) {
      throw SocketFailure{.reason = reason_of(errno)};
    }
  }
}

}  // namespace

void Descriptor::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

namespace {

Descriptor open_port(const std::string& host, int port, bool listens) {
  int status = 0;
  const Addresses list = resolve(host, port, AI_PASSIVE, status);
  if (status != 0) throw SocketFailure{.reason = gai_strerror(status), .host_unknown = true};
  int error = 0;
  for (const addrinfo* a = list.get(); a != nullptr; a = a->ai_next) {
    Descriptor fd(socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd) {
      set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);  // one socket may listen on a port that others hold
      if (bind(fd.get(), a->ai_addr, a->ai_addrlen) == 0 && (!listens || listen(fd.get(), 1024) == 0)) return fd;
    }
    error = errno;
  }
  throw SocketFailure{.reason = reason_of(error)};
}

}  // namespace

Descriptor listen_on(const std::string& host, int port) { return open_port(host, port, /*listens=*/true); }

Descriptor hold_port() { return open_port({}, 0, /*listens=*/false); }

int port_of(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

std::string local_address_of(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  char text[NI_MAXHOST] = {};
  getnameinfo(reinterpret_cast<sockaddr*>(&address), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

Descriptor accept_from(int listener) {
  Descriptor fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd) set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  return fd;
}

Descriptor connect_to(const std::string& host, int port, Clock::time_point deadline) {
  Milliseconds pause(10);
  for (;;) {
    int status = 0, error = 0;
    const Addresses list = resolve(host, port, 0, status);
    if (status != 0 && status != EAI_AGAIN) throw SocketFailure{.reason = gai_strerror(status), .host_unknown = true};
    for (const addrinfo* a = list.get(); a != nullptr; a = a->ai_next) {
      Descriptor fd;
      error = try_connect(*a, deadline, fd);
      if (error == 0) return fd;
    }
    if (Clock::now() + pause >= deadline) {
      if (status != 0) throw SocketFailure{.reason = gai_strerror(status), .host_unknown = true};
      throw SocketFailure{.reason = reason_of(error), .timed_out = true};
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, Milliseconds(500));
  }
}

void enable_keepalive(int fd) {
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 4000);
}

void send_frame(int fd, const Frame& frame, Clock::time_point deadline) {
  std::string body;
  for (const std::string& part : frame) {
    append_number(body, part.size());
    body += part;
  }
  if (body.size() > kMaxFrame) throw SocketFailure{.reason = fmt::format("a message of {} bytes", body.size())};
  std::string bytes;
  append_number(bytes, body.size());
  bytes += body;
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = send(fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      wait_for(fd, POLLOUT, deadline);
    } else if (errno != EINTR) {
      throw SocketFailure{.reason = reason_of(errno)};
    }
  }
}

Frame receive_frame(int fd, Clock::time_point deadline) {
  std::string bytes;
  receive_bytes(fd, bytes, 4, deadline);
  const std::size_t length = number_at(bytes, 0);
  if (length > kMaxFrame) throw SocketFailure{.reason = "the answer is not from a Levin store"};
  receive_bytes(fd, bytes, length, deadline);
  auto frame = parse(bytes);
  if (!frame) throw SocketFailure{.reason = "the answer is not from a Levin store"};
  return *std::move(frame);
}

bool FrameReader::read_some(int fd) {
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n > 0) {
      bytes_.append(buffer, static_cast<std::size_t>(n));
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else {
      return n < 0 && errno == EAGAIN;
    }
  }
}

std::optional<Frame> FrameReader::next() {
  if (bytes_.size() < 4) return std::nullopt;
  const std::size_t length = number_at(bytes_, 0);
  if (length > kMaxFrame) broken_ = true;
  if (broken_ || bytes_.size() - 4 < length) return std::nullopt;
  auto frame = parse(bytes_.substr(4, length));
  bytes_.erase(0, 4 + length);
  if (!frame) broken_ = true;
  return frame;
}

}  // namespace levin::distributed
