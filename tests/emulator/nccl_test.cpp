// Every collective, type and operation compared with a plain loop, with all ranks in one thread.

#include "nccl_fixture.h"

#include <doctest/doctest.h>

namespace levin::emulator {
namespace {

constexpr ncclRedOp_t kOps[] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};

template <class T>
std::vector<Values<T>> on_devices(const std::vector<std::vector<T>>& inputs) {
  std::vector<Values<T>> buffers;
  for (std::size_t r = 0; r < inputs.size(); ++r) buffers.emplace_back(static_cast<int>(r), inputs[r]);
  return buffers;
}

template <class T>
std::vector<Values<T>> empty_buffers(int ranks, std::size_t count) {
  return on_devices(std::vector<std::vector<T>>(static_cast<std::size_t>(ranks), std::vector<T>(count, T(0))));
}

std::size_t at(int r) { return static_cast<std::size_t>(r); }

template <class T>
void check_all_reduce(const Ranks& ranks, std::size_t count, ncclRedOp_t op, bool in_place) {
  const auto inputs = inputs_of<T>(ranks.size(), count);
  const auto send = on_devices(inputs);
  const auto receive = empty_buffers<T>(ranks.size(), count);
  CHECK_NCCL(ranks.together([&](int r) {
    T* const out = in_place ? send[at(r)].data : receive[at(r)].data;
    CHECK_NCCL(ncclAllReduce(send[at(r)].data, out, count, nccl_type<T>(), op, ranks.comm(r), ranks.stream(r)));
  }));
  std::vector<T> wanted(count);
  for (std::size_t i = 0; i < count; ++i)
    wanted[i] = reduced(inputs, i, owner_of(i, count, sizeof(T), ranks.size()), op);
  for (int r = 0; r < ranks.size(); ++r) CHECK(same_bits((in_place ? send : receive)[at(r)].read(), wanted));
}

template <class T>
void check_reduce(const Ranks& ranks, std::size_t count, ncclRedOp_t op, int root) {
  const auto inputs = inputs_of<T>(ranks.size(), count);
  const auto send = on_devices(inputs);
  const Values<T> receive(root, std::vector<T>(count, T(0)));
  CHECK_NCCL(ranks.together([&](int r) {
    CHECK_NCCL(ncclReduce(send[at(r)].data, r == root ? receive.data : nullptr, count, nccl_type<T>(), op, root,
                          ranks.comm(r), ranks.stream(r)));
  }));
  std::vector<T> wanted(count);
  for (std::size_t i = 0; i < count; ++i) wanted[i] = reduced(inputs, i, root, op);
  CHECK(same_bits(receive.read(), wanted));
  for (int r = 0; r < ranks.size(); ++r) CHECK(same_bits(send[at(r)].read(), inputs[at(r)]));
}

template <class T>
void check_reduce_scatter(const Ranks& ranks, std::size_t count, ncclRedOp_t op, bool in_place) {
  const auto inputs = inputs_of<T>(ranks.size(), count * at(ranks.size()));
  const auto send = on_devices(inputs);
  const auto receive = empty_buffers<T>(ranks.size(), count);
  CHECK_NCCL(ranks.together([&](int r) {
    T* const out = in_place ? send[at(r)].data + at(r) * count : receive[at(r)].data;
    CHECK_NCCL(ncclReduceScatter(send[at(r)].data, out, count, nccl_type<T>(), op, ranks.comm(r), ranks.stream(r)));
  }));
  for (int r = 0; r < ranks.size(); ++r) {
    std::vector<T> wanted(count), found = (in_place ? send : receive)[at(r)].read();
    for (std::size_t i = 0; i < count; ++i) wanted[i] = reduced(inputs, at(r) * count + i, r, op);
    if (in_place)
      found = std::vector<T>(found.begin() + r * static_cast<int>(count),
                             found.begin() + (r + 1) * static_cast<int>(count));
    CHECK(same_bits(found, wanted));
  }
}

template <class T>
void check_all_gather(const Ranks& ranks, std::size_t count, bool in_place) {
  const auto inputs = inputs_of<T>(ranks.size(), count);
  const auto send = on_devices(inputs);
  std::vector<T> wanted;
  std::vector<std::vector<T>> begin;
  for (int r = 0; r < ranks.size(); ++r) {
    wanted.insert(wanted.end(), inputs[at(r)].begin(), inputs[at(r)].end());
    begin.emplace_back(count * at(ranks.size()), T(0));
    std::copy(inputs[at(r)].begin(), inputs[at(r)].end(), begin.back().begin() + r * static_cast<int>(count));
  }
  const auto receive = in_place ? on_devices(begin) : empty_buffers<T>(ranks.size(), wanted.size());
  CHECK_NCCL(ranks.together([&](int r) {
    const T* const from = in_place ? receive[at(r)].data + at(r) * count : send[at(r)].data;
    CHECK_NCCL(ncclAllGather(from, receive[at(r)].data, count, nccl_type<T>(), ranks.comm(r), ranks.stream(r)));
  }));
  for (int r = 0; r < ranks.size(); ++r) CHECK(same_bits(receive[at(r)].read(), wanted));
}

template <class T>
void check_broadcast(const Ranks& ranks, std::size_t count, int root) {
  const auto inputs = inputs_of<T>(ranks.size(), count);
  const auto buffers = on_devices(inputs);
  const Values<T> other(root, std::vector<T>(count, T(0)));
  CHECK_NCCL(ranks.together([&](int r) {
    T* const out = r == root ? other.data : buffers[at(r)].data;
    CHECK_NCCL(ncclBroadcast(buffers[at(r)].data, out, count, nccl_type<T>(), root, ranks.comm(r), ranks.stream(r)));
  }));
  for (int r = 0; r < ranks.size(); ++r)
    CHECK(same_bits((r == root ? other : buffers[at(r)]).read(), inputs[at(root)]));
}

template <class T>
void check_messages(const Ranks& ranks, std::size_t count) {
  const int n = ranks.size();
  const auto inputs = inputs_of<T>(n, count);
  const auto send = on_devices(inputs);
  const auto receive = empty_buffers<T>(n, count * at(n));
  CHECK_NCCL(ranks.together([&](int r) {  // all to all, including itself
    for (int peer = 0; peer < n; ++peer) {
      CHECK_NCCL(ncclSend(send[at(r)].data, count, nccl_type<T>(), peer, ranks.comm(r), ranks.stream(r)));
      CHECK_NCCL(ncclRecv(receive[at(r)].data + at(peer) * count, count, nccl_type<T>(), peer, ranks.comm(r),
                          ranks.stream(r)));
    }
  }));
  std::vector<T> wanted;
  for (const auto& input : inputs) wanted.insert(wanted.end(), input.begin(), input.end());
  for (int r = 0; r < n; ++r) CHECK(same_bits(receive[at(r)].read(), wanted));
}

TEST_CASE_TEMPLATE("nccl: collectives of 1 to 4 ranks match a plain loop in the ring's order", T, std::int8_t,
                   std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, __half, float, double,
                   __nv_bfloat16) {
  const FreshDevices fresh(4);
  for (int n = 1; n <= 4; ++n) {
    CAPTURE(n);
    const Ranks ranks(n);
    for (const ncclRedOp_t op : kOps) {
      CAPTURE(op);
      check_all_reduce<T>(ranks, 61, op, false);
      check_all_reduce<T>(ranks, 3, op, true);
      check_reduce<T>(ranks, 45, op, n - 1);
      check_reduce_scatter<T>(ranks, 19, op, op == ncclMax);
    }
    check_all_gather<T>(ranks, 23, false);
    check_all_gather<T>(ranks, 23, true);
    for (int root = 0; root < n; ++root) check_broadcast<T>(ranks, 17, root);
    check_messages<T>(ranks, 21);
  }
}

TEST_CASE("nccl: calls with many chunks and without any") {
  const FreshDevices fresh(3);
  for (const int n : {1, 3}) {
    const Ranks ranks(n);
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{24576}, std::size_t{140001}}) {
      CAPTURE(count);
      check_all_reduce<float>(ranks, count, ncclSum, false);
      check_all_reduce<__half>(ranks, count, ncclAvg, true);
      check_reduce<double>(ranks, count, ncclSum, 0);
      check_reduce_scatter<float>(ranks, count / 3, ncclSum, true);
      check_all_gather<std::int32_t>(ranks, count / 3, false);
      check_broadcast<std::uint8_t>(ranks, count, n - 1);
      check_messages<float>(ranks, count / 3);
    }
  }
}

