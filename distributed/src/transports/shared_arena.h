#pragma once
// A rank's memory for tensors that the other ranks of its host can access.

#include <map>
#include <memory>
#include <mutex>

#include "src/transports/socket.h"

namespace levin::distributed {

/// An unnamed file, much longer than its used part, which every rank maps. It is freed with the last process that maps
/// it, however that ends.
class SharedArena {
 public:
  /// Creates this rank's arena; null where the system refuses. Other ranks need the token to open it.
  static std::shared_ptr<SharedArena> create(const std::string& token);
  /// Opens another rank's arena; null where that fails.
  static std::shared_ptr<SharedArena> open(int pid, int fd, const std::string& token);
  ~SharedArena();
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  int fd() const { return fd_.get(); }
  std::byte* base() const { return base_; }
  bool holds(const std::byte* p) const { return p >= base_ && p < base_ + bytes_; }
  /// Allocates zeroed memory, on the rank that created the arena; null where the system has none left.
  std::byte* allocate(std::size_t bytes);
  void free(std::byte* memory);

 private:
  SharedArena(Descriptor fd, std::size_t bytes, std::byte* base) : fd_(std::move(fd)), bytes_(bytes), base_(base) {}
  static std::shared_ptr<SharedArena> map(Descriptor fd, std::size_t bytes);

  Descriptor fd_;
  std::size_t bytes_;
  std::byte* base_;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> used_;  // begin -> bytes, in multiples of the page size
};

}  // namespace levin::distributed
