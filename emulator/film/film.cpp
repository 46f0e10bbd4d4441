// Makes a film of a recording: lets the lanes of each warp go in step, as on a GPU, and all warps side by side.
#include "emulator/film/film.h"

#include "emulator/film/costs.h"
#include "emulator/film/places.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace levin::emulator::film {

namespace {

/// Does things that lanes of a warp do together: of all lanes that need not wait, those that are furthest behind in the
/// code go first, so that lanes that have left a branch or a loop wait for the others where these join them.
class Lockstep {
 public:
  Lockstep(const Recording& recording, std::size_t warp) : recording_(recording), first_(warp * kLanes) {
    lanes_ = std::min<std::size_t>(kLanes, recording.threads.size() - first_);
  }

  /// Returns the lanes that do the next thing; 0 if all have ended. It is the same event in each of their threads.
  std::uint32_t next() {
    std::uint32_t chosen = 0;
    const Event* leader = nullptr;
    for (std::size_t lane = 0; lane < lanes_; ++lane) {
      if (ended_ >> lane & 1 || waits(lane)) continue;
      const Event& e = event(lane);
      if (!leader || behind(e, *leader)) {
        leader = &e;
        chosen = 0;
      }
      if (together(e, *leader)) chosen |= 1u << lane;
    }
    if (chosen == 0 && ended_ != all()) throw std::runtime_error("film: the lanes of a warp wait for each other");
    return chosen;
  }
  const Event& event(std::size_t lane) const { return recording_.threads[first_ + lane][at_[lane]]; }
  void advance(std::uint32_t lanes) {
    for (std::size_t lane = 0; lane < lanes_; ++lane) {
      if (!(lanes >> lane & 1)) continue;
      if (event(lane).kind == Event::Kind::end) ended_ |= 1u << lane;
      ++at_[lane];
    }
  }
  std::uint32_t ended() const { return ended_; }
  std::uint32_t all() const { return lanes_ == kLanes ? ~0u : (1u << lanes_) - 1; }

 private:
  /// True at a barrier or warp function that other lanes have yet to reach.
  bool waits(std::size_t lane) const {
    const Event& e = event(lane);
    if (e.kind != Event::Kind::barrier && e.kind != Event::Kind::warp_function) return false;
    const std::uint32_t wanted = e.kind == Event::Kind::barrier ? all() & ~ended_ : e.mask;
    for (std::size_t other = 0; other < lanes_; ++other) {
      if (wanted >> other & 1 && (ended_ >> other & 1 || !together(event(other), e))) return true;
    }
    return false;
  }
  static bool together(const Event& a, const Event& b) {
    return a.kind == b.kind && a.place == b.place && a.mask == b.mask && a.bytes == b.bytes;
  }
  bool behind(const Event& a, const Event& b) const {
    return recording_.places[static_cast<std::size_t>(a.place)] < recording_.places[static_cast<std::size_t>(b.place)];
  }

  const Recording& recording_;
  std::size_t first_, lanes_ = 0;
  std::array<std::size_t, kLanes> at_{};
  std::uint32_t ended_ = 0;
};

/// Finds the array or buffer that an address lies in.
class Map {
 public:
  Map(const Recording& recording, const std::vector<Buffer>& buffers) {
    for (const RecordedArray& a : recording.arrays) shared_.push_back({a.address, a.bytes});
    for (const Buffer& b : buffers) global_.push_back({reinterpret_cast<std::uintptr_t>(b.data), b.bytes});
  }
  /// Returns the access of an event, as yet without offsets.
  Access find(const Event& e) const {
    Access a{.write = e.kind == Event::Kind::write, .bytes = e.bytes};
    if (look(shared_, e.address, a.array)) a.memory = Memory::shared;
    if (a.memory == Memory::none && look(global_, e.address, a.array)) a.memory = Memory::global;
    return a;
  }
  std::uint32_t offset(const Access& a, std::uintptr_t address) const {
    const Range& range = (a.memory == Memory::shared ? shared_ : global_)[a.array];
    return static_cast<std::uint32_t>(address - range.first);
  }

 private:
  using Range = std::pair<std::uintptr_t, std::size_t>;
  static bool look(const std::vector<Range>& ranges, std::uintptr_t address, std::size_t& index) {
    for (index = 0; index < ranges.size(); ++index) {
      if (address >= ranges[index].first && address < ranges[index].first + ranges[index].second) return true;
    }
    index = 0;
    return false;
  }
  std::vector<Range> shared_, global_;
};

/// The steps of one warp: neighbouring events of the same lanes on the same line, with at most one access.
class Steps {
 public:
  Steps(const Recording& recording, const Lines& lines, const Map& map, std::size_t warp)
      : lines_(lines), map_(map), lanes_(recording, warp) {}

  std::vector<Step> take_all() {
    for (std::uint32_t active = lanes_.next(); active != 0; active = lanes_.next()) {
      add(active);
      lanes_.advance(active);
    }
    return std::move(steps_);
  }

