// Calls that move data, with their checks; queries of communicators; errors.

#include "communicator.h"

#include <algorithm>

namespace levin::emulator::nccl {

namespace {

struct TypeName {
  const char* name;
  std::size_t bytes;
};
constexpr TypeName kTypes[ncclNumTypes] = {{"ncclInt8", 1},     {"ncclUint8", 1},      {"ncclInt32", 4},
                                           {"ncclUint32", 4},   {"ncclInt64", 8},      {"ncclUint64", 8},
                                           {"ncclFloat16", 2},  {"ncclFloat32", 4},    {"ncclFloat64", 8},
                                           {"ncclBfloat16", 2}, {"ncclFloat8e4m3", 1}, {"ncclFloat8e5m2", 1}};
constexpr const char* kOps[ncclNumOps] = {"ncclSum", "ncclProd", "ncclMax", "ncclMin", "ncclAvg"};
constexpr const char* kNames[] = {"ncclAllReduce", "ncclReduce",        "ncclBroadcast",
                                  "ncclAllGather", "ncclReduceScatter", "ncclSend and ncclRecv"};

bool reduces(Kind kind) { return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter; }
bool has_root(Kind kind) { return kind == Kind::reduce || kind == Kind::broadcast; }

std::string& last_error() {
  static auto* const text = new std::string;
  return *text;
}

/// A buffer argument with its required location and size.
struct Buffer {
  const char* role;
  const void* p;
  std::size_t bytes;
};

std::string check_buffer(const Runtime& rt, const ncclComm& comm, const Buffer& b) {
  const std::string what = std::string(b.role) + " " + text_of(b.p) + " of rank " + std::to_string(comm.rank);
  const std::string wanted = "; it must be memory of device " + std::to_string(comm.device);
  if (!b.p) return std::string(b.role) + " of rank " + std::to_string(comm.rank) + " is a null pointer";
  const Place place = rt.place_of(b.p);
  switch (place.kind) {
    case Place::Kind::pageable:
      return what + " is pageable host memory" + wanted;
    case Place::Kind::pinned:
      return what + " is pinned host memory" + wanted;
    case Place::Kind::nowhere:
      return what + " lies in no live allocation of device " + std::to_string(place.device) + wanted;
    case Place::Kind::device:
      break;
  }
  if (place.device != comm.device) return what + " is memory of device " + std::to_string(place.device) + wanted;
  const auto behind = place.bytes - static_cast<std::size_t>(static_cast<const char*>(b.p) - place.begin);
  if (b.bytes <= behind) return {};
  return what + " has " + std::to_string(behind) + " bytes behind it, and the call needs " + std::to_string(b.bytes);
}

/// In-place calls need one exact overlap; with any other, steps would read what earlier steps wrote.
std::string check_overlap(const ncclComm& comm, const Call& call, const Buffer& send, const Buffer& receive) {
  const auto* const s = static_cast<const char*>(send.p);
  const auto* const r = static_cast<const char*>(receive.p);
  if (s >= r + receive.bytes || r >= s + send.bytes) return {};
  const std::size_t block = call.count * size_of(call.type) * static_cast<std::size_t>(comm.rank);
  const bool in_place = call.kind == Kind::all_gather       ? s == r + block
                        : call.kind == Kind::reduce_scatter ? r == s + block
                                                            : s == r;
  return in_place ? std::string()
                  : "sendbuff and recvbuff of rank " + std::to_string(comm.rank) + " overlap, but are not in place";
}

std::string check_call(const ncclComm& comm, const Call& call) {
  const int ranks = comm.segment->ranks();
  if (call.type < 0 || call.type >= ncclNumTypes) return "there is no data type " + std::to_string(call.type);
  if (reduces(call.kind)) {
    if (call.op < 0 || call.op >= ncclNumOps) return "there is no operation " + std::to_string(call.op);
    if (call.type >= ncclFloat8e4m3)
      return std::string("the emulator moves ") + kTypes[call.type].name + ", but does not reduce it";
  }
  if (has_root(call.kind) && (call.root < 0 || call.root >= ranks)) {
    return "root " + std::to_string(call.root) + " of " + std::to_string(ranks) + " ranks";
  }
  return {};
}

std::string check_stream(Runtime& rt, const ncclComm& comm, cudaStream_t handle) {
  const int current = std::exchange(this_thread().device, comm.device);
  const CUstream_st* const stream = rt.find(handle);
  this_thread().device = current;
  if (!stream) return "no such stream";
  if (stream->capture) return "the emulator captures no collectives in graphs";
  if (stream->device == comm.device) return {};
  return "the stream belongs to device " + std::to_string(stream->device) + ", rank " + std::to_string(comm.rank) +
         " to device " + std::to_string(comm.device);
}

/// Checks the arguments and hands the call to the thread's group.
ncclResult_t call_on(const char* name, Issued issued) {
  const ncclResult_t usable = check_usable(issued.comm, name);
  if (usable != ncclSuccess) return note_in_group(usable);
  const ncclComm& comm = *issued.comm;
  const Call& call = issued.call;
  const int ranks = comm.segment->ranks();
  const bool message = call.kind == Kind::message;
  std::string error = check_call(comm, call);
  if (error.empty()) {
    const Lock lock(runtime().mutex);
    const std::size_t size = size_of(call.type);
    const Buffer send{
        "sendbuff", issued.send,
        message ? (issued.peer_to >= 0 ? call.count : 0) * size : elements_sent(call, comm.rank, ranks) * size};
    const Buffer receive{
        "recvbuff", issued.receive,
        message ? (issued.peer_from >= 0 ? call.count : 0) * size : elements_received(call, comm.rank, ranks) * size};
    error = check_stream(runtime(), comm, issued.stream);
    for (const Buffer* b : {&send, &receive}) {
      if (b->bytes == 0 || !error.empty()) continue;
      error = check_buffer(runtime(), comm, *b);
      issued.touches.push_back({b->p, b->bytes});
    }
    if (error.empty() && send.bytes > 0 && receive.bytes > 0) error = check_overlap(comm, call, send, receive);
  }
  if (!error.empty()) return note_in_group(refuse(ncclInvalidArgument, std::string(name) + ": " + error));
  return note_in_group(issue(std::move(issued)));
}

ncclResult_t collective(Kind kind, const void* send, void* receive, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  Issued issued;
  issued.comm = comm;
  issued.call.count = count;
  issued.call.kind = kind;
  issued.call.type = type;
  issued.call.op = op;
  issued.call.root = root;
  issued.send = static_cast<const char*>(send);
  issued.receive = static_cast<char*>(receive);
  issued.stream = stream;
  return call_on(kNames[static_cast<int>(kind)], std::move(issued));
}

ncclResult_t message(const char* name, bool sends, const void* buffer, std::size_t count, ncclDataType_t type, int peer,
                     ncclComm_t comm, cudaStream_t stream) {
  const ncclResult_t usable = check_usable(comm, name);
  if (usable != ncclSuccess) return note_in_group(usable);
  if (peer < 0 || peer >= comm->segment->ranks()) {
    return note_in_group(refuse(ncclInvalidArgument, std::string(name) + ": peer " + std::to_string(peer) + " of " +
                                                         std::to_string(comm->segment->ranks()) + " ranks"));
  }
  Issued issued;
  issued.comm = comm;
  issued.call.count = count;
  issued.call.kind = Kind::message;
  issued.call.type = type;
  (sends ? issued.peer_to : issued.peer_from) = peer;
  if (sends) {
    issued.send = static_cast<const char*>(buffer);
  } else {
    issued.receive = static_cast<char*>(const_cast<void*>(buffer));
  }
  issued.stream = stream;
  return call_on(name, std::move(issued));
}

}  // namespace

std::size_t size_of(ncclDataType_t type) { return kTypes[type].bytes; }

std::string describe(const Call& call) {
  std::string text = kNames[static_cast<int>(call.kind)];
  if (call.number > 0)
    text += (call.kind == Kind::message ? " message " : " as collective ") + std::to_string(call.number);
  text += " (count " + std::to_string(call.count) + ", " + kTypes[call.type].name;
  if (reduces(call.kind)) text += std::string(", ") + kOps[call.op];
  if (has_root(call.kind)) text += ", root " + std::to_string(call.root);
  return text + ")";
}

ncclResult_t refuse(ncclResult_t code, const std::string& text) {
  Runtime& rt = runtime();
  const Lock lock(rt.mutex);
  last_error() = rt.report = text;
  return code;
}

ncclResult_t check_known(ncclComm_t comm, const char* call) {
  {
    const Lock lock(runtime().mutex);
    if (is_alive(comm)) {
      comm->users.insert(std::this_thread::get_id());
      return ncclSuccess;
    }
  }
  return refuse(ncclInvalidArgument, std::string(call) + ": no such communicator. It is null or was destroyed.");
}

ncclResult_t check_usable(ncclComm_t comm, const char* call) {
  const ncclResult_t known = check_known(comm, call);
  if (known != ncclSuccess) return known;
  if (comm->finalized) return refuse(ncclInvalidUsage, std::string(call) + ": the communicator was finalized");
  if (comm->segment->failed()) return refuse(comm->segment->code(), comm->segment->text());
  return ncclSuccess;
}

template <class F>
ncclResult_t ask(ncclComm_t comm, int* result, const char* call, F&& value) {
  const ncclResult_t known = check_known(comm, call);
  if (known != ncclSuccess) return known;
  if (!result) return refuse(ncclInvalidArgument, std::string(call) + ": a null pointer for the result");
  *result = value();
  return ncclSuccess;
}

}  // namespace levin::emulator::nccl

