#include "src/transports/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

namespace levin::distributed {

namespace {

constexpr std::size_t kStaging = std::size_t{256} << 10;  // bytes a rank stages in one step: fits a core's own cache
constexpr int kSpins = 1000;                              // tens of microseconds, the time to reduce a block
constexpr long kSleepNanoseconds = 20'000'000;            // then the waiting rank checks if the group has ended
constexpr std::size_t kToken = 16;

// Equal for processes on one kernel and in one network namespace; separate containers differ.
std::string host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 64> net{};
  const auto n = readlink("/proc/self/ns/net", net.data(), net.size());
  return boot + " " + std::string(net.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
}

std::string random_token() {
  std::random_device device;
  std::string token;
  while (token.size() < kToken) token += static_cast<char>('a' + static_cast<int>(device() % 26));
  return token;
}

// Rank 0's offer of its memory: "pid fd token identity".
struct Offer {
  int pid = 0, fd = -1;
  std::string token, identity;
};

std::string text_of(const Offer& o) { return fmt::format("{} {} {} {}", o.pid, o.fd, o.token, o.identity); }

Offer offer_of(const std::string& text) {
  Offer o;
  std::istringstream in(text);
  in >> o.pid >> o.fd >> o.token;
  in.ignore(1);
  std::getline(in, o.identity);
  return o;
}

std::size_t bell_index(int rank, Traffic traffic) {
  return 2 * static_cast<std::size_t>(rank) + static_cast<std::size_t>(traffic);
}

}  // namespace

SharedMemory::SharedMemory(int rank, int size) : rank_(rank), size_(size) {
  const auto n = static_cast<std::size_t>(size);
  block_ = std::clamp(kStaging / n / 64 * 64, std::size_t{16} << 10, std::size_t{256} << 10);
  pipe_bytes_ = std::size_t{size <= 16 ? 64u : 16u} << 10;
  mailbox_bytes_ = mailbox_room(size);
  // With more ranks than cores, spinning would keep the awaited rank from running.
  spins_ = static_cast<unsigned>(size) <= std::thread::hardware_concurrency() ? kSpins : 0;
  bells_ = 64;  // after the token
  progress_ = bells_ + 2 * n * sizeof(SharedBell);
  pipes_ = progress_ + n * sizeof(SharedProgress);
  mailboxes_ = pipes_ + 2 * n * n * sizeof(SharedPipe);
  offers_ = mailboxes_ + n * n * sizeof(SharedMailbox);
  pipe_data_ = (offers_ + n * sizeof(SharedOffer) + 63) / 64 * 64;
  mailbox_data_ = pipe_data_ + 2 * n * n * pipe_bytes_;
  staged_ = mailbox_data_ + kDepth * n * n * mailbox_bytes_;
  results_ = staged_ + kDepth * n * n * block_;
  total_ = results_ + kDepth * n * block_;
}

SharedMemory::~SharedMemory() {
  if (base_ != nullptr) munmap(base_, total_);
}

std::size_t SharedMemory::pair_index(int from, int to) const {
  return static_cast<std::size_t>(from) * static_cast<std::size_t>(size_) + static_cast<std::size_t>(to);
}

std::size_t SharedMemory::pair_index(int from, int to, Traffic traffic) const {
  return 2 * pair_index(from, to) + static_cast<std::size_t>(traffic);
}

SharedBell& SharedMemory::bell(int rank, Traffic traffic) const {
  return reinterpret_cast<SharedBell*>(base_ + bells_)[bell_index(rank, traffic)];
}

SharedProgress& SharedMemory::progress(int rank) const {
  return reinterpret_cast<SharedProgress*>(base_ + progress_)[rank];
}

SharedPipe& SharedMemory::pipe(int from, int to, Traffic traffic) const {
  return reinterpret_cast<SharedPipe*>(base_ + pipes_)[pair_index(from, to, traffic)];
}

std::byte* SharedMemory::pipe_data(int from, int to, Traffic traffic) const {
  return base_ + pipe_data_ + pair_index(from, to, traffic) * pipe_bytes_;
}

SharedMailbox& SharedMemory::mailbox(int from, int to) const {
  return reinterpret_cast<SharedMailbox*>(base_ + mailboxes_)[pair_index(from, to)];
}

std::byte* SharedMemory::mailbox_slot(int from, int to, std::uint64_t number) const {
  return base_ + mailbox_data_ + (kDepth * pair_index(from, to) + number % kDepth) * mailbox_bytes_;
}

SharedOffer& SharedMemory::offer(int rank) const { return reinterpret_cast<SharedOffer*>(base_ + offers_)[rank]; }

std::string SharedMemory::token() const { return {reinterpret_cast<const char*>(base_), kToken}; }

std::byte* SharedMemory::staged(int from, int owner, std::uint64_t step) const {
  const auto row = static_cast<std::uint64_t>(from) * kDepth + step % kDepth;
  return base_ + staged_ + (row * static_cast<std::uint64_t>(size_) + static_cast<std::uint64_t>(owner)) * block_;
}

std::byte* SharedMemory::result(int owner, std::uint64_t step) const {
  return base_ + results_ + (static_cast<std::uint64_t>(owner) * kDepth + step % kDepth) * block_;
}

bool SharedMemory::map(int fd) {
  void* memory = mmap(nullptr, total_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return false;
  base_ = static_cast<std::byte*>(memory);
  return true;
}

// Offers rank 0's memory. Returns the reason why it cannot, or an empty text.
std::string SharedMemory::offer(Store& store, TransportKind kind, Descriptor& fd) {
  Offer offer{getpid(), -1, random_token(), host_identity()};
  std::string no;
  fd = Descriptor(memfd_create("levin", MFD_CLOEXEC));
  if (kind == TransportKind::tcp) {
    no = "rank 0 chose tcp";
  } else if (!fd || ftruncate(fd.get(), static_cast<off_t>(total_)) != 0 || !map(fd.get())) {
    no = fmt::format("rank 0 could not allocate shared memory ({})", std::strerror(errno));
  } else {
    std::memcpy(base_, offer.token.data(), kToken);
    offer.fd = fd.get();
  }
  store.set("shared/offer", text_of(offer));
  return no;
}

// Maps the memory that rank 0 offers. Returns the reason why this rank cannot, or an empty text.
std::string SharedMemory::accept(Store& store, TransportKind kind) {
  const Offer offer = offer_of(store.get("shared/offer"));
  if (kind == TransportKind::tcp) return fmt::format("rank {} chose tcp", rank_);
  if (offer.identity != host_identity()) {
    return fmt::format("rank {} is on another host, or in another container, than rank 0", rank_);
  }
  if (offer.fd < 0) return {};  // rank 0 gives the reason
  const Descriptor fd(::open(fmt::format("/proc/{}/fd/{}", offer.pid, offer.fd).c_str(), O_RDWR | O_CLOEXEC));
  struct stat file {};
  const bool whole = fd && fstat(fd.get(), &file) == 0 && file.st_size == static_cast<off_t>(total_);
  if (whole && map(fd.get()) && std::memcmp(base_, offer.token.data(), kToken) == 0) return {};
  return fmt::format("rank {} cannot open the memory of rank 0", rank_);
}

// Rank 0 collects the ranks' objections ("-reason", or "!reason" from a rank that requires shared memory) and publishes
// the first.
std::unique_ptr<SharedMemory> SharedMemory::open(Store& store, int rank, int size, TransportKind kind) {
  std::unique_ptr<SharedMemory> memory(new SharedMemory(rank, size));
  Descriptor fd;  // stays open until all ranks have mapped it
  std::string verdict = kind == TransportKind::shared ? "!" : "-";
  if (rank == 0) {
    verdict += memory->offer(store, kind, fd);
    for (int r = 1; r < size; ++r) {
      const std::string vote = store.get(fmt::format("shared/vote/{}", r));
      if (vote[0] == '!') verdict[0] = '!';
      if (verdict.size() == 1) verdict += vote.substr(1);
    }
    store.set("shared/verdict", verdict);
    // The store may end with this process, so wait until the other ranks have read the verdict.
    for (int r = 1; r < size; ++r) store.get(fmt::format("shared/seen/{}", r));
  } else {
    store.set(fmt::format("shared/vote/{}", rank), verdict + memory->accept(store, kind));
    verdict = store.get("shared/verdict");
    store.set(fmt::format("shared/seen/{}", rank), "yes");
  }
  if (verdict.size() == 1) return memory;
  if (verdict[0] == '-') return nullptr;
  throw StoreError(
      fmt::format("[gloo] the ranks cannot share memory: {}. Choose the transport auto or tcp.", verdict.substr(1)));
}

void SharedMemory::pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void SharedMemory::yield() { sched_yield(); }

void SharedMemory::sleep(SharedBell& bell, std::uint32_t rings) {
  const timespec limit{.tv_sec = 0, .tv_nsec = kSleepNanoseconds};
  bell.sleepers.fetch_add(1);
  syscall(SYS_futex, &bell.rings, FUTEX_WAIT, rings, &limit, nullptr, 0);  // returns at once if it has rung since
  bell.sleepers.fetch_sub(1);
}

void SharedMemory::ring(int rank, Traffic traffic) const {
  SharedBell& b = bell(rank, traffic);
  b.rings.fetch_add(1);
  if (b.sleepers.load() != 0) syscall(SYS_futex, &b.rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void SharedMemory::ring_others(Traffic traffic) const {
  for (int r = 0; r < size_; ++r) {
    if (r != rank_) ring(r, traffic);
  }
}

}  // namespace levin::distributed