TEST_CASE("nccl: 8-bit floats are copied; a number wins over NaN") {
  const FreshDevices fresh(2);
  const Ranks ranks(2);
  const auto bytes = on_devices(inputs_of<std::uint8_t>(2, 9));
  CHECK_NCCL(ranks.together([&](int r) {
    CHECK_NCCL(
        ncclBroadcast(bytes[at(r)].data, bytes[at(r)].data, 9, ncclFloat8e5m2, 1, ranks.comm(r), ranks.stream(r)));
  }));
  CHECK(same_bits(bytes[0].read(), numbers<std::uint8_t>(1, 9)));
  CHECK_EQ(ncclAllReduce(bytes[0].data, bytes[0].data, 9, ncclFloat8e4m3, ncclSum, ranks.comm(0), ranks.stream(0)),
           ncclInvalidArgument);
  CHECK(comm_says(nullptr, "the emulator moves ncclFloat8e4m3, but does not reduce it"));
  const auto floats = on_devices<float>({{NAN, 1, 2}, {3, NAN, 5}});
  CHECK_NCCL(ranks.together([&](int r) {
    CHECK_NCCL(
        ncclAllReduce(floats[at(r)].data, floats[at(r)].data, 3, ncclFloat32, ncclMax, ranks.comm(r), ranks.stream(r)));
  }));
  CHECK_EQ(floats[1].read(), std::vector<float>{3, 1, 5});
}