 private:
  void add(std::uint32_t active) {
    const auto lead = static_cast<std::size_t>(std::countr_zero(active));
    const Event& e = lanes_.event(lead);
    Step step{.line = lines_.of_place[static_cast<std::size_t>(e.place)], .active = active, .ended = lanes_.ended()};
    if (e.kind == Event::Kind::end || (step.line < 0 && e.kind == Event::Kind::block)) return;
    if (e.kind == Event::Kind::barrier) step.kind = Step::Kind::barrier;
    if (e.kind == Event::Kind::warp_function) step.kind = Step::Kind::warp_function;
    if (e.kind == Event::Kind::read || e.kind == Event::Kind::write) find_access(step);
    const bool plain = step.kind == Step::Kind::run && step.access.memory == Memory::none;
    if (plain && (step.line < 0 || only_braces(step.line))) return;
    if (!steps_.empty()) {
      Step& last = steps_.back();
      const bool same = last.active == active && last.line == step.line && last.ended == step.ended;
      if (same && plain) return;
      if (same && last.kind == Step::Kind::run && last.access.memory == Memory::none) {
        last = step;
        return;
      }
    }
    steps_.push_back(step);
  }

  void find_access(Step& step) const {
    Access& a = step.access;
    for (std::uint32_t rest = step.active; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
      const Event& e = lanes_.event(lane);
      if (rest == step.active) a = map_.find(e);
      if (a.memory == Memory::none) return;
      a.offsets[lane] = map_.offset(a, e.address);
      a.bits[lane] = e.bits;
    }
    find_cost(a, step.active);
  }
  bool only_braces(int line) const {
    return lines_.lines[static_cast<std::size_t>(line)].text.find_first_not_of(" {}") == std::string::npos;
  }

  const Lines& lines_;
  const Map& map_;
  Lockstep lanes_;
  std::vector<Step> steps_;
};

/// Gives each step its frame. In a frame every warp makes a step, unless it waits at a barrier; when all warps that
/// have steps left wait, they pass the barrier in one frame.
int set_frames(std::vector<std::vector<Step>>& warps) {
  std::vector<std::size_t> at(warps.size(), 0);
  Races races;
  for (int frame = 0;; ++frame) {
    bool any = false, left = false;
    for (std::size_t w = 0; w < warps.size(); ++w) {
      if (at[w] == warps[w].size()) continue;
      left = true;
      Step& step = warps[w][at[w]];
      if (step.kind == Step::Kind::barrier) continue;
      step.frame = frame;
      ++at[w];
      any = true;
      if (step.kind == Step::Kind::warp_function) races.pass_warp_function(static_cast<int>(w));
      if (step.access.memory == Memory::shared) races.add(step.access, step.active, static_cast<int>(w));
    }
    if (!left) return frame;
    if (any) continue;
    for (std::size_t w = 0; w < warps.size(); ++w) {
      if (at[w] < warps[w].size()) warps[w][at[w]++].frame = frame;
    }
    races.pass_barrier();
  }
}

}  // namespace

Film shoot(const Scene& scene) {
  const Recording recording = record(scene.launch);
  const Lines lines = find_lines(recording, scene);
  const Map map(recording, scene.buffers);
  Film film{.title = scene.title, .kernel = scene.kernel, .caption = scene.caption, .element = scene.element};
  film.threads = static_cast<int>(recording.threads.size());
  film.arrays = name_arrays(recording, scene.shared_columns);
  film.buffers = scene.buffers;
  film.lines = lines.lines;
  for (std::size_t first = 0; first < recording.threads.size(); first += kLanes) {
    film.warps.push_back(Steps(recording, lines, map, first / kLanes).take_all());
  }
  film.frames = set_frames(film.warps);
  return film;
}

Totals totals(const Film& film) {
  Totals t;
  std::vector<int> barriers;
  for (const auto& warp : film.warps) {
    for (const Step& s : warp) {
      const Access& a = s.access;
      const int lanes = std::popcount(s.active);
      if (a.memory == Memory::shared) {
        (a.write ? t.shared_writes : t.shared_reads) += lanes;
        t.passes += a.cost;
        t.least_passes += a.least;
        t.worst_conflict = std::max(t.worst_conflict, a.least > 0 ? a.cost / a.least : 0);
        t.races += a.races.empty() ? 0 : 1;
      } else if (a.memory == Memory::global) {
        (a.write ? t.global_writes : t.global_reads) += lanes;
        t.sectors += a.cost;
        t.least_sectors += a.least;
      }
      if (s.kind == Step::Kind::barrier) barriers.push_back(s.frame);
      if (s.kind == Step::Kind::warp_function) ++t.warp_functions;
      t.active += lanes;
      t.lanes += kLanes - std::popcount(s.ended);
    }
  }
  std::sort(barriers.begin(), barriers.end());
  t.barriers = static_cast<int>(std::unique(barriers.begin(), barriers.end()) - barriers.begin());
  return t;
}

}  // namespace levin::emulator::film