using namespace levin::emulator;
using namespace levin::emulator::nccl;

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return collective(Kind::all_reduce, sendbuff, recvbuff, count, datatype, op, 0, comm, stream);
}

ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return collective(Kind::reduce, sendbuff, recvbuff, count, datatype, op, root, comm, stream);
}

ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective(Kind::broadcast, sendbuff, recvbuff, count, datatype, ncclSum, root, comm, stream);
}

ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, std::size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective(Kind::all_gather, sendbuff, recvbuff, sendcount, datatype, ncclSum, 0, comm, stream);
}

ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, std::size_t recvcount, ncclDataType_t datatype,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return collective(Kind::reduce_scatter, sendbuff, recvbuff, recvcount, datatype, op, 0, comm, stream);
}

ncclResult_t ncclSend(const void* sendbuff, std::size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return message("ncclSend", true, sendbuff, count, datatype, peer, comm, stream);
}

ncclResult_t ncclRecv(void* recvbuff, std::size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return message("ncclRecv", false, recvbuff, count, datatype, peer, comm, stream);
}

ncclResult_t ncclGetVersion(int* version) {
  if (!version) return refuse(ncclInvalidArgument, "ncclGetVersion: a null pointer");
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return ask(comm, count, "ncclCommCount", [&] { return comm->segment->ranks(); });
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return ask(comm, device, "ncclCommCuDevice", [&] { return comm->device; });
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return ask(comm, rank, "ncclCommUserRank", [&] { return comm->rank; });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  int code = 0;
  const ncclResult_t known = ask(comm, &code, "ncclCommGetAsyncError",
                                 [&] { return comm->segment->failed() ? static_cast<int>(comm->segment->code()) : 0; });
  if (known == ncclSuccess && asyncError) *asyncError = static_cast<ncclResult_t>(code);
  return known;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

/// Returns the failure of the communicator, else the last refused call of this process.
const char* ncclGetLastError(ncclComm_t comm) {
  static thread_local std::string text;
  const Lock lock(runtime().mutex);
  text = is_alive(comm) && comm->segment->failed() ? comm->segment->text() : last_error();
  return text.c_str();
}