TEST_CASE("nccl: the order of a sum is the ring's") {
  const FreshDevices fresh(3);
  const Ranks ranks(3);
  // 2^24 + 1 is 2^24 in float. Element 0 belongs to rank 0, so 1 + 2^24 - 2^24 is computed.
  const auto buffers = on_devices<float>({{-16777216.0f}, {1.0f}, {16777216.0f}});
  CHECK_NCCL(ranks.together([&](int r) {
    CHECK_NCCL(ncclAllReduce(buffers[at(r)].data, buffers[at(r)].data, 1, ncclFloat32, ncclSum, ranks.comm(r),
                             ranks.stream(r)));
  }));
  CHECK_EQ(buffers[0].read()[0], 0.0f);
  const auto others = on_devices<float>({{1.0f}, {-16777216.0f}, {16777216.0f}});
  CHECK_NCCL(ranks.together([&](int r) {
    CHECK_NCCL(
        ncclAllReduce(others[at(r)].data, others[at(r)].data, 1, ncclFloat32, ncclSum, ranks.comm(r), ranks.stream(r)));
  }));
  CHECK_EQ(others[2].read()[0], 1.0f);
}

TEST_CASE("nccl: collectives are ordered in their streams") {
  const FreshDevices fresh(2);
  for (const std::uint64_t seed : {0u, 3u, 4u}) {
    config().seed = seed;
    const Ranks ranks(2);
    const auto a = on_devices<std::int32_t>({{1, 2}, {10, 20}});
    std::vector<std::int32_t> early = a[0].read();
    CHECK_NCCL(ncclGroupStart());
    for (int r = 0; r < 2; ++r) {
      cudaSetDevice(r);
      CHECK_OK(cudaMemsetAsync(a[at(r)].data, 0, 4, ranks.stream(r)));  // before
      CHECK_NCCL(ncclAllReduce(a[at(r)].data, a[at(r)].data, 2, ncclInt32, ncclSum, ranks.comm(r), ranks.stream(r)));
      CHECK_NCCL(ncclAllReduce(a[at(r)].data, a[at(r)].data, 2, ncclInt32, ncclSum, ranks.comm(r), ranks.stream(r)));
    }
    CHECK_NCCL(ncclGroupEnd());
    if (seed == 0) CHECK_GE(queued_work(), 5u);  // nothing waits yet, and nothing reads the memset of rank 0
    CHECK_OK(cudaStreamSynchronize(ranks.stream(1)));
    CHECK_EQ(a[1].read(), std::vector<std::int32_t>{0, 44});
    ranks.wait();
    CHECK_EQ(a[0].read(), std::vector<std::int32_t>{0, 44});
  }
}

TEST_CASE("nccl: messages of a group proceed together, whatever their streams") {
  const FreshDevices fresh(2);
  const Ranks ranks(2);
  constexpr std::size_t count = 100000;  // more than the queues between ranks hold
  const auto send = on_devices(inputs_of<float>(2, count));
  const auto receive = empty_buffers<float>(2, count);
  std::vector<cudaStream_t> others(2);
  ncclGroupStart();
  for (int r = 0; r < 2; ++r) {
    cudaSetDevice(r);
    CHECK_OK(cudaStreamCreateWithFlags(&others[at(r)], cudaStreamNonBlocking));
    CHECK_NCCL(ncclSend(send[at(r)].data, count, ncclFloat32, 1 - r, ranks.comm(r), ranks.stream(r)));
    CHECK_NCCL(ncclRecv(receive[at(r)].data, count, ncclFloat32, 1 - r, ranks.comm(r), others[at(r)]));
  }
  CHECK_NCCL(ncclGroupEnd());
  std::vector<float> found(count);
  CHECK_OK(cudaMemcpyAsync(found.data(), receive[0].data, count * 4, cudaMemcpyDeviceToHost, others[0]));
  CHECK_OK(cudaStreamSynchronize(others[0]));
  CHECK(same_bits(found, numbers<float>(1, count)));
  ranks.wait();
  for (cudaStream_t stream : others) CHECK_OK(cudaStreamDestroy(stream));
}

