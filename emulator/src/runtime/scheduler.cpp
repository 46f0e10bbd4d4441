// The queues of work: dependencies, and the choice of the operation that runs next.

#include "guard.h"
#include "state.h"

#include <levin/emulator/execution.h>

#include <algorithm>
#include <utility>

namespace levin::emulator {

namespace {
constexpr std::size_t kMostQueued = 4096;
constexpr int kPatience = 16;  // unsuccessful queries after which each further one runs some work

void link(Op& op, const OpRef& before) {
  if (!before || before->done) return;
  op.before.push_back(before);
  before->after.push_back(&op);
  ++op.waits_for;
}
}  // namespace

// ---- the right to run

Runtime::Turn::Turn(Runtime& runtime, Lock& lock) : runtime_(runtime), lock_(lock) { take(); }
Runtime::Turn::~Turn() { release(); }

void Runtime::Turn::take() {
  runtime_.free_.wait(lock_, [&] { return !runtime_.taken_; });
  runtime_.taken_ = true;
}

void Runtime::Turn::release() {
  runtime_.close();
  runtime_.taken_ = false;
  runtime_.free_.notify_one();
}

void Runtime::Turn::wait() {
  release();
  runtime_.progress_.wait(lock_);
  take();
}

void Runtime::open(std::uint32_t mask, bool only) {
  for (std::size_t d = 0; d < devices.size(); ++d) {
    Arena& arena = *devices[d].arena;
    if (mask >> d & 1) {
      openings += arena.open();
    } else if (only) {
      arena.close();
    }
  }
}

void Runtime::close() {
  bool closed = false;
  for (Device& d : devices) {
    closed = closed || d.arena->is_open();
    d.arena->close();
  }
  if (closed) install_guard();  // a test framework may have replaced the handler
}

// ---- queues

OpRef Runtime::add(int device, Work work, const std::vector<OpRef>& before) {
  auto op = std::make_shared<Op>();
  op->number = next_number_++;
  op->device = device;
  op->work = std::move(work);
  for (const OpRef& b : before) link(*op, b);
  live_[op->number] = op;
  if (op->waits_for == 0) ready_.push_back(op.get());
  return op;
}

cudaError_t Runtime::submit(Lock& lock, CUstream_st& stream, Work work, const OpRef& extra) {
  if (stream.capture) return capture(stream, std::move(work));
  if (stream.legacy) {
    for (const CaptureRef& c : captures) {
      if (c->origin->device != stream.device || (c->origin->flags & cudaStreamNonBlocking)) continue;
      c->invalid = true;
      return refuse(cudaErrorStreamCaptureImplicit,
                    std::string(work.name) + ": the default stream would wait for a stream that is being captured");
    }
  }
  std::vector<OpRef> before{stream.last, extra};
  Device& device = devices[static_cast<std::size_t>(stream.device)];
  if (stream.legacy) {
    for (const CUstream_st* s : streams) {
      if (s->device == stream.device && !(s->flags & cudaStreamNonBlocking)) before.push_back(s->last);
    }
    for (const auto& [thread, s] : device.per_thread) before.push_back(s->last);
    for (OpRef& orphan : std::exchange(device.orphans, {})) before.push_back(std::move(orphan));
  } else if (!(stream.flags & cudaStreamNonBlocking)) {
    before.push_back(device.legacy->last);
  }
  stream.last = add(stream.device, std::move(work), before);
  relieve(lock);
  return cudaSuccess;
}

std::uint64_t Runtime::random() {
  if (seed_ != config().seed) random_state_ = seed_ = config().seed;
  std::uint64_t z = (random_state_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

void Runtime::relieve(Lock& lock) {
  if (live_.size() > kMostQueued) {
    std::vector<OpRef> oldest;
    for (const auto& [number, op] : live_) {
      if (oldest.size() == kMostQueued / 2) break;
      oldest.push_back(op);
    }
    complete(lock, std::move(oldest));
  } else if (config().seed != 0 && !taken_ && !ready_.empty() && random() % 8 == 0) {
    Turn turn(*this, lock);
    if (!ready_.empty()) run(lock, turn, live_.at(ready_[random() % ready_.size()]->number));
  }
}

/// Returns the targets and all pending work that they depend on, oldest first.
std::vector<OpRef> Runtime::needed(const std::vector<OpRef>& targets) const {
  std::vector<OpRef> found;
  std::unordered_set<const Op*> seen;
  const auto visit = [&](const OpRef& op) {
    if (!op->done && seen.insert(op.get()).second) found.push_back(op);
  };
  for (const OpRef& t : targets) visit(t);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Op& op = *found[i];
    for (const OpRef& b : op.before) visit(b);
  }
  std::sort(found.begin(), found.end(), [](const OpRef& a, const OpRef& b) { return a->number < b->number; });
  return found;
}

/// Runs the first candidate that can run. Returns false if none can.
bool Runtime::run_one(Lock& lock, Turn& turn, const std::vector<OpRef>& candidates, std::size_t first) {
  for (std::size_t i = first; i < candidates.size(); ++i) {
    const OpRef& op = candidates[i];
    if (op->done || op->running || op->waits_for > 0) continue;
    run(lock, turn, op);
    return true;
  }
  return false;
}

/// Waits until something happens, unless it has happened since `rings` was read.
void Runtime::wait(Lock&, Turn& turn, std::uint64_t rings) {
  if (rings != rings_) return;
  const auto self = waiting_.insert(std::this_thread::get_id());
  turn.wait();
  waiting_.erase(self);
}

/// With seed 0, runs only the work that the targets need, oldest first.
void Runtime::complete_in_order(Lock& lock, Turn& turn, std::vector<OpRef> targets) {
  const std::vector<OpRef> list = needed(targets);
  for (std::size_t first = 0;;) {
    while (first < list.size() && list[first]->done) ++first;
    if (first == list.size()) return;
    const std::uint64_t rings = rings_;
    if (!run_one(lock, turn, list, first) && !drive(lock, turn)) wait(lock, turn, rings);
  }
}

void Runtime::complete(Lock& lock, std::vector<OpRef> targets) {
  std::erase_if(targets, [](const OpRef& t) { return !t || t->done; });
  if (targets.empty()) return;
  Turn turn(*this, lock);
  if (config().seed == 0) return complete_in_order(lock, turn, std::move(targets));
  for (const OpRef& t : targets) {
    while (!t->done) {
      const std::uint64_t rings = rings_;
      if (!ready_.empty()) {
        run(lock, turn, live_.at(ready_[random() % ready_.size()]->number));
      } else if (!drive(lock, turn)) {
        wait(lock, turn, rings);
      }
    }
  }
}

void Runtime::complete_device(Lock& lock, int device) {
  std::vector<OpRef> targets;
  for (const auto& [number, op] : live_) {
    if (op->device == device) targets.push_back(op);
  }
  complete(lock, std::move(targets));
}

void Runtime::nudge(Lock& lock, const OpRef& target, int& impatience) {
  if (++impatience < kPatience || taken_) return;
  Turn turn(*this, lock);
  if (!run_one(lock, turn, needed({target}), 0)) drive(lock, turn);
}

void Runtime::drop_queues(Lock& lock, int device) {
  std::vector<OpRef> targets;
  for (const auto& [number, op] : live_) {
    if (device >= 0 && op->device != device) continue;
    if (op->work.collective) op->work.collective->abandon("device " + std::to_string(op->device) + " was reset");
    if (op->running && !op->work.collective) continue;
    if (op->work.kind != Work::Kind::release && !op->running) op->work = Work();
    targets.push_back(op);
  }
  complete(lock, std::move(targets));
}

// ---- running

void Runtime::run(Lock& lock, Turn& turn, OpRef op) {
  std::erase(ready_, op.get());
  op->running = true;
  if (op->work.kind == Work::Kind::collective) return start(*op);
  const bool failed = devices[static_cast<std::size_t>(op->device)].error != cudaSuccess;
  if (op->work.kind == Work::Kind::release || (op->work.kind != Work::Kind::marker && !failed))
    execute(lock, turn, *op);
  finish(*op);
}

void Runtime::execute(Lock& lock, Turn& turn, Op& op) {
  const Work& work = op.work;
  if (work.kind == Work::Kind::host) {
    turn.release();
    lock.unlock();
    this_thread().in_host_function = true;
    work.run();
    this_thread().in_host_function = false;
    lock.lock();
    turn.take();
    return;
  }
  const bool kernel = work.kind == Work::Kind::kernel;
  open(work.opens | (kernel ? devices[static_cast<std::size_t>(op.device)].peers : 0), kernel);
  if (work.kind == Work::Kind::release) {
    work.run();
    return;
  }
  std::string text = check_alive(work);
  if (text.empty()) {
    static_cast<void>(take_fault());  // clears the fault of a grid that ran without a launch
    lock.unlock();
    text = work.run();
    lock.lock();
  }
  cudaError_t error = take_fault();
  if (error == cudaSuccess) error = kernel ? cudaErrorLaunchFailure : cudaErrorIllegalAddress;
  if (text.empty() && kernel && check_zones_) {
    text = check_zones(work);
    error = cudaErrorIllegalAddress;
  }
  if (!text.empty()) fail(op, error, std::move(text));
}

void Runtime::fail(const Op& op, cudaError_t error, std::string text) {
  devices[static_cast<std::size_t>(op.device)].error = error;
  report = std::move(text);
}

std::string Runtime::check_alive(const Work& work) const {
  for (const Range& r : work.touches) {
    const Place place = place_of(r.p);
    const char* const end = static_cast<const char*>(r.p) + r.bytes;
    if (place.kind == Place::Kind::device && end <= place.begin + place.bytes) continue;
    return std::string(work.name) + ": the device memory at " + text_of(r.p) +
           " was freed before the queued work ran. Free it when the stream has come so far.";
  }
  return {};
}

std::string Runtime::check_zones(const Work& work) {
  for (std::size_t d = 0; d < devices.size(); ++d) {
    Arena& arena = *devices[d].arena;
    if (!arena.is_open()) continue;
    const Allocation* a = arena.damaged(false);
    if (!a) continue;
    arena.mend(*a);
    return std::string("kernel ") + work.name + " wrote outside of " + text_of(*a, static_cast<int>(d)) + " at " +
           text_of(a->data) + ". The address sanitizer's build (preset emulate-asan) shows the line.";
  }
  return {};
}

void Runtime::finish(Op& op) {
  op.running = false;
  op.done = true;
  op.finished = std::chrono::steady_clock::now();
  op.before.clear();
  op.work.run = nullptr;
  op.work.collective.reset();
  for (Op* next : op.after) {
    if (--next->waits_for == 0) ready_.push_back(next);
  }
  op.after.clear();
  live_.erase(op.number);
  progress_.notify_all();
}

}  // namespace levin::emulator
