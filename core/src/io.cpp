#include <levin/core/error.h>
#include <levin/core/io.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <utility>

namespace levin::io {

namespace fs = std::filesystem;

namespace {

std::atomic<std::int64_t> g_bytes_until_failure{-1};
std::atomic<int> g_write_error{ENOSPC};
std::atomic<std::int64_t> g_operations_until_kill{-1};

/// Called before every operation that changes files, for kill_process_after().
void begin_operation() {
  if (g_operations_until_kill.load() >= 0 && g_operations_until_kill.fetch_sub(1) == 0) raise(SIGKILL);
}

[[noreturn]] void fail(const char* op, const fs::path& path, int error, const char* remedy) {
  throw IoError(fmt::format("[{}] {}: {}. {}", op, path.string(), std::strerror(error), remedy));
}

const char* write_remedy(int error) {
  if (error == ENOSPC || error == EDQUOT)
    return "Free some space or choose another folder; what was there is untouched.";
  if (error == EACCES || error == EPERM || error == EROFS) return "Choose a folder that you may write to.";
  if (error == ENOENT) return "Make the folder first.";
  return "What was there is untouched.";
}

[[noreturn]] void fail_writing(const fs::path& path, int error) { fail("write", path, error, write_remedy(error)); }

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

/// Removes a slash at the end, so that the path has a file name.
fs::path named(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

/// Returns ".<name>.<pid>.<number>.tmp" in the folder of `path`. By the process id, recover_folder sees whether it was
/// left behind.
fs::path temporary_beside(const fs::path& path) {
  static std::atomic<int> number{0};
  return folder_of(path) / fmt::format(".{}.{}.{}.tmp", path.filename().string(), getpid(), number.fetch_add(1));
}

/// A file descriptor that closes itself.
class File {
 public:
  File(const fs::path& path, int flags) {
    do {
      fd_ = open(path.c_str(), flags | O_CLOEXEC, 0666);
    } while (fd_ < 0 && errno == EINTR);
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool opened() const { return fd_ >= 0; }
  int get() const { return fd_; }
  /// Closes the file; some file systems report a full disk only here.
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_ = -1;
};

ssize_t write_some(int fd, const std::byte* data, std::size_t bytes) {
  begin_operation();
  if (g_operations_until_kill.load() >= 0) bytes = std::min(bytes, std::size_t{1} << 16);
  const std::int64_t left = g_bytes_until_failure.load();
  if (left >= 0) {
    if (left == 0) {
      errno = g_write_error.load();
      return -1;
    }
    bytes = std::min(bytes, static_cast<std::size_t>(left));
    g_bytes_until_failure.store(left - static_cast<std::int64_t>(bytes));
  }
  return ::write(fd, data, bytes);
}

void sync_folder(const fs::path& folder) {
  begin_operation();
  const File dir(folder, O_RDONLY | O_DIRECTORY);
  if (dir.opened()) fsync(dir.get());  // errors are ignored: some file systems cannot sync a folder
}

void remove_quietly(const fs::path& path) {
  begin_operation();
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

/// Writes and syncs a new file; returns 0 or the errno.
int write_new(const fs::path& path, std::span<const std::byte> data) {
  begin_operation();
  File file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (!file.opened()) return errno;
  while (!data.empty()) {
    const ssize_t n = write_some(file.get(), data.data(), std::min(data.size(), std::size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    data = data.subspan(static_cast<std::size_t>(n));
  }
  begin_operation();
  if (fsync(file.get()) != 0 && errno != EINVAL) return errno;
  return file.close() == 0 ? 0 : errno;
}

int rename_path(const fs::path& from, const fs::path& to) {
  begin_operation();
  return ::rename(from.c_str(), to.c_str());
}

void rename_or_fail(const fs::path& from, const fs::path& to) {
  if (rename_path(from, to) == 0) return;
  const int error = errno;
  remove_quietly(from);
  fail_writing(to, error);
}

void sync_tree(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const File file(entry.path(), O_RDONLY);
    if (file.opened() && fsync(file.get()) != 0 && errno != EINVAL) fail_writing(entry.path(), errno);
  }
  sync_folder(folder);
}

fs::path old_name(const fs::path& path) { return path.string() + ".old"; }

/// True if `file` is a name made by temporary_beside() for a file called `name` (empty: any file) by a process that has
/// ended (or by this one, which is not writing now).
bool is_stray(const std::string& file, const std::string& name) {
  if (!file.starts_with(".") || !file.ends_with(".tmp")) return false;
  const auto number = file.rfind('.', file.size() - 5);  // before ".tmp"
  if (number == std::string::npos || number == 0) return false;
  const auto process = file.rfind('.', number - 1);
  if (process == std::string::npos || process == 0) return false;
  if (!name.empty() && file.compare(1, process - 1, name) != 0) return false;
  const auto whole = [&](std::size_t from, std::size_t to) {
    int value = 0;
    const auto [rest, status] = std::from_chars(file.data() + from + 1, file.data() + to, value);
    return status == std::errc{} && rest == file.data() + to ? value : -1;
  };
  const int pid = whole(process, number);
  if (pid <= 0 || whole(number, file.size() - 4) < 0) return false;
  return pid == getpid() || (kill(pid, 0) != 0 && errno == ESRCH);
}

int remove_strays_of(const fs::path& folder, const std::string& name) {
  std::vector<fs::path> strays;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (is_stray(entry.path().filename().string(), name)) strays.push_back(entry.path());
  for (const fs::path& stray : strays) remove_quietly(stray);
  return static_cast<int>(strays.size());
}

}  // namespace

void write_file(const std::string& path, std::span<const std::byte> data) {
  const fs::path temporary = temporary_beside(path);
  if (const int error = write_new(temporary, data)) {
    remove_quietly(temporary);
    fail_writing(path, error);
  }
  rename_or_fail(temporary, path);
  sync_folder(folder_of(path));
}

void write_file(const std::string& path, const std::string& text) { write_file(path, std::as_bytes(std::span(text))); }

void write_folder(const std::string& where, const std::function<void(const std::string&)>& fill) {
  const fs::path path = named(where), old = old_name(path), temporary = temporary_beside(path);
  begin_operation();
  if (mkdir(temporary.c_str(), 0777) != 0) fail_writing(path, errno);
  try {
    fill(temporary);
    sync_tree(temporary);
  } catch (const fs::filesystem_error& e) {
    remove_quietly(temporary);
    fail_writing(path, e.code().value());
  } catch (...) {
    remove_quietly(temporary);
    throw;
  }
  const bool replaces = fs::exists(fs::symlink_status(path));
  if (replaces) {
    remove_quietly(old);
    if (rename_path(path, old) != 0) {
      const int error = errno;
      remove_quietly(temporary);
      fail_writing(path, error);
    }
  }
  if (rename_path(temporary, path) != 0) {
    const int error = errno;
    if (replaces) rename_path(old, path);
    remove_quietly(temporary);
    fail_writing(path, error);
  }
  sync_folder(folder_of(path));
  if (replaces) remove_quietly(old);
}

void recover_folder(const std::string& where) {
  const fs::path path = named(where), old = old_name(path), folder = folder_of(path);
  if (!fs::exists(folder)) return;
  if (fs::exists(old)) {
    if (fs::exists(path)) {
      remove_quietly(old);
    } else if (rename_path(old, path) != 0) {
      fail_writing(path, errno);
    }
  }
  remove_strays_of(folder, path.filename().string());
}

void remove_folder(const std::string& where) {
  const fs::path path = named(where), temporary = temporary_beside(path);
  if (rename_path(path, temporary) != 0) fail("remove", path, errno, "What is there is untouched.");
  remove_quietly(temporary);
}

int remove_strays(const std::string& folder) { return remove_strays_of(folder, {}); }

void write_pointer(const std::string& link, const std::string& target) {
  const fs::path temporary = temporary_beside(link);
  begin_operation();
  if (symlink(target.c_str(), temporary.c_str()) != 0) fail_writing(link, errno);
  rename_or_fail(temporary, link);
  sync_folder(folder_of(link));
}

Bytes read_file(const std::string& path) {
  const File file(path, O_RDONLY);
  if (!file.opened()) fail("read", path, errno, "Check the name and your permission to read it.");
  struct stat info{};
  if (fstat(file.get(), &info) != 0) fail("read", path, errno, "The file cannot be examined.");
  if (S_ISDIR(info.st_mode)) fail("read", path, EISDIR, "Name a file inside it.");
  // One byte more than the size, so that the end of the file is seen without growing; pipes and devices need to grow.
  Bytes data(static_cast<std::size_t>(info.st_size) + 1);
  std::size_t size = 0;
  for (;;) {
    if (size == data.size()) data.resize(data.size() * 2 + 4096);
    const ssize_t n = ::read(file.get(), data.data() + size, data.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("read", path, errno, "The file cannot be read to its end.");
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  data.resize(size);
  return data;
}

std::string read_text(const std::string& path) {
  const Bytes data = read_file(path);
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

void fail_writes_after(std::int64_t bytes, int error) {
  g_write_error.store(error != 0 ? error : ENOSPC);
  g_bytes_until_failure.store(bytes);
}

void kill_process_after(std::int64_t operations) { g_operations_until_kill.store(operations); }

}  // namespace levin::io
