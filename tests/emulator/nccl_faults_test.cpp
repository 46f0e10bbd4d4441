// Misuse of NCCL and ranks that stop: each gives one sentence, and no rank waits forever.

#include "nccl_fixture.h"

#include <cstdlib>
#include <thread>

namespace levin::emulator {
namespace {

/// Sets the ranks' timeout in seconds for one test.
struct Patience {
  explicit Patience(const char* seconds) { setenv("LEVIN_EMULATED_NCCL_TIMEOUT", seconds, 1); }
  ~Patience() { unsetenv("LEVIN_EMULATED_NCCL_TIMEOUT"); }
};

Values<float> floats(int device, std::size_t count = 4) { return {device, std::vector<float>(count, 1.0f)}; }

ncclResult_t sum(const Ranks& ranks, int r, const Values<float>& a) {
  return ncclAllReduce(a.data, a.data, a.count, ncclFloat32, ncclSum, ranks.comm(r), ranks.stream(r));
}

TEST_CASE("nccl faults: two communicators of a thread without a group are an error") {
  const FreshDevices fresh(2);
  const Ranks ranks(2);
  const Values<float> a = floats(0), b = floats(1);
  CHECK_NCCL(sum(ranks, 0, a));
  CHECK_EQ(sum(ranks, 1, b), ncclInvalidUsage);
  CHECK(comm_says(ranks.comm(0),
                  "this thread called it on rank 0 already, and now on rank 1. A thread with several "
                  "communicators makes their calls between ncclGroupStart and ncclGroupEnd."));
  ranks.wait();
  CHECK_EQ(ranks.async_error(0), ncclInvalidUsage);
}

TEST_CASE("nccl faults: a thread that waits for only one of its ranks gets an error") {
  const FreshDevices fresh(2);
  const Patience patience("1");
  const Ranks ranks(2);
  const Values<float> a = floats(0);
  CHECK_NCCL(sum(ranks, 0, a));
  CHECK_OK(cudaStreamSynchronize(ranks.stream(0)));
  CHECK_EQ(ranks.async_error(0), ncclInvalidUsage);
  CHECK(comm_says(ranks.comm(1), "the thread that holds rank 0 and rank 1 waits for the first"));
}

TEST_CASE("nccl faults: a missing rank is named") {
  const FreshDevices fresh(2);
  const Patience patience("1");
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  CHECK_NCCL(ncclGetUniqueId(&id));
  CHECK_EQ(ncclCommInitRank(&comm, 3, id, 1), ncclRemoteError);
  CHECK(comm_says(nullptr, "ncclCommInitRank: ranks 0, 2 did not come within 1 s. A thread that makes several ranks"));
  CHECK_EQ(comm, nullptr);
}

TEST_CASE("nccl faults: calls that differ between ranks are named and change no memory") {
  const FreshDevices fresh(2);
  const Ranks ranks(2);
  const Values<float> a = floats(0), b = floats(1);
  const auto call = [&](int r, std::size_t count, ncclDataType_t type, ncclRedOp_t op) {
    const Values<float>& v = r == 0 ? a : b;
    CHECK_NCCL(ncclAllReduce(v.data, v.data, count, type, op, ranks.comm(r), ranks.stream(r)));
  };
  std::string words;
  SUBCASE("count") {
    CHECK_NCCL(ranks.together([&](int r) { call(r, r == 0 ? 4 : 3, ncclFloat32, ncclSum); }));
    words =
        "rank 0 calls ncclAllReduce as collective 1 (count 4, ncclFloat32, ncclSum), but rank 1 calls "
        "ncclAllReduce as collective 1 (count 3, ncclFloat32, ncclSum). All ranks must make the same calls in the "
        "same order.";
  }
  SUBCASE("type") {
    CHECK_NCCL(ranks.together([&](int r) { call(r, 4, r == 0 ? ncclFloat32 : ncclInt32, ncclSum); }));
    words = "rank 1 calls ncclAllReduce as collective 1 (count 4, ncclInt32, ncclSum)";
  }
  SUBCASE("operation") {
    CHECK_NCCL(ranks.together([&](int r) { call(r, 4, ncclFloat32, r == 0 ? ncclSum : ncclMax); }));
    words = "rank 1 calls ncclAllReduce as collective 1 (count 4, ncclFloat32, ncclMax)";
  }
  SUBCASE("root") {
    CHECK_NCCL(ranks.together([&](int r) {
      const Values<float>& v = r == 0 ? a : b;
      CHECK_NCCL(ncclBroadcast(v.data, v.data, 4, ncclFloat32, r, ranks.comm(r), ranks.stream(r)));
    }));
    words = "but rank 1 calls ncclBroadcast as collective 1 (count 4, ncclFloat32, root 1)";
  }
  SUBCASE("call") {
    CHECK_NCCL(ranks.together([&](int r) {
      if (r == 0) return call(r, 4, ncclFloat32, ncclSum);
      CHECK_NCCL(ncclBroadcast(b.data, b.data, 4, ncclFloat32, 0, ranks.comm(1), ranks.stream(1)));
    }));
    words = "but rank 1 calls ncclBroadcast as collective 1 (count 4, ncclFloat32, root 0)";
  }
  SUBCASE("length of a message") {
    CHECK_NCCL(ranks.together([&](int r) {
      if (r == 0) CHECK_NCCL(ncclSend(a.data, 4, ncclFloat32, 1, ranks.comm(0), ranks.stream(0)));
      if (r == 1) CHECK_NCCL(ncclRecv(b.data, 2, ncclFloat32, 0, ranks.comm(1), ranks.stream(1)));
    }));
    words =
        "rank 0 calls ncclSend and ncclRecv message 1 (count 4, ncclFloat32), but rank 1 calls ncclSend and "
        "ncclRecv message 1 (count 2, ncclFloat32)";
  }
  for (int r = 0; r < 2; ++r) {
    CHECK_EQ(ranks.async_error(r), ncclInvalidUsage);
    CHECK(comm_says(ranks.comm(r), words));
  }
  CHECK_EQ(a.read(), std::vector<float>(4, 1.0f));
  CHECK_EQ(b.read(), std::vector<float>(4, 1.0f));
  CHECK_EQ(sum(ranks, 0, a), ncclInvalidUsage);
}

TEST_CASE("nccl faults: pointers and streams are checked") {
  const FreshDevices fresh(2);
  const Ranks ranks(2);
  const Values<float> a = floats(0), b = floats(1);
  const PinnedInts pinned(4);
  float host[4] = {};
  const auto refused = [&](const void* send, void* receive, std::size_t count, cudaStream_t stream, const char* words) {
    CHECK_EQ(ncclAllReduce(send, receive, count, ncclFloat32, ncclSum, ranks.comm(0), stream), ncclInvalidArgument);
    CHECK(comm_says(ranks.comm(0), words));
  };
  const cudaStream_t stream = ranks.stream(0);
  refused(host, a.data, 4, stream, "of rank 0 is pageable host memory; it must be memory of device 0");
  refused(a.data, pinned.data, 4, stream, "of rank 0 is pinned host memory");
  refused(a.data, b.data, 4, stream, "of rank 0 is memory of device 1; it must be memory of device 0");
  refused(a.data + 1, a.data + 1, 4, stream, "has 12 bytes behind it, and the call needs 16");
  refused(nullptr, a.data, 4, stream, "ncclAllReduce: sendbuff of rank 0 is a null pointer");
  refused(a.data, a.data + 1, 3, stream, "sendbuff and recvbuff of rank 0 overlap, but are not in place");
  refused(a.data, a.data, 4, ranks.stream(1), "the stream belongs to device 1, rank 0 to device 0");
  CHECK_EQ(ncclReduce(a.data, a.data, 4, ncclFloat32, ncclSum, 2, ranks.comm(0), stream), ncclInvalidArgument);
  CHECK(comm_says(nullptr, "ncclReduce: root 2 of 2 ranks"));
  CHECK_EQ(ncclSend(a.data, 4, ncclFloat32, -1, ranks.comm(0), stream), ncclInvalidArgument);
  CHECK(comm_says(nullptr, "ncclSend: peer -1 of 2 ranks"));
  ncclGroupStart();
  CHECK_EQ(ncclAllReduce(host, host, 4, ncclFloat32, ncclSum, ranks.comm(0), stream), ncclInvalidArgument);
  CHECK_NCCL(sum(ranks, 1, b));
  CHECK_EQ(ncclGroupEnd(), ncclInvalidArgument);
  CHECK_EQ(queued_work(), 0u);
  CHECK_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

TEST_CASE("nccl faults: memory that is freed before the collective runs") {
  const FreshDevices fresh(2);
  const Ranks ranks(2);
  const Values<float> b = floats(1);
  cudaSetDevice(0);
  float* a = nullptr;
  CHECK_OK(cudaMallocAsync(reinterpret_cast<void**>(&a), 16, ranks.stream(0)));
  ncclGroupStart();
  const TestStream other;
  CHECK_NCCL(ncclAllReduce(a, a, 4, ncclFloat32, ncclSum, ranks.comm(0), ranks.stream(0)));
  CHECK_NCCL(sum(ranks, 1, b));
  CHECK_NCCL(ncclGroupEnd());
  cudaSetDevice(0);
  CHECK_OK(cudaFreeAsync(a, other));  // on another stream than the collective's
  CHECK_OK(cudaStreamSynchronize(other));
  CHECK_ERROR(cudaStreamSynchronize(ranks.stream(0)), cudaErrorIllegalAddress);
  cudaSetDevice(1);
  CHECK_OK(cudaStreamSynchronize(ranks.stream(1)));
  CHECK_EQ(ranks.async_error(1), ncclRemoteError);
  CHECK(comm_says(ranks.comm(1), "rank 0 cannot go on with ncclAllReduce"));
  clear_errors();
}

TEST_CASE("nccl faults: a rank that is aborted or destroyed ends the others' waiting") {
  const FreshDevices fresh(2);
  Ranks ranks(2);
  const Values<float> a = floats(0), b = floats(1);
  const char* words = "";
  CHECK_NCCL(sum(ranks, 0, a));
  std::thread waits([&] {
    cudaSetDevice(0);
    CHECK_OK(cudaStreamSynchronize(ranks.stream(0)));
  });
  SUBCASE("destroyed") {
    CHECK_NCCL(ncclCommDestroy(ranks.comm(1)));
    words = "rank 1 has destroyed its communicator, but rank 0 waits for it in ncclAllReduce as collective 1";
  }
  SUBCASE("aborted while it waits for a message") {
    CHECK_NCCL(ncclRecv(b.data, 4, ncclFloat32, 0, ranks.comm(1), ranks.stream(1)));
    CHECK_NCCL(ncclCommAbort(ranks.comm(1)));
    words = "rank 1 called ncclCommAbort.";
  }
  waits.join();
  ranks.comms[1] = nullptr;
  CHECK_EQ(ranks.async_error(0), ncclRemoteError);
  CHECK(comm_says(ranks.comm(0), words));
  CHECK_EQ(sum(ranks, 0, a), ncclRemoteError);
}

TEST_CASE("nccl faults: another thread aborts a rank that waits") {
  const FreshDevices fresh(2);
  Ranks ranks(2);
  const Values<float> a = floats(0);
  CHECK_NCCL(sum(ranks, 0, a));
  std::thread waits([&] {
    cudaSetDevice(0);
    CHECK_OK(cudaStreamSynchronize(ranks.stream(0)));
  });
  CHECK_NCCL(ncclCommAbort(ranks.comm(0)));
  waits.join();
  ranks.comms[0] = nullptr;
  CHECK_EQ(ranks.async_error(1), ncclRemoteError);
}

TEST_CASE("nccl faults: the arguments of a new communicator are checked") {
  const FreshDevices fresh(2);
  ncclUniqueId id;
  ncclComm_t comms[2] = {};
  CHECK_NCCL(ncclGetUniqueId(&id));
  CHECK_EQ(ncclCommInitRank(comms, 2, id, 2), ncclInvalidArgument);
  CHECK(comm_says(nullptr, "ncclCommInitRank: rank 2 of 2 ranks"));
  CHECK_EQ(ncclCommInitRank(comms, 0, id, 0), ncclInvalidArgument);
  CHECK_EQ(ncclCommInitRank(comms, 1, ncclUniqueId{}, 0), ncclInvalidArgument);
  CHECK(comm_says(nullptr, "the unique id does not come from ncclGetUniqueId"));
  ncclConfig_t config{};
  CHECK_EQ(ncclCommInitRankConfig(comms, 1, id, 0, &config), ncclInvalidArgument);
  const int twice[] = {1, 1};
  CHECK_EQ(ncclCommInitAll(comms, 2, twice), ncclInvalidUsage);
  CHECK(comm_says(nullptr, "both use device 1. Each rank needs a device of its own."));
  CHECK_EQ(ncclCommInitAll(comms, 3, nullptr), ncclInvalidArgument);
  ncclGroupStart();
  CHECK_NCCL(ncclCommInitRank(&comms[0], 2, id, 0));
  cudaSetDevice(1);
  CHECK_NCCL(ncclCommInitRank(&comms[1], 2, id, 0));
  CHECK_EQ(ncclGroupEnd(), ncclInvalidArgument);
  CHECK(comm_says(nullptr, "rank 0 is there already. Each rank comes once."));
  cudaSetDevice(0);
}

TEST_CASE("nccl faults: a finalized communicator refuses calls") {
  const FreshDevices fresh(1);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  CHECK_NCCL(ncclGetUniqueId(&id));
  CHECK_NCCL(ncclCommInitRankConfig(&comm, 1, id, 0, &config));
  CHECK_NCCL(ncclCommFinalize(comm));
  const Values<float> a = floats(0);
  CHECK_EQ(ncclAllReduce(a.data, a.data, 4, ncclFloat32, ncclSum, comm, nullptr), ncclInvalidUsage);
  CHECK(comm_says(comm, "ncclAllReduce: the communicator was finalized"));
  CHECK_NCCL(ncclCommDestroy(comm));
}

}  // namespace
}  // namespace levin::emulator
