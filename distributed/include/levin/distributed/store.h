#pragma once
// A key-value store that all ranks share, by which they find each other before they can communicate directly.

#include <levin/core/duration.h>
#include <levin/core/owned_ptr.h>
#include <levin/distributed/error.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace levin::distributed {

using std::int64_t;

/// Default time limit of every operation between ranks.
inline constexpr Duration kDefaultTimeout = Duration::of_seconds(300);

/// A table of strings by keys that all ranks share. All methods are thread-safe and throw StoreError.
class Store {
 public:
  virtual ~Store() = default;
  /// Sets a key or replaces its value.
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits up to timeout() for the key and returns its value.
  std::string get(const std::string& key);
  /// Returns the value of a key, or nothing if it is absent; does not wait.
  virtual std::optional<std::string> try_get(const std::string& key) = 0;
  /// Adds to a decimal number, or to 0 if the key is absent; returns the sum.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  /// Sets `desired` if the key holds `expected`, or is absent and `expected` is empty; returns the value afterwards.
  virtual std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) = 0;
  /// Waits until all keys are present, up to `timeout` or else timeout(); the error names those that are missing.
  void wait(const std::vector<std::string>& keys, std::optional<Duration> timeout = std::nullopt);
  /// Waits until all keys are present or the timeout expires; returns the missing ones.
  virtual std::vector<std::string> wait_missing(const std::vector<std::string>& keys, Duration timeout) = 0;
  /// Removes a key and returns whether it existed.
  virtual bool remove(const std::string& key) = 0;
  /// Returns all keys that begin with `prefix`, sorted.
  virtual std::vector<std::string> keys(const std::string& prefix = {}) = 0;
  /// Returns e.g. "tcp://10.0.0.1:29500", for messages.
  virtual std::string address() const = 0;
  /// Returns the address of this machine as other machines see it; empty where the store cannot tell.
  virtual std::string local_address() const { return {}; }

  /// Time limit of get() and wait().
  Duration timeout() const { return timeout_; }
  void set_timeout(Duration timeout) { timeout_ = timeout; }

 private:
  Duration timeout_ = kDefaultTimeout;
};

/// Options of TcpStore.
struct TcpStoreOptions {
  bool server = false;                 ///< this process holds the table (rank 0)
  Duration timeout = kDefaultTimeout;  ///< of connecting and of waits
};

class StoreServer;

/// One process holds the table, on a thread of its own, and serves it over TCP.
class TcpStore final : public Store {
 public:
  /// Starts the server if asked (port 0 takes a free one), then connects, retrying until the timeout. Throws StoreError
  /// if the port is taken, the host is unknown, nothing answers, or another program does.
  TcpStore(const std::string& host, int port, const TcpStoreOptions& options = {});
  ~TcpStore() override;
  TcpStore(const TcpStore&) = delete;
  TcpStore& operator=(const TcpStore&) = delete;

  /// The port that was given, or that was found for port 0.
  int port() const { return port_; }

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> try_get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override;
  std::vector<std::string> wait_missing(const std::vector<std::string>& keys, Duration timeout) override;
  bool remove(const std::string& key) override;
  std::vector<std::string> keys(const std::string& prefix = {}) override;
  std::string address() const override;
  std::string local_address() const override;

 private:
  struct Connection;
  std::vector<std::string> ask(const std::vector<std::string>& request, Duration extra = {});

  std::string host_;
  int port_;
  OwnedPtr<StoreServer> server_;
  OwnedPtr<Connection> connection_;
};

/// The table is a locked file that all ranks share. The first store creates it, and the last one to close removes it.
class FileStore final : public Store {
 public:
  /// Opens the file, which is created if absent; `timeout` is that of waits. Throws StoreError if it cannot be written.
  explicit FileStore(std::string path, Duration timeout = kDefaultTimeout);
  ~FileStore() override;
  FileStore(const FileStore&) = delete;
  FileStore& operator=(const FileStore&) = delete;

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> try_get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override;
  std::vector<std::string> wait_missing(const std::vector<std::string>& keys, Duration timeout) override;
  bool remove(const std::string& key) override;
  std::vector<std::string> keys(const std::string& prefix = {}) override;
  std::string address() const override;

 private:
  class Table;
  std::string path_;
};

/// Prepends "<prefix>/" to all keys of another store, so that the keys of different users do not collide.
class PrefixStore final : public Store {
 public:
  /// Takes the time limit of `base`.
  PrefixStore(std::string prefix, std::shared_ptr<Store> base);

  void set(const std::string& key, const std::string& value) override { base_->set(prefix_ + key, value); }
  std::optional<std::string> try_get(const std::string& key) override { return base_->try_get(prefix_ + key); }
  int64_t add(const std::string& key, int64_t amount) override { return base_->add(prefix_ + key, amount); }
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override {
    return base_->compare_set(prefix_ + key, expected, desired);
  }
  std::vector<std::string> wait_missing(const std::vector<std::string>& keys, Duration timeout) override;
  bool remove(const std::string& key) override { return base_->remove(prefix_ + key); }
  std::vector<std::string> keys(const std::string& prefix = {}) override;
  std::string address() const override { return base_->address(); }
  std::string local_address() const override { return base_->local_address(); }

 private:
  std::string prefix_;
  std::shared_ptr<Store> base_;
};

}  // namespace levin::distributed
