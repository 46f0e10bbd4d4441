// The file is a log: every change appends (key length, value length or "removed", key, value). The holder of the lock
// first reads the log to its end, so that all ranks see the same table. An incomplete record of a killed process is cut
// off.

#include <fcntl.h>
#include <fmt/format.h>
#include <levin/distributed/store.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "src/rendezvous/table.h"
#include "src/transports/socket.h"

namespace levin::distributed {

namespace {

constexpr std::uint32_t kRemoved = 0xffffffffu;
constexpr const char* kUsers = "file_store/users";
struct Head {
  std::uint32_t key, value;
};

}  // namespace

// The locked file and its entries, as long as the object lives.
class FileStore::Table {
 public:
  explicit Table(const std::string& path) : path_(path) {
    for (;;) {
      fd_ = Descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
      if (!fd_) fail("opened");
      while (flock(fd_.get(), LOCK_EX) != 0) {
        if (errno != EINTR) fail("locked");
      }
      // The last user of an earlier table may have removed the file while this one waited for the lock.
      struct stat now {
      }, ours{};
      if (fstat(fd_.get(), &ours) != 0) fail("read");
      if (stat(path.c_str(), &now) == 0 && now.st_ino == ours.st_ino) break;
    }
    read_log();
  }

  const KeyTable& entries() const { return entries_; }
  void put(const std::string& key, const std::string& value) {
    append({static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(value.size())}, key + value);
    entries_[key] = value;
  }
  bool remove(const std::string& key) {
    if (entries_.erase(key) == 0) return false;
    append({static_cast<std::uint32_t>(key.size()), kRemoved}, key);
    return true;
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw StoreError(fmt::format("[file_store] {} could not be {}: {}. All ranks need a folder that they can write.",
                                 path_, what, std::strerror(errno)));
  }

  void read_log() {
    std::string log;
    char buffer[1 << 15];
    for (ssize_t n; (n = read(fd_.get(), buffer, sizeof buffer)) != 0;) {
      if (n < 0 && errno != EINTR) fail("read");
      if (n > 0) log.append(buffer, static_cast<std::size_t>(n));
    }
    std::size_t at = 0;
    while (log.size() - at >= sizeof(Head)) {
      Head head;
      std::memcpy(&head, log.data() + at, sizeof head);
      const std::size_t value = head.value == kRemoved ? 0 : head.value;
      if (log.size() - at - sizeof head < head.key + value) break;
      const std::string key = log.substr(at + sizeof head, head.key);
      if (head.value == kRemoved) {
        entries_.erase(key);
      } else {
        entries_[key] = log.substr(at + sizeof head + head.key, value);
      }
      at += sizeof head + head.key + value;
    }
    if (at != log.size() && ftruncate(fd_.get(), static_cast<off_t>(at)) != 0) fail("repaired");
    if (lseek(fd_.get(), static_cast<off_t>(at), SEEK_SET) < 0) fail("read");
  }

  void append(Head head, const std::string& bytes) {
    std::string record(reinterpret_cast<const char*>(&head), sizeof head);
    record += bytes;
    for (std::size_t done = 0; done < record.size();) {
      const ssize_t n = write(fd_.get(), record.data() + done, record.size() - done);
      if (n < 0 && errno != EINTR) fail("written");
      if (n > 0) done += static_cast<std::size_t>(n);
    }
  }

  std::string path_;
  Descriptor fd_;
  KeyTable entries_;
};

FileStore::FileStore(std::string path, Duration timeout) : path_(std::move(path)) {
  set_timeout(timeout);
  add(kUsers, 1);
}

FileStore::~FileStore() {
  try {
    Table table(path_);
    KeyTable entries = table.entries();
    const std::string left = add_to(entries, kUsers, -1);
    table.put(kUsers, left);
    if (left == "0") unlink(path_.c_str());
  } catch (const StoreError&) {  // the folder is gone; nothing is left to remove
  }
}

void FileStore::set(const std::string& key, const std::string& value) { Table(path_).put(key, value); }

std::optional<std::string> FileStore::try_get(const std::string& key) {
  const Table table(path_);
  const auto entry = table.entries().find(key);
  if (entry == table.entries().end()) return std::nullopt;
  return entry->second;
}

int64_t FileStore::add(const std::string& key, int64_t amount) {
  Table table(path_);
  KeyTable entries = table.entries();
  const std::string sum = add_to(entries, key, amount);
  table.put(key, sum);
  return to_number(sum);
}

std::string FileStore::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  Table table(path_);
  KeyTable entries = table.entries();
  const bool had = entries.contains(key);
  const std::string old = had ? entries[key] : std::string();
  const std::string now = compare_set_in(entries, key, expected, desired);
  if (!had ? expected.empty() : old == expected) table.put(key, now);
  return now;
}

std::vector<std::string> FileStore::wait_missing(const std::vector<std::string>& keys, Duration timeout) {
  const auto deadline = from_now(timeout);
  for (;;) {
    auto missing = missing_from(Table(path_).entries(), keys);
    if (missing.empty() || Clock::now() >= deadline) return missing;
    std::this_thread::sleep_for(Milliseconds(10));
  }
}

bool FileStore::remove(const std::string& key) { return Table(path_).remove(key); }
std::vector<std::string> FileStore::keys(const std::string& prefix) {
  auto names = keys_of(Table(path_).entries(), prefix);
  std::erase(names, kUsers);
  return names;
}

std::string FileStore::address() const { return "file://" + path_; }

}  // namespace levin::distributed
