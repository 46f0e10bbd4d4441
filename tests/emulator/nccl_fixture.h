#pragma once
// Helpers of the NCCL tests: ranks of one thread, typed buffers, and the reference loop.

#include "runtime_fixture.h"

#include <nccl.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

#define CHECK_NCCL(call) CHECK_EQ(call, ncclSuccess)
#define REQUIRE_NCCL(call) REQUIRE_EQ(call, ncclSuccess)

namespace levin::emulator {

template <class T>
constexpr ncclDataType_t nccl_type() {
  if constexpr (std::is_same_v<T, std::int8_t>) return ncclInt8;
  if constexpr (std::is_same_v<T, std::uint8_t>) return ncclUint8;
  if constexpr (std::is_same_v<T, std::int32_t>) return ncclInt32;
  if constexpr (std::is_same_v<T, std::uint32_t>) return ncclUint32;
  if constexpr (std::is_same_v<T, std::int64_t>) return ncclInt64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return ncclUint64;
  if constexpr (std::is_same_v<T, __half>) return ncclFloat16;
  if constexpr (std::is_same_v<T, float>) return ncclFloat32;
  if constexpr (std::is_same_v<T, double>) return ncclFloat64;
  return ncclBfloat16;
}

/// An array on a device.
template <class T>
struct Values {
  Values(int on, const std::vector<T>& values) : device(on), count(values.size()) {
    cudaSetDevice(device);
    CHECK_OK(cudaMalloc(&data, count * sizeof(T)));
    CHECK_OK(cudaMemcpy(data, values.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  }
  Values(Values&& other) noexcept
      : device(other.device), count(other.count), data(std::exchange(other.data, nullptr)) {}
  ~Values() { cudaFree(data); }
  std::vector<T> read() const {
    std::vector<T> values(count);
    cudaSetDevice(device);
    CHECK_OK(cudaMemcpy(values.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
  int device;
  std::size_t count;
  T* data = nullptr;
};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Communicators of one thread, each with a device and a stream.
struct Ranks {
  explicit Ranks(int n) : comms(static_cast<std::size_t>(n)), streams(static_cast<std::size_t>(n)) {
    REQUIRE_NCCL(ncclCommInitAll(comms.data(), n, nullptr));
    for (int r = 0; r < n; ++r) {
      cudaSetDevice(r);
      CHECK_OK(cudaStreamCreateWithFlags(&streams[static_cast<std::size_t>(r)], cudaStreamNonBlocking));
    }
  }
  ~Ranks() {
    for (ncclComm_t& comm : comms) {
      if (comm) CHECK_NCCL(ncclCommDestroy(comm));
    }
    for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
    cudaSetDevice(0);
  }
  int size() const { return static_cast<int>(comms.size()); }
  ncclComm_t comm(int r) const { return comms[static_cast<std::size_t>(r)]; }
  cudaStream_t stream(int r) const { return streams[static_cast<std::size_t>(r)]; }

  /// Calls f(rank) for each rank in one group, then waits.
  template <class F>
  ncclResult_t together(F&& f) const {
    ncclGroupStart();
    for (int r = 0; r < size(); ++r) f(r);
    const ncclResult_t result = ncclGroupEnd();
    wait();
    return result;
  }
  void wait() const {
    for (int r = 0; r < size(); ++r) CHECK_OK(cudaStreamSynchronize(stream(r)));
  }
  ncclResult_t async_error(int r) const {
    ncclResult_t code = ncclSuccess;
    CHECK_NCCL(ncclCommGetAsyncError(comm(r), &code));
    return code;
  }

  std::vector<ncclComm_t> comms;
  std::vector<cudaStream_t> streams;
};

inline bool comm_says(ncclComm_t comm, const std::string& part) {
  const std::string text = ncclGetLastError(comm);
  if (text.find(part) != std::string::npos) return true;
  MESSAGE("the error is: ", text);
  return false;
}

// ---- the reference loop

/// Computes one hop, rounded to the type once.
template <class T>
T hop(ncclRedOp_t op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    if (op == ncclMax) return std::max(a, b);
    if (op == ncclMin) return std::min(a, b);
    return static_cast<T>(op == ncclProd ? x * y : x + y);
  } else {
    const auto x = static_cast<double>(a), y = static_cast<double>(b);
    const double result = op == ncclMax    ? std::fmax(x, y)
                          : op == ncclMin  ? std::fmin(x, y)
                          : op == ncclProd ? x * y
                                           : x + y;
    return T(result);
  }
}

/// Reduces element i of all ranks' inputs around the ring from rank `owner` + 1 to `owner`.
template <class T>
T reduced(const std::vector<std::vector<T>>& inputs, std::size_t i, int owner, ncclRedOp_t op) {
  const int n = static_cast<int>(inputs.size());
  const auto own = [&](int r) {
    T value = inputs[static_cast<std::size_t>(r % n)][i];
    if constexpr (!std::is_integral_v<T>) {
      if (op == ncclAvg) value = hop(ncclProd, value, std::is_same_v<T, double> ? T(1.0 / n) : T(float(1.0 / n)));
    }
    return value;
  };
  T sum = own(owner + 1);
  for (int k = 2; k <= n; ++k) sum = hop(op, own(owner + k), sum);
  if constexpr (std::is_integral_v<T>) {
    if (op == ncclAvg) sum = static_cast<T>(sum / static_cast<T>(n));
  }
  return sum;
}

/// Returns the rank at which element i of an all-reduce ends, as documented in docs/emulator.md.
inline int owner_of(std::size_t i, std::size_t count, std::size_t element, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  for (std::size_t at = 0;;) {
    const std::size_t rest = count - at, unit = 16 / element;
    const std::size_t chunk = std::min(32768 / element, ((rest + n - 1) / n + unit - 1) / unit * unit);
    if (i < at + n * chunk) return static_cast<int>((i - at) / chunk);
    at += n * chunk;
  }
}

/// Returns numbers whose sums round and whose products neither underflow nor overflow.
template <class T>
std::vector<T> numbers(int rank, std::size_t count) {
  std::vector<T> values(count);
  std::uint32_t state = 12345u + 7919u * static_cast<std::uint32_t>(rank);
  for (T& v : values) {
    state = state * 1664525u + 1013904223u;
    const int k = static_cast<int>(state >> 16 & 255) - 128;
    if constexpr (std::is_integral_v<T>) {
      v = static_cast<T>(k);
    } else {
      v = T(static_cast<float>(k == 0 ? 1 : k) / 37.0f);
    }
  }
  return values;
}

template <class T>
std::vector<std::vector<T>> inputs_of(int ranks, std::size_t count) {
  std::vector<std::vector<T>> inputs;
  for (int r = 0; r < ranks; ++r) inputs.push_back(numbers<T>(r, count));
  return inputs;
}

}  // namespace levin::emulator
