#include "segment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <random>
#include <thread>

namespace levin::emulator::nccl {

namespace {

const char* const kFolder = "/dev/shm/";
const char* const kPrefix = "levin_nccl_";
constexpr int kStaleSeconds = 600;  // longer than any wait for other ranks

std::size_t channels_at() { return (sizeof(Header) + 4095) / 4096 * 4096; }
std::size_t bytes_for(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  return channels_at() + n * n * sizeof(Channel);
}

struct flock lock_on(off_t begin, off_t bytes) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = begin;
  lock.l_len = bytes;
  return lock;
}

/// Returns whether another process holds a lock on this range.
bool is_locked(int file, off_t begin, off_t bytes) {
  struct flock lock = lock_on(begin, bytes);
  return fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/// Removes files of processes that were killed before all ranks had joined.
void remove_stale() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, error)) {
    const std::string path = entry.path().string();
    struct stat info {};
    if (!entry.path().filename().string().starts_with(kPrefix) || stat(path.c_str(), &info) != 0 ||
        std::time(nullptr) - info.st_mtim.tv_sec < kStaleSeconds) {
      continue;
    }
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) continue;
    if (!is_locked(file, 0, 0)) unlink(path.c_str());
    close(file);
  }
}

std::string system_error(const std::string& what) { return what + ": " + std::strerror(errno); }

/// Returns the size of an opened file once its creator is ready, or 0 after a timeout.
std::size_t wait_for_size(int file) {
  for (int i = 0; i < 5000; ++i) {
    struct stat info {};
    if (fstat(file, &info) == 0 && info.st_size > 0) return static_cast<std::size_t>(info.st_size);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return 0;
}

std::uint64_t process_number() {
  static const std::uint64_t number = random_number() | 1;
  return number;
}

}  // namespace

std::uint64_t random_number() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

void wait_for_change(std::atomic<std::uint32_t>& word, std::uint32_t seen, int milliseconds) {
  const timespec time{milliseconds / 1000, milliseconds % 1000 * 1000000L};
  if (word.load() == seen) syscall(SYS_futex, &word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

void wake(std::atomic<std::uint32_t>& word) {
  ++word;
  syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

void Announced::write(const Call& call) {
  number_.store(0);
  count_.store(call.count);
  rest_.store(static_cast<std::uint64_t>(call.kind) | static_cast<std::uint64_t>(call.type) << 8 |
              static_cast<std::uint64_t>(call.op) << 16 | static_cast<std::uint64_t>(call.root) << 32);
  number_.store(call.number);
}

bool Announced::read(std::uint64_t number, Call& call) const {
  if (number_.load() != number) return false;
  const std::uint64_t rest = rest_.load();
  call.number = number;
  call.count = count_.load();
  call.kind = static_cast<Kind>(rest & 255);
  call.type = static_cast<ncclDataType_t>(rest >> 8 & 255);
  call.op = static_cast<ncclRedOp_t>(rest >> 16 & 255);
  call.root = static_cast<int>(rest >> 32);
  return number_.load() == number;
}

Segment::Segment(const std::string& name, int file, void* memory, std::size_t bytes)
    : name_(name),
      file_(file),
      bytes_(bytes),
      header_(static_cast<Header*>(memory)),
      channels_(reinterpret_cast<Channel*>(static_cast<char*>(memory) + channels_at())),
      process_(process_number()) {}

Segment::~Segment() {
  munmap(static_cast<void*>(header_), bytes_);
  close(file_);
}

std::shared_ptr<Segment> Segment::open(const std::string& name, int ranks, std::string& error) {
  const std::string path = kFolder + (kPrefix + name);
  int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const bool creates = file >= 0;
  if (creates) {
    if (ftruncate(file, static_cast<off_t>(bytes_for(ranks))) != 0) error = system_error("ftruncate of " + path);
    remove_stale();
  } else {
    file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  }
  const std::size_t bytes = file >= 0 ? wait_for_size(file) : 0;
  void* const memory = bytes > 0 ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (memory == MAP_FAILED) {
    if (error.empty()) error = system_error("shared memory " + path + " cannot be opened");
    if (file >= 0) close(file);
    if (creates) unlink(path.c_str());
    return nullptr;
  }
  std::shared_ptr<Segment> segment(new Segment(path, file, memory, bytes));
  Header& header = segment->header();
  if (creates) {
    header.ranks = ranks;
    header.ready.store(1);
    wake(header.ready);
  }
  for (int i = 0; i < 50 && header.ready.load() == 0; ++i) wait_for_change(header.ready, 0, 100);
  if (header.ready.load() != 0 && header.ranks == ranks) return segment;
  error = header.ready.load() == 0
              ? "the process that made " + path + " ended before it was ready"
              : "this rank says that there are " + std::to_string(ranks) + " ranks, another one says " +
                    std::to_string(header.ranks) + ". All ranks must agree.";
  return nullptr;
}

bool Segment::join(int rank, int seat) {
  RankSlot& s = slot(rank);
  if (is_locked(file_, rank, 1)) return false;
  struct flock lock = lock_on(rank, 1);
  if (fcntl(file_, F_SETLK, &lock) != 0) return false;
  if (s.presence.load() != Presence::absent) return false;
  s.process.store(process_);
  s.pid.store(static_cast<std::uint64_t>(getpid()));
  s.seat.store(static_cast<std::uint32_t>(seat));
  s.presence.store(Presence::present);
  wake(header_->changed);
  return true;
}

void Segment::leave(int rank) {
  slot(rank).presence.store(Presence::left);
  ring_all();
}

int Segment::find_dead() {
  for (int r = 0; r < ranks(); ++r) {
    if (slot(r).presence.load() != Presence::present || is_local(r)) continue;
    if (!is_locked(file_, r, 1) && slot(r).presence.load() == Presence::present) return r;
  }
  return -1;
}

void Segment::ring(int rank) { wake(slot(static_cast<int>(slot(rank).seat.load())).bell); }

void Segment::ring_all() {
  for (int r = 0; r < ranks(); ++r) wake(slot(r).bell);
  wake(header_->changed);
}

ncclResult_t Segment::code() { return static_cast<ncclResult_t>(header_->code.load()); }
std::string Segment::text() { return header_->text; }

void Segment::fail(ncclResult_t code, const std::string& text) {
  std::uint32_t none = 0;
  if (!header_->failed.compare_exchange_strong(none, 1)) return;
  header_->code.store(static_cast<std::uint32_t>(code));
  const std::size_t length = std::min(text.size(), sizeof(header_->text) - 1);
  std::memcpy(header_->text, text.data(), length);
  header_->failed.store(2, std::memory_order_release);
  ring_all();
}

void Segment::remove_name() { unlink(name_.c_str()); }

std::string Segment::short_name() const {
  return name_.substr(std::string(kFolder).size() + std::string(kPrefix).size());
}

}  // namespace levin::emulator::nccl
