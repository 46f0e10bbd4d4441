#include "src/rendezvous/store_server.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "src/rendezvous/table.h"

namespace levin::distributed {

namespace {
constexpr auto kReplyTime = std::chrono::seconds(5);
}

StoreServer::StoreServer(int port) : listener_(listen_on({}, port)) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw SocketFailure{.reason = "pipe() failed"};
  wake_read_ = Descriptor(ends[0]);
  wake_write_ = Descriptor(ends[1]);
  thread_ = std::thread([this] { run(); });
}

StoreServer::~StoreServer() {
  wake_write_.close();
  thread_.join();
}

int StoreServer::next_deadline() const {
  auto soonest = Clock::time_point::max();
  for (const Client& c : clients_) {
    if (!c.awaited.empty()) soonest = std::min(soonest, c.deadline);
  }
  if (soonest == Clock::time_point::max()) return -1;
  return static_cast<int>(std::max<std::int64_t>(0, std::chrono::ceil<Milliseconds>(soonest - Clock::now()).count()));
}

void StoreServer::run() {
  for (;;) {
    std::vector<pollfd> watched = {{wake_read_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Client& c : clients_) watched.push_back({c.fd.get(), POLLIN, 0});
    if (poll(watched.data(), watched.size(), next_deadline()) < 0) continue;
    if (watched[0].revents != 0) return;
    std::size_t i = 2;
    for (auto c = clients_.begin(); c != clients_.end(); ++i) {
      bool open = true;
      if (watched[i].revents != 0) {
        open = c->reader.read_some(c->fd.get());
        try {
          serve(*c);
        } catch (const SocketFailure&) {
          open = false;
        }
      }
      c = open && !c->reader.broken() ? std::next(c) : clients_.erase(c);
    }
    if (watched[1].revents != 0) {
      if (Descriptor fd = accept_from(listener_.get())) clients_.push_back({.fd = std::move(fd), .reader = {}});
    }
    finish_waits();
  }
}

void StoreServer::serve(Client& client) {
  while (auto request = client.reader.next()) {
    if (!client.handshake_done) {
      if (*request != Frame{kStoreHandshake}) throw SocketFailure{.reason = "not a Levin client"};
      client.handshake_done = true;
      send_frame(client.fd.get(), {kStoreHandshake}, Clock::now() + kReplyTime);
      continue;
    }
    if (request->empty()) throw SocketFailure{.reason = "an empty request"};
    if (request->front() == "wait" && request->size() >= 2) {
      client.deadline = Clock::now() + Milliseconds(to_number((*request)[1]));
      client.awaited.assign(request->begin() + 2, request->end());
      if (!missing(client.awaited).empty()) continue;  // finish_waits answers
      client.awaited.clear();
      send_frame(client.fd.get(), {}, Clock::now() + kReplyTime);
      continue;
    }
    send_frame(client.fd.get(), execute(*request), Clock::now() + kReplyTime);
  }
}

Frame StoreServer::execute(const Frame& request) {
  const std::string& verb = request[0];
  const std::string key = request.size() > 1 ? request[1] : "";
  if (verb == "set" && request.size() == 3) {
    table_[key] = request[2];
    return {};
  }
  if (verb == "get") {
    const auto entry = table_.find(key);
    return entry == table_.end() ? Frame{} : Frame{entry->second};
  }
  if (verb == "add" && request.size() == 3) return {add_to(table_, key, to_number(request[2]))};
  if (verb == "compare_set" && request.size() == 4) return {compare_set_in(table_, key, request[2], request[3])};
  if (verb == "remove") return {table_.erase(key) != 0 ? "1" : "0"};
  if (verb == "keys") return keys_of(table_, key);
  throw SocketFailure{.reason = "an unknown request"};
}

std::vector<std::string> StoreServer::missing(const std::vector<std::string>& keys) const {
  return missing_from(table_, keys);
}

void StoreServer::finish_waits() {
  const auto now = Clock::now();
  for (Client& c : clients_) {
    if (c.awaited.empty()) continue;
    Frame left = missing(c.awaited);
    if (!left.empty() && now < c.deadline) continue;
    c.awaited.clear();
    try {
      send_frame(c.fd.get(), left, now + kReplyTime);
    } catch (const SocketFailure&) {
      c.reader = {};  // the next read finds the connection closed
    }
  }
}

}  // namespace levin::distributed
