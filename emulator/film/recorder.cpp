// Implements the functions that instrumented code calls. They do nothing while no kernel is recorded.
#include "emulator/film/recorder.h"

#include <levin/emulator/builtins.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <tuple>

namespace levin::emulator::film {

namespace {

class Recorder : public Observer {
 public:
  explicit Recorder(std::size_t threads)
      : paths_(threads, 0), exits_(threads, 0), unfinished_(threads, false) {
    recording.threads.resize(threads);
    parents_.push_back({});
  }

  void enter(std::uintptr_t call) {
    int& path = path_of_thread();
    const auto [at, added] = children_.try_emplace({path, call}, static_cast<int>(parents_.size()));
    if (added) parents_.push_back({path, call});
    path = at->second;
  }
  void leave(std::uintptr_t pc) {
    int& path = path_of_thread();
    path = parents_[static_cast<std::size_t>(path)].first;
    exits_[thread()] = pc;
  }
  void block(std::uintptr_t pc) {
    const std::uintptr_t since_exit = pc - exits_[thread()];
    exits_[thread()] = 0;
    if (since_exit > kCallBytes) add({.kind = Event::Kind::block}, pc);
  }

  void add(Event e, std::uintptr_t pc) {
    if (common_work_) return;
    finish_write();
    e.place = number_of({path_of_thread(), pc, 0});
    events().push_back(e);
    unfinished_[thread()] = e.kind == Event::Kind::write;
  }
  void add(Event e, const Site& site) {
    finish_write();
    e.place = number_of({path_of_thread(), 0, static_cast<int>(site.line())});
    recording.sites[e.place] = {site.file_name(), static_cast<int>(site.line())};
    events().push_back(e);
  }
  void access(Event::Kind kind, void* p, std::size_t bytes, std::uintptr_t pc) {
    Event e{.kind = kind, .bytes = static_cast<unsigned>(bytes), .address = reinterpret_cast<std::uintptr_t>(p)};
    std::memcpy(&e.bits, p, std::min<std::size_t>(bytes, sizeof e.bits));
    add(e, pc);
  }

  void on_array(const void* array, std::size_t bytes, Site site) override;
  void on_barrier(const char* name, Site site) override;
  void on_warp_function(const char* name, std::uint32_t mask, Site site) override;
  void on_common_work(bool begins) override;
  void on_end() override;

  Recording recording;

 private:
  static std::size_t thread() { return static_cast<std::size_t>(thread_number()); }
  int& path_of_thread() { return paths_[thread()]; }
  std::vector<Event>& events() { return recording.threads[thread()]; }

  /// The functions are called before an access, so a written value is known at the thread's next call.
  void finish_write() {
    if (!unfinished_[thread()]) return;
    Event& e = events().back();
    std::memcpy(&e.bits, reinterpret_cast<const void*>(e.address), std::min<std::size_t>(e.bytes, sizeof e.bits));
    unfinished_[thread()] = false;
  }
  /// Returns the index of a place: path, own return address, line of its site.
  int number_of(const std::tuple<int, std::uintptr_t, int>& key) {
    const auto [at, added] = places_.try_emplace(key, static_cast<int>(recording.places.size()));
    if (added) recording.places.push_back(place_of(std::get<0>(key), std::get<1>(key)));
    return at->second;
  }
  Place place_of(int path, std::uintptr_t pc) const {
    Place place{pc};
    for (; path != 0; path = parents_[static_cast<std::size_t>(path)].first) {
      place.push_back(parents_[static_cast<std::size_t>(path)].second);
    }
    std::reverse(place.begin(), place.end());
    return place;
  }

  /// A function may have one more block after its exit, a call behind it, which belongs to the function.
  static constexpr std::uintptr_t kCallBytes = 16;

