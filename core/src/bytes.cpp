#include <levin/core/io/bytes.h>
#include <levin/core/error.h>
#include <levin/core/io.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace levin::io {

FileBytes read_bytes(const std::string& path) {
  auto bytes = std::make_shared<Bytes>(read_file(path));
  return {*bytes, bytes};
}

FileBytes map_bytes(const std::string& path) {
  const auto refuse = [&](int error) {
    throw IoError(fmt::format("[mmap] {}: {}. Check the path.", path, std::strerror(error)));
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) refuse(errno);
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    refuse(S_ISDIR(info.st_mode) ? EISDIR : EINVAL);
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) {
    close(fd);
    return {};
  }
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
  const int error = errno;
  close(fd);
  if (p == MAP_FAILED) refuse(error);
  return {{static_cast<std::byte*>(p), size}, std::shared_ptr<void>(p, [size](void* mapped) { munmap(mapped, size); })};
}

}  // namespace levin::io
