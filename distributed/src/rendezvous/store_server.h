#pragma once
// The thread that serves a TcpStore's table.

#include <list>
#include <map>
#include <thread>

#include "src/transports/socket.h"

namespace levin::distributed {

/// The first message of a client, which the server returns, so that both recognise each other.
inline constexpr const char* kStoreHandshake = "levin-store-1";

class StoreServer {
 public:
  /// Listens at once; throws SocketFailure.
  explicit StoreServer(int port);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  int port() const { return port_of(listener_.get()); }

 private:
  struct Client {
    Descriptor fd;
    FrameReader reader;
    bool handshake_done = false;
    std::vector<std::string> awaited{};  // keys of a pending wait
    Clock::time_point deadline{};
  };

  void run();
  void serve(Client& client);
  Frame execute(const Frame& request);
  void finish_waits();
  int next_deadline() const;
  std::vector<std::string> missing(const std::vector<std::string>& keys) const;

  Descriptor listener_, wake_read_, wake_write_;
  std::map<std::string, std::string> table_;
  std::list<Client> clients_;
  std::thread thread_;
};

}  // namespace levin::distributed