  std::vector<int> paths_;              ///< each thread's calls: an index in parents_
  std::vector<std::uintptr_t> exits_;   ///< return address of each thread's last exit, or 0
  std::vector<bool> unfinished_;
  bool common_work_ = false;  ///< it is no work of the thread that does it
  std::vector<std::pair<int, std::uintptr_t>> parents_;
  std::map<std::pair<int, std::uintptr_t>, int> children_;
  std::map<std::tuple<int, std::uintptr_t, int>, int> places_;
};

Recorder* recorder = nullptr;
bool busy = false;  // the recorder may call functions of the standard library that are instrumented

/// Marks the scope of a call from instrumented code; true if it is to be recorded.
class Turn {
 public:
  Turn() : mine_(recorder && !busy && in_kernel() && blockIdx.x + blockIdx.y + blockIdx.z == 0) {
    if (mine_) busy = true;
  }
  ~Turn() {
    if (mine_) busy = false;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  explicit operator bool() const { return mine_; }

 private:
  bool mine_;
};

void Recorder::on_array(const void* array, std::size_t bytes, Site site) {
  if (const Turn turn; turn) {
    recording.arrays.push_back({reinterpret_cast<std::uintptr_t>(array), bytes, site.file_name(), site.line()});
  }
}
void Recorder::on_barrier(const char*, Site site) {
  if (const Turn turn; turn) add({.kind = Event::Kind::barrier}, site);
}
void Recorder::on_warp_function(const char*, std::uint32_t mask, Site site) {
  if (const Turn turn; turn) add({.kind = Event::Kind::warp_function, .mask = mask}, site);
}
void Recorder::on_common_work(bool begins) { common_work_ = begins; }
void Recorder::on_end() {
  if (const Turn turn; turn) add({.kind = Event::Kind::end}, std::uintptr_t{0});
}

}  // namespace

Recording record(const Launch& launch) {
  Recorder own(std::size_t{launch.block.x} * launch.block.y * launch.block.z);
  const int workers = config().workers;
  config().workers = 1;
  recorder = &own;
  observe(&own);
  const std::string failure = run_grid(launch);
  observe(nullptr);
  recorder = nullptr;
  config().workers = workers;
  if (!failure.empty()) throw std::runtime_error(failure);
  return std::move(own.recording);
}

}  // namespace levin::emulator::film

using levin::emulator::film::busy;
using levin::emulator::film::Event;
using levin::emulator::film::recorder;
using levin::emulator::film::Turn;

#define LEVIN_CALLER reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))
#define LEVIN_ACCESS(name, kind, bytes)                                                      \
  void __tsan_##name(void* p) {                                                              \
    if (const Turn turn; turn) recorder->access(Event::Kind::kind, p, bytes, LEVIN_CALLER); \
  }

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void* call) {
  if (const Turn turn; turn) recorder->enter(reinterpret_cast<std::uintptr_t>(call));
}
void __tsan_func_exit() {
  if (const Turn turn; turn) recorder->leave(LEVIN_CALLER);
}
void __sanitizer_cov_trace_pc() {
  if (const Turn turn; turn) recorder->block(LEVIN_CALLER);
}
LEVIN_ACCESS(read1, read, 1)
LEVIN_ACCESS(read2, read, 2)
LEVIN_ACCESS(read4, read, 4)
LEVIN_ACCESS(read8, read, 8)
LEVIN_ACCESS(read16, read, 16)
LEVIN_ACCESS(write1, write, 1)
LEVIN_ACCESS(write2, write, 2)
LEVIN_ACCESS(write4, write, 4)
LEVIN_ACCESS(write8, write, 8)
LEVIN_ACCESS(write16, write, 16)
LEVIN_ACCESS(unaligned_read2, read, 2)
LEVIN_ACCESS(unaligned_read4, read, 4)
LEVIN_ACCESS(unaligned_read8, read, 8)
LEVIN_ACCESS(unaligned_read16, read, 16)
LEVIN_ACCESS(unaligned_write2, write, 2)
LEVIN_ACCESS(unaligned_write4, write, 4)
LEVIN_ACCESS(unaligned_write8, write, 8)
LEVIN_ACCESS(unaligned_write16, write, 16)
void __tsan_read_range(void* p, std::size_t bytes) {
  if (const Turn turn; turn) recorder->access(Event::Kind::read, p, bytes, LEVIN_CALLER);
}
void __tsan_write_range(void* p, std::size_t bytes) {
  if (const Turn turn; turn) recorder->access(Event::Kind::write, p, bytes, LEVIN_CALLER);
}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
