#include "src/transports/shared_arena.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace levin::distributed {

namespace {

std::size_t page() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

std::shared_ptr<SharedArena> SharedArena::map(Descriptor fd, std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, bytes, MADV_HUGEPAGE);  // granted only if the system allows it for shared memory
  return std::shared_ptr<SharedArena>(new SharedArena(std::move(fd), bytes, static_cast<std::byte*>(memory)));
}

// The file is as long as the machine's memory, since reserved addresses cost nothing. The first page holds the token.
std::shared_ptr<SharedArena> SharedArena::create(const std::string& token) {
  const std::size_t bytes = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * page();
  Descriptor fd(memfd_create("levin-tensors", MFD_CLOEXEC));
  if (!fd || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return nullptr;
  auto arena = map(std::move(fd), bytes);
  if (!arena || arena->allocate(page()) != arena->base()) return nullptr;
  std::memcpy(arena->base(), token.data(), token.size());
  return arena;
}

std::shared_ptr<SharedArena> SharedArena::open(int pid, int fd, const std::string& token) {
  Descriptor file(::open(fmt::format("/proc/{}/fd/{}", pid, fd).c_str(), O_RDWR | O_CLOEXEC));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0 || status.st_size < static_cast<off_t>(page())) return nullptr;
  auto arena = map(std::move(file), static_cast<std::size_t>(status.st_size));
  if (arena) arena->fd_.close();
  return arena && std::memcmp(arena->base(), token.data(), token.size()) == 0 ? arena : nullptr;
}

SharedArena::~SharedArena() { munmap(base_, bytes_); }

// Finds the first gap that is long enough. fallocate reserves the pages now: a lack of memory later would be SIGBUS.
std::byte* SharedArena::allocate(std::size_t bytes) {
  const std::size_t length = (bytes + page() - 1) / page() * page();
  const std::lock_guard lock(mutex_);
  std::size_t at = 0;
  for (const auto& [begin, used] : used_) {
    if (begin - at >= length) break;
    at = begin + used;
  }
  if (length == 0 || bytes_ - at < length) return nullptr;
  if (fallocate(fd_.get(), 0, static_cast<off_t>(at), static_cast<off_t>(length)) != 0) return nullptr;
  used_[at] = length;
  return base_ + at;
}

void SharedArena::free(std::byte* memory) {
  const auto at = static_cast<std::size_t>(memory - base_);
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(at);
  fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at),
            static_cast<off_t>(found->second));
  used_.erase(found);
}

}  // namespace levin::distributed
