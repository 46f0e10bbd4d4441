#pragma once
// Memory of one rank that the other ranks of its host see as well, for tensors.

#include <map>
#include <memory>
#include <mutex>

#include "src/socket.h"

namespace levin::distributed {

/// A file without a name, far longer than what is in use of it, mapped by every rank. It goes with the last process
/// that has it, however that ends.
class SharedArena {
 public:
  /// Of this rank; null where the system refuses. Whoever opens it must know the token.
  static std::shared_ptr<SharedArena> create(const std::string& token);
  /// Of another rank; null where it cannot be opened.
  static std::shared_ptr<SharedArena> open(int pid, int fd, const std::string& token);
  ~SharedArena();
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  int fd() const { return fd_.get(); }
  std::byte* base() const { return base_; }
  bool holds(const std::byte* p) const { return p >= base_ && p < base_ + bytes_; }
  /// Of the rank that created it. Null where the system has no memory left; the memory is zeros.
  std::byte* allocate(std::size_t bytes);
  void free(std::byte* memory);

 private:
  SharedArena(Descriptor fd, std::size_t bytes, std::byte* base) : fd_(std::move(fd)), bytes_(bytes), base_(base) {}
  static std::shared_ptr<SharedArena> map(Descriptor fd, std::size_t bytes);

  Descriptor fd_;
  std::size_t bytes_;
  std::byte* base_;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> used_;  // begin and bytes, in whole pages
};

}  // namespace levin::distributed
