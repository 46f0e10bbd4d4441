// The threads behind communicators: one per process drives the work that other ranks wait for; one per group of ranks
// waits on its bell and checks that the other processes are alive.

#include "communicator.h"

#include <algorithm>
#include <chrono>
#include <map>

namespace levin::emulator::nccl {

namespace {

using Clock = std::chrono::steady_clock;

struct Listener {
  std::shared_ptr<Segment> segment;
  int seat = 0, members = 0;
  std::atomic<bool> stop{false};
  std::thread thread;
};

std::map<Segment*, std::unique_ptr<Listener>>& listeners() {
  static auto* const all = new std::map<Segment*, std::unique_ptr<Listener>>;
  return *all;
}
bool driver_stops = false;
std::thread* driver = nullptr;
std::mutex starting;  // serialises the start and end of communicators

/// Returns the first operation of each rank that others wait for.
std::vector<OpRef> demanded_work() {
  std::vector<OpRef> found;
  for (ncclComm* comm : communicators()) {
    while (!comm->queued.empty() && comm->queued.front().op->done) comm->queued.pop_front();
    bool message = false;  // only the first one is needed
    for (const ncclComm::Queued& q : comm->queued) {
      if (q.op->done || (message && q.number == 0) || !q.operation->is_wanted()) continue;
      found.push_back(q.op);
      message = message || q.number == 0;
    }
  }
  return found;
}

/// Detects a thread that is the only user of all ranks of a segment here and waits although one of them has nothing
/// queued.
bool waits_for_itself(Segment* segment, std::string& text) {
  std::vector<ncclComm*> members;
  for (ncclComm* comm : communicators()) {
    if (comm->segment.get() == segment) members.push_back(comm);
  }
  const ncclComm *waiting = nullptr, *idle = nullptr;
  std::uint64_t number = 0;
  for (const ncclComm* comm : members) {
    if (comm->users.size() != 1 || comm->users != members.front()->users) return false;
    for (const ncclComm::Queued& q : comm->queued) {
      if (!q.op->done && q.number > number) waiting = comm, number = q.number;
    }
  }
  for (const ncclComm* comm : members) {
    if (comm->collectives < number) idle = comm;
  }
  if (!waiting || !idle || !runtime().waits(*waiting->users.begin())) return false;
  text = "the thread that holds rank " + std::to_string(waiting->rank) + " and rank " + std::to_string(idle->rank) +
         " waits for the first, and has called nothing on the second. A thread with several communicators makes their "
         "calls between ncclGroupStart and ncclGroupEnd.";
  return true;
}

void check_others(Segment& segment) {
  const int dead = segment.find_dead();
  if (dead < 0) return;
  segment.fail(ncclRemoteError, "rank " + std::to_string(dead) + " (process " +
                                    std::to_string(segment.slot(dead).pid.load()) + ") ended without ncclCommDestroy.");
}

void listen(Listener& listener) {
  Segment& segment = *listener.segment;
  std::atomic<std::uint32_t>& bell = segment.slot(listener.seat).bell;
  auto suspect = Clock::time_point::max(), next_check = Clock::now();
  while (!listener.stop) {
    const std::uint32_t seen = bell.load();
    std::string text;
    {
      Runtime& rt = runtime();
      const Lock lock(rt.mutex);
      rt.ring();
      if (!waits_for_itself(&segment, text)) {
        suspect = Clock::time_point::max();
      } else if (suspect == Clock::time_point::max()) {
        suspect = Clock::now() + std::chrono::seconds(std::min(patience(), 5));
      }
    }
    if (Clock::now() >= suspect) segment.fail(ncclInvalidUsage, text);
    if (Clock::now() >= next_check) {
      check_others(segment);
      next_check = Clock::now() + std::chrono::milliseconds(100);
    }
    if (!listener.stop) wait_for_change(bell, seen, 100);
  }
}

void start_driver() {
  Runtime& rt = runtime();
  driver_stops = false;
  rt.demanded = demanded_work;
  driver = new std::thread([&rt] { rt.drive_until(driver_stops); });
}

void stop_driver() {
  Runtime& rt = runtime();
  {
    const Lock lock(rt.mutex);
    driver_stops = true;
    rt.ring();
  }
  driver->join();
  delete driver;
  driver = nullptr;
  const Lock lock(rt.mutex);
  rt.demanded = nullptr;
}

}  // namespace

std::set<ncclComm*>& communicators() {
  static auto* const all = new std::set<ncclComm*>;
  return *all;
}

bool is_alive(ncclComm_t comm) { return comm && communicators().count(comm) > 0; }

void enter(ncclComm* comm) {
  const std::lock_guard one(starting);
  {
    const Lock lock(runtime().mutex);
    communicators().insert(comm);
    if (!driver) start_driver();
  }
  std::unique_ptr<Listener>& listener = listeners()[comm->segment.get()];
  if (!listener) {
    listener = std::make_unique<Listener>();
    listener->segment = comm->segment;
    listener->seat = static_cast<int>(comm->segment->slot(comm->rank).seat.load());
    listener->thread = std::thread([l = listener.get()] { listen(*l); });
  }
  ++listener->members;
}

void leave(ncclComm* comm) {
  const std::lock_guard one(starting);
  bool last = false;
  {
    const Lock lock(runtime().mutex);
    communicators().erase(comm);
    last = communicators().empty();
  }
  comm->segment->leave(comm->rank);
  const auto it = listeners().find(comm->segment.get());
  if (--it->second->members == 0) {
    it->second->stop = true;
    comm->segment->ring(comm->rank);
    it->second->thread.join();
    listeners().erase(it);
  }
  if (last) stop_driver();
}

void complete(ncclComm* comm) {
  Runtime& rt = runtime();
  Lock lock(rt.mutex);
  std::vector<OpRef> targets;
  for (const ncclComm::Queued& q : comm->queued) targets.push_back(q.op);
  rt.complete(lock, std::move(targets));
}

}  // namespace levin::emulator::nccl
