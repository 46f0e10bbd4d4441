// The group of CUDA tensors, over NCCL. Collectives are queued on one stream of the group. Each pair of ranks has a
// communicator and a stream for each direction of its messages, made by the first message, so that two ranks that both
// send first do not wait for each other. The headers of calls are compared separately, over the host connections.

#include "cuda/nccl_calls.h"  // CUDA's headers come first
#include "cuda/nccl_poller.h"

#include <fmt/format.h>
#include <levin/autograd/ops.h>

#include <cstdlib>
#include <cstring>

#include "src/groups/backends.h"
#include "src/groups/task_queue.h"
#include "src/transports/sigpipe.h"

namespace levin::distributed {

using namespace kernels::cuda;

namespace {

using Kind = Collective::Kind;

constexpr auto kTold = std::chrono::seconds(1);       // wait for the detector to deliver this rank's own failure
constexpr auto kFarewell = std::chrono::seconds(10);  // wait for the other ranks when a communicator is finished
constexpr auto kPollPause = std::chrono::milliseconds(1);

// NCCL reads the variable with the first communicator. Since 2.24, "Tree" is an error for operations without a tree.
void choose_algorithm(const std::string& algorithm) {
  if (algorithm == "auto" || std::getenv("NCCL_ALGO") != nullptr) return;
  int version = 0;
  check(nccl().get_version(&version), "ncclGetVersion");
  const char* const tree = version >= 22400 ? "allreduce:tree" : "Tree";
  setenv("NCCL_ALGO", algorithm == "tree" ? tree : "Ring", 1);
}

class NcclGroup final : public MonitoredGroup {
 public:
  NcclGroup(GroupPlace place_of_rank, NcclOptions options)
      : MonitoredGroup(std::move(place_of_rank)),
        options_(std::move(options)),
        stream_(options_.device),
        flag_(zeros({1}, {.device = levin::cuda(options_.device)})),
        poller_(
            {.ended = [this] { return ended(); },
             .timed_out =
                 [this](const NcclOperation& o) { quietly([&] { time_out(describe(o.own), o.work->name, o.limit); }); },
             .failed = [this](const std::string& words) { quietly([&] { nccl_failed(words, "nccl"); }); },
             .abort = [this] { abort_all(); }}) {
    choose_algorithm(options_.algorithm);
    comm_ = make_comm("", rank(), size(), patience("the start of NCCL", "nccl", timeout()));
  }

  ~NcclGroup() override {
    abort_after_exception();
    for (TaskQueue* queue : {&compare_, &send_headers_, &recv_headers_}) queue->finish();
    for (auto& [key, link] : links_) link->queue.finish();
    poller_.finish();
    quietly([&] {
      if (ended()) return;
      const auto patient = patience("the end of NCCL", "nccl", kFarewell);
      for (auto& [key, link] : links_) {
        if (link->comm) link->comm->finish(patient);
      }
      comm_->finish(patient);
    });
  }

  std::string name() const override { return "nccl"; }

 protected:
  std::shared_ptr<ProcessGroup> make_like_this(GroupPlace place_of_rank) const override {
    return make_nccl_group(std::move(place_of_rank), options_);
  }

  Work begin(Collective c) override {
    check_for_nccl(c, device());
    if (cuda::is_current_stream_capturing()) {
      throw ValueError(
          fmt::format("[{}] operations of ranks cannot be recorded in a graph; call it outside.", to_string(c.kind)));
    }
    const bool message = is_message(c.kind);
    const std::uint64_t sequence = message ? ++messages_ : ++collectives_begun_;
    NcclOperation o{
        .own = header_of(c, message ? 0 : sequence, size()),
        .work = std::make_shared<NcclWork>(operation_name(c.kind, sequence), device(), c.kind == Kind::barrier),
        .limit = timeout(),
        .deadline = from_now(timeout())};
    if (c.kind == Kind::barrier) c.output = flag_;
    if (c.output.defined()) c.output.storage()->bump_version();
    o.collective = std::move(c);
    Work work(o.work);
    compare_later(o);
    message ? queue_message(std::move(o)) : queue_collective(std::move(o));
    return work;
  }