TEST_CASE("nccl: a rank's calls run in the order of the calls, whatever their streams") {
  const FreshDevices fresh(2);
  const Ranks ranks(2);
  const auto first = on_devices<float>({{1}, {2}}), second = on_devices<float>({{10}, {20}});
  std::vector<cudaStream_t> others(2);
  ncclGroupStart();
  for (int r = 0; r < 2; ++r) {
    cudaSetDevice(r);
    CHECK_OK(cudaStreamCreateWithFlags(&others[at(r)], cudaStreamNonBlocking));
    const cudaStream_t one = r == 0 ? ranks.stream(r) : others[at(r)], two = r == 0 ? others[at(r)] : ranks.stream(r);
    CHECK_NCCL(ncclAllReduce(first[at(r)].data, first[at(r)].data, 1, ncclFloat32, ncclSum, ranks.comm(r), one));
    CHECK_NCCL(ncclAllReduce(second[at(r)].data, second[at(r)].data, 1, ncclFloat32, ncclMax, ranks.comm(r), two));
  }
  CHECK_NCCL(ncclGroupEnd());
  CHECK_OK(cudaStreamSynchronize(others[0]));  // the second call's stream; the first call has run before
  CHECK_OK(cudaStreamQuery(ranks.stream(0)));
  ranks.wait();
  CHECK_NCCL(ranks.async_error(0));
  CHECK_EQ(first[0].read()[0], 3.0f);
  CHECK_EQ(second[1].read()[0], 20.0f);
  for (cudaStream_t stream : others) CHECK_OK(cudaStreamDestroy(stream));
}

TEST_CASE("nccl: properties of a communicator") {
  const FreshDevices fresh(3);
  int version = 0, value = -1;
  CHECK_NCCL(ncclGetVersion(&version));
  CHECK_EQ(version, NCCL_VERSION_CODE);
  const int devices[] = {2, 0};
  ncclComm_t comms[2];
  CHECK_NCCL(ncclCommInitAll(comms, 2, devices));
  CHECK_NCCL(ncclCommCount(comms[0], &value));
  CHECK_EQ(value, 2);
  CHECK_NCCL(ncclCommCuDevice(comms[0], &value));
  CHECK_EQ(value, 2);
  CHECK_NCCL(ncclCommUserRank(comms[1], &value));
  CHECK_EQ(value, 1);
  CHECK_EQ(std::string(ncclGetErrorString(ncclRemoteError)), "remote process exited or there was a network error");
  for (ncclComm_t comm : comms) CHECK_NCCL(ncclCommDestroy(comm));
  CHECK_EQ(ncclCommDestroy(comms[0]), ncclInvalidArgument);
  CHECK(comm_says(nullptr, "no such communicator. It is null or was destroyed."));
}

TEST_CASE("nccl: a communicator is split by color and ordered by key") {
  const FreshDevices fresh(4);
  const Ranks ranks(4);
  std::vector<ncclComm_t> parts(4, nullptr);
  ncclGroupStart();
  for (int r = 0; r < 4; ++r) {
    CHECK_NCCL(ncclCommSplit(ranks.comm(r), r == 3 ? NCCL_SPLIT_NOCOLOR : 7, -r, &parts[at(r)], nullptr));
  }
  REQUIRE_NCCL(ncclGroupEnd());
  CHECK_EQ(parts[3], nullptr);
  for (int r = 0; r < 3; ++r) {
    int rank = -1, count = 0;
    CHECK_NCCL(ncclCommUserRank(parts[at(r)], &rank));
    CHECK_NCCL(ncclCommCount(parts[at(r)], &count));
    CHECK_EQ(rank, 2 - r);
    CHECK_EQ(count, 3);
  }
  const auto a = on_devices<float>({{1}, {2}, {4}});
  ncclGroupStart();
  for (int r = 0; r < 3; ++r) {
    CHECK_NCCL(ncclAllReduce(a[at(r)].data, a[at(r)].data, 1, ncclFloat32, ncclSum, parts[at(r)], ranks.stream(r)));
  }
  CHECK_NCCL(ncclGroupEnd());
  CHECK_OK(cudaStreamSynchronize(ranks.stream(0)));
  CHECK_EQ(a[0].read()[0], 7.0f);
  ranks.wait();
  for (int r = 0; r < 3; ++r) CHECK_NCCL(ncclCommDestroy(parts[at(r)]));
}

}  // namespace
}  // namespace levin::emulator
