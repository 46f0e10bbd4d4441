// Creates and destroys communicators.

#include "communicator.h"

#include <chrono>
#include <cstring>
#include <map>

namespace levin::emulator::nccl {

namespace {

using Clock = std::chrono::steady_clock;
constexpr const char kIdPrefix[] = "levin-nccl-";

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

/// Formats as "ranks 1, 3".
std::string list(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

/// Waits until no rank is missing. After a timeout, fails with a sentence that lists the missing ranks.
template <class F>
ncclResult_t wait_for_all(Segment& segment, const char* call, F&& is_there) {
  Header& header = segment.header();
  const auto end = Clock::now() + std::chrono::seconds(patience());
  for (;;) {
    const std::uint32_t seen = header.changed.load();
    std::vector<int> missing;
    for (int r = 0; r < segment.ranks(); ++r) {
      if (!is_there(r)) missing.push_back(r);
    }
    if (missing.empty()) return ncclSuccess;
    if (const int dead = segment.find_dead(); dead >= 0) {
      segment.fail(ncclRemoteError, std::string(call) + ": " + rank_name(dead) + " (process " +
                                        std::to_string(segment.slot(dead).pid.load()) + ") ended.");
    } else if (Clock::now() > end) {
      segment.fail(ncclRemoteError, std::string(call) + ": " + list(missing) + " did not come within " +
                                        std::to_string(patience()) +
                                        " s. A thread that makes several ranks does so between ncclGroupStart and "
                                        "ncclGroupEnd; LEVIN_EMULATED_NCCL_TIMEOUT has other seconds.");
    }
    if (segment.failed()) return refuse(segment.code(), segment.text());
    wait_for_change(header.changed, seen, 100);
  }
}

/// Initialises one rank of a communicator; the other ranks are in this or in other processes.
class Init : public Joining {
 public:
  Init(ncclComm_t* result, std::string name, int ranks, int rank, int device, const char* call)
      : result_(result), name_(std::move(name)), ranks_(ranks), rank_(rank), device_(device), call_(call) {}

  ncclResult_t begin() override {
    // Serialised, because closing a second descriptor of the file would drop this process's locks on it.
    static std::mutex opening;
    const std::lock_guard one(opening);
    Runtime& rt = runtime();
    auto comm = std::make_unique<ncclComm>();
    int seat = rank_;
    {
      const Lock lock(rt.mutex);
      comm->segment = names()[name_].lock();
    }
    std::string error;
    if (!comm->segment) comm->segment = Segment::open(name_, ranks_, error);
    if (comm->segment && comm->segment->ranks() != ranks_) {
      error = "this rank says that there are " + std::to_string(ranks_) + " ranks, another one says " +
              std::to_string(comm->segment->ranks()) + ". All ranks must agree.";
    }
    if (!error.empty() || !comm->segment) return refuse(ncclInvalidArgument, call_ + (": " + error));
    {
      const Lock lock(rt.mutex);
      names()[name_] = comm->segment;
      for (const ncclComm* other : communicators()) {
        if (other->segment != comm->segment) continue;
        seat = static_cast<int>(comm->segment->slot(other->rank).seat.load());
        if (other->device != device_) continue;
        error = rank_name(rank_) + " and " + rank_name(other->rank) + " of this process both use device " +
                std::to_string(device_) + ". Each rank needs a device of its own.";
      }
    }
    return error.empty() ? enter_with(std::move(comm), seat) : refuse(ncclInvalidUsage, call_ + (": " + error));
  }

  ncclResult_t meet() override {
    Segment& segment = *comm_->segment;
    return wait_for_all(segment, call_, [&](int r) { return segment.slot(r).presence.load() != Presence::absent; });
  }

  ncclResult_t end() override {
    comm_->segment->remove_name();
    *result_ = comm_.release();
    return ncclSuccess;
  }

  void undo() override {
    if (!comm_) return;
    Segment& segment = *comm_->segment;
    segment.fail(ncclRemoteError, call_ + (": " + rank_name(rank_) + " gave up"));
    leave(comm_.get());
    bool alone = true;
    for (int r = 0; r < ranks_; ++r) alone = alone && segment.slot(r).presence.load() != Presence::present;
    if (alone) segment.remove_name();
    comm_.reset();
  }

 private:
  static std::map<std::string, std::weak_ptr<Segment>>& names() {
    static auto* const all = new std::map<std::string, std::weak_ptr<Segment>>;
    std::erase_if(*all, [](const auto& entry) { return entry.second.expired(); });
    return *all;
  }

  ncclResult_t enter_with(std::unique_ptr<ncclComm> comm, int seat) {
    if (!comm->segment->join(rank_, seat)) {
      return refuse(ncclInvalidArgument,
                    call_ + (": " + rank_name(rank_) + " is there already. Each rank comes once."));
    }
    comm->rank = rank_;
    comm->device = device_;
    comm->sent.resize(static_cast<std::size_t>(ranks_));
    comm->received.resize(static_cast<std::size_t>(ranks_));
    comm->users.insert(std::this_thread::get_id());
    comm_ = std::move(comm);
    enter(comm_.get());
    return ncclSuccess;
  }

  ncclComm_t* result_;
  std::string name_;
  int ranks_, rank_, device_;
  const char* call_;
  std::unique_ptr<ncclComm> comm_;
};

/// A rank of ncclCommSplit: it publishes its color and key, reads those of the others, and joins the ranks of its
/// color.
class Split : public Joining {
 public:
  Split(ncclComm_t comm, int color, int key, ncclComm_t* result)
      : comm_(comm), color_(color), key_(key), result_(result) {}

  ncclResult_t begin() override {
    number_ = ++comm_->splits;
    RankSlot& slot = comm_->segment->slot(comm_->rank);
    slot.color[number_ % 2].store(color_);
    slot.key[number_ % 2].store(key_);
    slot.splits.store(number_);
    wake(comm_->segment->header().changed);
    return ncclSuccess;
  }

  ncclResult_t meet() override {
    Segment& segment = *comm_->segment;
    const ncclResult_t all =
        wait_for_all(segment, "ncclCommSplit", [&](int r) { return segment.slot(r).splits.load() >= number_; });
    if (all != ncclSuccess || color_ == NCCL_SPLIT_NOCOLOR) return all;
    int rank = 0, ranks = 0;
    for (int r = 0; r < segment.ranks(); ++r) {
      const RankSlot& slot = segment.slot(r);
      if (slot.color[number_ % 2].load() != color_) continue;
      ++ranks;
      const int key = slot.key[number_ % 2].load();
      if (key < key_ || (key == key_ && r < comm_->rank)) ++rank;
    }
    const std::string name = segment.short_name() + "-" + std::to_string(number_) + "-" + std::to_string(color_);
    child_ = std::make_unique<Init>(result_, name, ranks, rank, comm_->device, "ncclCommSplit");
    return child_->begin();
  }

  ncclResult_t end() override {
    if (!child_) {
      *result_ = nullptr;
      return ncclSuccess;
    }
    const ncclResult_t met = child_->meet();
    return met == ncclSuccess ? child_->end() : met;
  }

  void undo() override {
    if (child_) child_->undo();
  }

 private:
  ncclComm_t comm_;
  int color_, key_;
  ncclComm_t* result_;
  std::uint64_t number_ = 0;
  std::unique_ptr<Init> child_;
};

ncclResult_t init(const char* call, ncclComm_t* comm, int ranks, const ncclUniqueId& id, int rank, int device) {
  const std::string given(id.internal, strnlen(id.internal, sizeof(id.internal)));
  std::string error;
  if (!comm) error = "a null pointer for the communicator";
  if (!given.starts_with(kIdPrefix)) error = "the unique id does not come from ncclGetUniqueId";
  if (ranks < 1 || ranks > kMostRanks) {
    error = std::to_string(ranks) + " ranks; the emulator takes 1 to " + std::to_string(kMostRanks);
  } else if (rank < 0 || rank >= ranks) {
    error = rank_name(rank) + " of " + std::to_string(ranks) + " ranks";
  }
  if (!error.empty()) return note_in_group(refuse(ncclInvalidArgument, call + (": " + error)));
  return join(std::make_unique<Init>(comm, given.substr(sizeof(kIdPrefix) - 1), ranks, rank, device, call));
}

int current_device() {
  int device = 0;
  return cudaGetDevice(&device) == cudaSuccess ? device : -1;
}

}  // namespace

int patience() { return number_from("LEVIN_EMULATED_NCCL_TIMEOUT", 60); }

}  // namespace levin::emulator::nccl

using namespace levin::emulator;
using namespace levin::emulator::nccl;

ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  if (!uniqueId) return refuse(ncclInvalidArgument, "ncclGetUniqueId: a null pointer");
  *uniqueId = {};
  const std::string text = kIdPrefix + hex(random_number()) + hex(random_number());
  std::memcpy(uniqueId->internal, text.data(), text.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  const int device = current_device();
  if (device < 0) return refuse(ncclUnhandledCudaError, "ncclCommInitRank: there is no device");
  return init("ncclCommInitRank", comm, nranks, commId, rank, device);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config) {
  if (config && config->magic != 0xcafebeef) {
    return refuse(ncclInvalidArgument,
                  "ncclCommInitRankConfig: the configuration was not set to NCCL_CONFIG_INITIALIZER");
  }
  return ncclCommInitRank(comm, nranks, commId, rank);
}

ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) return refuse(ncclUnhandledCudaError, "ncclCommInitAll: no device");
  if (!comm || ndev < 1) return refuse(ncclInvalidArgument, "ncclCommInitAll: no communicators are asked for");
  ncclUniqueId id;
  ncclResult_t result = ncclGetUniqueId(&id);
  ncclGroupStart();
  for (int r = 0; r < ndev && result == ncclSuccess; ++r) {
    const int device = devlist ? devlist[r] : r;
    if (device < 0 || device >= devices) {
      result =
          note_in_group(refuse(ncclInvalidArgument, "ncclCommInitAll: there is no device " + std::to_string(device) +
                                                        " of " + std::to_string(devices)));
    } else {
      result = init("ncclCommInitAll", &comm[r], ndev, id, r, device);
    }
  }
  const ncclResult_t ended = ncclGroupEnd();
  return result == ncclSuccess ? ended : result;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t*) {
  const ncclResult_t checked = check_usable(comm, "ncclCommSplit");
  if (checked != ncclSuccess) return note_in_group(checked);
  if (!newcomm || (color < 0 && color != NCCL_SPLIT_NOCOLOR)) {
    return note_in_group(refuse(ncclInvalidArgument, "ncclCommSplit: color " + std::to_string(color) +
                                                         " is neither NCCL_SPLIT_NOCOLOR nor 0 or more"));
  }
  return join(std::make_unique<Split>(comm, color, key, newcomm));
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const ncclResult_t checked = check_usable(comm, "ncclCommFinalize");
  if (checked != ncclSuccess) return checked;
  complete(comm);
  comm->finalized = true;
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const ncclResult_t known = check_known(comm, "ncclCommDestroy");
  if (known != ncclSuccess) return known;
  complete(comm);
  leave(comm);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const ncclResult_t known = check_known(comm, "ncclCommAbort");
  if (known != ncclSuccess) return known;
  bool busy = false;
  {
    const Lock lock(runtime().mutex);
    for (const ncclComm::Queued& q : comm->queued) busy = busy || !q.op->done;
  }
  if (busy) comm->segment->fail(ncclRemoteError, rank_name(comm->rank) + " called ncclCommAbort.");
  complete(comm);
  leave(comm);
  delete comm;
  return ncclSuccess;
}