  // Reports the event first: the detector then ends all groups of this rank, beginning with the host group, before
  // unfinished NCCL work is aborted and the host goes on.
  void end_everywhere(const RankEvent& event) override {
    report(event);
    const auto until = Clock::now() + kTold;
    while (!ended() && Clock::now() < until && size() > 1) std::this_thread::sleep_for(kPollPause);
    transport().end(event);
  }

 private:
  /// The messages from one rank to another.
  struct Link {
    explicit Link(int device) : stream(device) {}
    cuda::Stream stream;
    std::unique_ptr<NcclComm> comm;
    TaskQueue queue;
  };

  int device() const { return options_.device; }

  template <class F>
  static void quietly(const F& f) {
    try {
      f();
    } catch (const std::exception&) {  // the group's event reports it
    }
  }

  NcclComm::Patience patience(const std::string& what, const std::string& operation, Duration limit) {
    return [this, what, operation, limit, deadline = from_now(limit)] {
      if (const auto event = ended()) throw_event(*event, operation);
      if (Clock::now() >= deadline) time_out(what, operation, limit);
    };
  }
  NcclComm::Patience patience(const NcclOperation& o) { return patience(describe(o.own), o.work->name, o.limit); }

  /// Makes the communicator of the ranks that use this key; their rank 0 publishes its id.
  std::unique_ptr<NcclComm> make_comm(const std::string& key, int own, int ranks, const NcclComm::Patience& patient) {
    if (ranks == 1) return std::make_unique<NcclComm>(device(), 1, make_nccl_id(), 0, patient);
    PrefixStore store(place().id + key, place().store);
    nccl_api::UniqueId id{};
    if (own == 0) {
      id = make_nccl_id();
      store.set("id", std::string(id.bytes, sizeof id.bytes));
    }
    agree_to_begin(store, own, ranks, patient);
    const std::string told = store.get("id");
    std::memcpy(id.bytes, told.data(), std::min(told.size(), sizeof id.bytes));
    return std::make_unique<NcclComm>(device(), ranks, id, own, patient);
  }

  // Making a communicator could wait for a rank that has given up: either all ranks begin, or none.
  static void agree_to_begin(Store& store, int own, int ranks, const NcclComm::Patience& patient) {
    try {
      store.add("here", 1);
      for (;;) {
        const bool all = own == 0 && store.try_get("here") == std::to_string(ranks);
        const std::string fate = all ? store.compare_set("fate", "", "go") : store.try_get("fate").value_or("");
        if (fate == "go") return;
        patient();
        std::this_thread::sleep_for(kPollPause);
      }
    } catch (...) {
      if (store.compare_set("fate", "", "no") != "go") throw;
    }
  }

  void compare_later(const NcclOperation& o) {
    if (size() == 1) return;
    const Kind kind = o.collective.kind;
    TaskQueue& queue = kind == Kind::send ? send_headers_ : kind == Kind::recv ? recv_headers_ : compare_;
    queue.add([this, c = o.collective, own = o.own, name = o.work->name, limit = o.limit] {
      quietly([&] { compare(c, own, name, limit); });
    });
  }

  void compare(const Collective& c, const CollectiveHeader& own, const std::string& operation, Duration limit) {
    const WithoutSigpipe guard;
    const auto channel =
        transport().channel(operation, from_now(limit), is_message(c.kind) ? Traffic::message : Traffic::collective);
    try {
      if (c.kind == Kind::send) return send_header(*channel, c, own);
      if (c.kind == Kind::recv) return check(own, recv_header(*channel, c), c.root);
      exchange(*channel, own, [&](const CollectiveHeader& other, int from) { check(own, other, from); });
      if (c.kind == Kind::all_to_all) compare_splits(*channel, c);
    } catch (const SplitMismatch& m) {
      fail_for(m, operation);
    } catch (const CollectiveTimeout&) {
      if (!ended()) time_out(describe(own), operation, limit);
    }
  }

