// Groups: calls between ncclGroupStart and ncclGroupEnd start together at the end.

#include "communicator.h"

#include <algorithm>
#include <atomic>
#include <map>

namespace levin::emulator::nccl {

namespace {

struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<std::unique_ptr<Joining>> joining;
  std::vector<Issued> issued;
};

Group& this_group() {
  static thread_local Group group;
  return group;
}

ncclResult_t run(std::vector<std::unique_ptr<Joining>>& all) {
  ncclResult_t result = ncclSuccess;
  for (const auto phase : {&Joining::begin, &Joining::meet, &Joining::end}) {
    for (auto& one : all) {
      if (result == ncclSuccess) result = ((*one).*phase)();
    }
  }
  if (result == ncclSuccess) return result;
  for (auto& one : all) one->undo();
  return result;
}

/// Detects a call outside of a group, or in a different group, whose counterpart this thread made on another of its
/// ranks.
bool is_split_over_groups(const Issued& issued, std::uint64_t group, std::string& text) {
  const ncclComm& comm = *issued.comm;
  const std::uint64_t number = comm.collectives + 1;
  for (const ncclComm* other : communicators()) {
    if (other == &comm || other->segment != comm.segment) continue;
    for (const ncclComm::Queued& q : other->queued) {
      if (q.number != number || q.thread != std::this_thread::get_id() || q.group == group) continue;
      text = describe(issued.call) + ": this thread called it on rank " + std::to_string(other->rank) +
             " already, and now on rank " + std::to_string(comm.rank) +
             ". A thread with several communicators makes their calls between ncclGroupStart and ncclGroupEnd.";
      return true;
    }
  }
  return false;
}

/// Adds an operation that only waits. Returns false if the stream no longer exists.
bool submit_marker(Runtime& rt, Lock& lock, CUstream_st* stream, const OpRef& before) {
  Work work;
  work.name = "a collective";
  return stream && rt.submit(lock, *stream, std::move(work), before) == cudaSuccess;
}

/// Queues an operation after all others of the rank. It runs in the first call's stream; the other calls' streams and
/// the operation wait for each other.
ncclResult_t submit(Runtime& rt, Lock& lock, const std::vector<const Issued*>& calls,
                    std::shared_ptr<Operation> operation, std::vector<Range> touches, std::uint64_t number,
                    std::uint64_t group) {
  ncclComm& comm = *calls.front()->comm;
  const int current = std::exchange(this_thread().device, comm.device);
  std::vector<CUstream_st*> streams;
  for (const Issued* call : calls) {
    CUstream_st* const stream = rt.find(call->stream);
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  }
  Work work;
  work.kind = Work::Kind::collective;
  work.name = "a collective";
  work.opens = 1u << comm.device;
  work.touches = std::move(touches);
  work.collective = operation;
  OpRef before = comm.queued.empty() ? nullptr : comm.queued.back().op;
  bool ok = true;
  for (std::size_t i = 1; i < streams.size() && ok; ++i) {
    ok = submit_marker(rt, lock, streams[i], before);
    if (ok) before = streams[i]->last;
  }
  ok = ok && streams[0] && rt.submit(lock, *streams[0], std::move(work), before) == cudaSuccess;
  if (ok) {
    const OpRef op = streams[0]->last;
    comm.queued.push_back({op, std::move(operation), number, group, std::this_thread::get_id()});
    for (std::size_t i = 1; i < streams.size(); ++i) ok = submit_marker(rt, lock, streams[i], op) && ok;
    rt.ring();
  }
  this_thread().device = current;
  return ok ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t queue_collective(Runtime& rt, Lock& lock, const Issued& issued, std::uint64_t group) {
  ncclComm& comm = *issued.comm;
  std::string text;
  if (is_split_over_groups(issued, group, text)) {
    comm.segment->fail(ncclInvalidUsage, text);
    rt.report = text;
    return ncclInvalidUsage;
  }
  Call call = issued.call;
  call.number = ++comm.collectives;
  const int ranks = comm.segment->ranks();
  auto operation = std::make_shared<Operation>(comm.segment, comm.rank);
  operation->add(call, plan_collective(call, comm.rank, ranks, issued.send, issued.receive));
  return submit(rt, lock, {&issued}, std::move(operation), issued.touches, call.number, group);
}

/// Queues the messages of one rank in a group as one operation, in which all proceed concurrently.
ncclResult_t queue_messages(Runtime& rt, Lock& lock, const std::vector<const Issued*>& messages, std::uint64_t group) {
  ncclComm& comm = *messages.front()->comm;
  auto operation = std::make_shared<Operation>(comm.segment, comm.rank);
  std::vector<Range> touches;
  for (const Issued* m : messages) {
    Call call = m->call;
    const bool sends = m->peer_to >= 0;
    call.number = ++(sends ? comm.sent : comm.received)[static_cast<std::size_t>(sends ? m->peer_to : m->peer_from)];
    operation->add(call, plan_message(call, m->peer_from, m->peer_to, m->send, m->receive));
    touches.insert(touches.end(), m->touches.begin(), m->touches.end());
  }
  return submit(rt, lock, messages, std::move(operation), std::move(touches), 0, group);
}

ncclResult_t queue(const std::vector<Issued>& issued, std::uint64_t group) {
  Runtime& rt = runtime();
  Lock lock(rt.mutex);
  ncclResult_t result = ncclSuccess;
  std::vector<std::pair<ncclComm*, std::vector<const Issued*>>> messages;
  for (const Issued& i : issued) {
    if (i.call.kind != Kind::message) {
      if (result == ncclSuccess) result = queue_collective(rt, lock, i, group);
      continue;
    }
    const auto it = std::find_if(messages.begin(), messages.end(), [&](const auto& m) { return m.first == i.comm; });
    if (it == messages.end()) {
      messages.push_back({i.comm, {&i}});
    } else {
      it->second.push_back(&i);
    }
  }
  for (const auto& [comm, list] : messages) {
    if (result == ncclSuccess) result = queue_messages(rt, lock, list, group);
  }
  return result;
}

std::uint64_t next_group() {
  static std::atomic<std::uint64_t> number{0};
  return ++number;
}

}  // namespace

ncclResult_t join(std::unique_ptr<Joining> joining) {
  Group& group = this_group();
  if (group.depth > 0) {
    group.joining.push_back(std::move(joining));
    return ncclSuccess;
  }
  std::vector<std::unique_ptr<Joining>> one;
  one.push_back(std::move(joining));
  return run(one);
}

ncclResult_t issue(Issued issued) {
  Group& group = this_group();
  if (group.depth > 0) {
    group.issued.push_back(std::move(issued));
    return ncclSuccess;
  }
  return queue({std::move(issued)}, next_group());
}

ncclResult_t note_in_group(ncclResult_t code) {
  Group& group = this_group();
  if (group.depth > 0 && group.error == ncclSuccess) group.error = code;
  return code;
}

}  // namespace levin::emulator::nccl

using namespace levin::emulator::nccl;

ncclResult_t ncclGroupStart() {
  ++this_group().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  Group& group = this_group();
  if (group.depth == 0) return refuse(ncclInvalidUsage, "ncclGroupEnd: there was no ncclGroupStart before.");
  if (--group.depth > 0) return ncclSuccess;
  Group all = std::exchange(group, Group());
  if (all.error != ncclSuccess) return all.error;
  const ncclResult_t joined = run(all.joining);
  return joined == ncclSuccess ? queue(all.issued, next_group()) : joined;
}
