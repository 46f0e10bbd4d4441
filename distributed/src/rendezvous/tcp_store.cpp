#include <fmt/format.h>
#include <levin/distributed/store.h>

#include <mutex>

#include "src/rendezvous/store_server.h"
#include "src/rendezvous/table.h"

namespace levin::distributed {

namespace {
constexpr auto kAnswerTime = std::chrono::seconds(30);

}  // namespace

struct TcpStore::Connection {
  std::mutex mutex;
  Descriptor fd;
};

TcpStore::TcpStore(const std::string& host, int port, const TcpStoreOptions& options) : host_(host), port_(port) {
  set_timeout(options.timeout);
  if (options.server) {
    try {
      server_ = std::make_unique<StoreServer>(port);
    } catch (const SocketFailure& e) {
      throw StoreError(
          fmt::format("[tcp_store] port {} of this machine could not be opened: {}. Another process, or a "
                      "second rank 0, may hold it; choose another MASTER_PORT.",
                      port, e.reason));
    }
    port_ = server_->port();
  }
  const auto deadline = from_now(options.timeout);
  connection_ = std::make_unique<Connection>();
  try {
    connection_->fd = connect_to(server_ && host.empty() ? "127.0.0.1" : host, port_, deadline);
  } catch (const SocketFailure& e) {
    if (e.host_unknown) {
      throw StoreError(fmt::format("[tcp_store] the host \"{}\" is unknown: {}. Check MASTER_ADDR.", host, e.reason));
    }
    throw StoreError(
        fmt::format("[tcp_store] no answer from {}:{} within {} s: {}. Does rank 0 run, and do "
                    "MASTER_ADDR and MASTER_PORT agree?",
                    host, port, options.timeout.seconds(), e.reason));
  }
  enable_keepalive(connection_->fd.get());
  try {
    send_frame(connection_->fd.get(), {kStoreHandshake}, deadline);
    if (receive_frame(connection_->fd.get(), deadline) == Frame{kStoreHandshake}) return;
  } catch (const SocketFailure&) {
  }
  throw StoreError(
      fmt::format("[tcp_store] the program at {}:{} is not a Levin store. Another program holds this "
                  "port; choose another MASTER_PORT.",
                  host, port));
}

TcpStore::~TcpStore() = default;

std::string TcpStore::address() const { return fmt::format("tcp://{}:{}", host_, port_); }
std::string TcpStore::local_address() const { return local_address_of(connection_->fd.get()); }

Frame TcpStore::ask(const Frame& request, Duration extra) {
  const std::lock_guard lock(connection_->mutex);
  if (!connection_->fd) throw StoreError(fmt::format("[tcp_store] the connection to {} is lost.", address()));
  const auto deadline = from_now(extra) + kAnswerTime;
  try {
    send_frame(connection_->fd.get(), request, deadline);
    return receive_frame(connection_->fd.get(), deadline);
  } catch (const SocketFailure& e) {
    connection_->fd.close();  // a late answer would be taken for the answer to another request
    throw StoreError(fmt::format("[tcp_store] the connection to {} is lost ({}), so rank 0 has probably ended.",
                                 address(), e.reason));
  }
}

void TcpStore::set(const std::string& key, const std::string& value) { ask({"set", key, value}); }

std::optional<std::string> TcpStore::try_get(const std::string& key) {
  Frame reply = ask({"get", key});
  if (reply.empty()) return std::nullopt;
  return std::move(reply[0]);
}

int64_t TcpStore::add(const std::string& key, int64_t amount) {
  const Frame reply = ask({"add", key, std::to_string(amount)});
  return to_number(reply.at(0));
}

std::string TcpStore::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  return ask({"compare_set", key, expected, desired}).at(0);
}

std::vector<std::string> TcpStore::wait_missing(const std::vector<std::string>& keys, Duration timeout) {
  Frame request = {"wait", std::to_string(Milliseconds(timeout).count())};
  request.insert(request.end(), keys.begin(), keys.end());
  return ask(request, timeout);
}

bool TcpStore::remove(const std::string& key) { return ask({"remove", key}).at(0) == "1"; }
std::vector<std::string> TcpStore::keys(const std::string& prefix) { return ask({"keys", prefix}); }

}  // namespace levin::distributed