  void queue_collective(NcclOperation o) {
    o.comm = comm_.get();
    stream_.wait_stream(cuda::current_stream(device()));
    enqueue(std::move(o), stream_, rank(), size());
  }

  // Runs on the link's thread, since the first message waits until the other rank makes the communicator too.
  void queue_message(NcclOperation o) {
    const bool sends = o.collective.kind == Kind::send;
    const int peer = o.collective.root;
    const std::string key = fmt::format("/{}-{}", sends ? rank() : peer, sends ? peer : rank());
    Link& link = link_of(key);
    auto ready = std::make_shared<cuda::Event>();
    ready->record(cuda::current_stream(device()));
    o.collective.root = sends ? 1 : 0;
    link.queue.add([this, &link, ready, key, sends, o = std::move(o)] {
      NcclOperation of_link = o;
      try {
        if (!link.comm) {
          auto comm = make_comm(key, sends ? 0 : 1, 2, patience(o));
          const std::lock_guard lock(links_mutex_);
          link.comm = std::move(comm);
        }
        of_link.comm = link.comm.get();
        link.stream.wait_event(*ready);
      } catch (...) {
        return o.work->finish(failure(o.work->name));
      }
      enqueue(std::move(of_link), link.stream, sends ? 0 : 1, 2);
    });
  }

  Link& link_of(const std::string& key) {
    const std::lock_guard lock(links_mutex_);
    std::unique_ptr<Link>& link = links_[key];
    if (!link) link = std::make_unique<Link>(device());
    return *link;
  }

  void enqueue(NcclOperation o, const cuda::Stream& stream, int own, int ranks) {
    const auto native = static_cast<cudaStream_t>(stream.handle());
    const Collective& c = o.collective;
    try {
      if (const auto event = ended()) throw_event(*event, o.work->name);
      copy_own_part(c, own, device(), native);
      o.comm->call(
          o.work->name.c_str(),
          [&](const nccl_api::Functions& f, nccl_api::Comm comm) { queue_on_nccl(c, own, ranks, f, comm, native); },
          patience(o));
      o.work->event.record(stream);
    } catch (...) {
      return o.work->finish(failure(o.work->name));
    }
    o.work->set_queued();
    poller_.add(std::move(o));
  }

  // Returns the exception being handled, or the cause of an NCCL error.
  std::exception_ptr failure(const std::string& operation) {
    try {
      try {
        throw;
      } catch (const DeviceError& e) {
        const auto until = Clock::now() + NcclPoller::kGrace;
        while (!ended() && Clock::now() < until && size() > 1) std::this_thread::sleep_for(kPollPause);
        nccl_failed(e.what(), operation);
      }
    } catch (...) {
      return std::current_exception();
    }
  }

  [[noreturn]] void nccl_failed(const std::string& words, const std::string& operation) {
    if (const auto event = ended()) throw_event(*event, operation);
    fail({RankEvent::Kind::failed, world_rank(), fmt::format("rank {} failed: NCCL: {}", world_rank(), words)},
         operation);
  }

  void abort_all() {
    comm_->abort();
    const std::lock_guard lock(links_mutex_);
    for (auto& [key, link] : links_) {
      if (link->comm) link->comm->abort();
    }
  }

  NcclOptions options_;
  cuda::Stream stream_;
  Tensor flag_;  // (1), input of barriers
  std::unique_ptr<NcclComm> comm_;
  std::uint64_t collectives_begun_ = 0, messages_ = 0;
  std::mutex links_mutex_;
  std::map<std::string, std::unique_ptr<Link>> links_;
  TaskQueue compare_, send_headers_, recv_headers_;
  NcclPoller poller_;
};

}  // namespace

std::shared_ptr<ProcessGroup> make_nccl_group(GroupPlace place, const NcclOptions& options) {
  return std::make_shared<NcclGroup>(std::move(place), options);
}

int nccl_device(std::optional<int> wanted) {
  if (!cuda::is_available()) throw DeviceError(cuda::why_unavailable());
  const int device = wanted.value_or(cuda::current_device());
  require_device(levin::cuda(device));
  return device;
}

}  // namespace levin::distributed
