#include <doctest/doctest.h>

#include <levin/core/tensor.h>
#include <levin/kernels/cuda.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cuda/caching.h"
#include "cuda/gate.h"
#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/device/allocator.h"
#include "kernels/cuda/device/streams.h"

#if LEVIN_TEST_EMULATED
#include <levin/emulator/devices.h>
#endif

using namespace levin;
using kernels::cuda::Allocator;
using test::Gate;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

cudaStream_t stream_a() { return kernels::cuda::default_stream(0); }
cudaStream_t stream_b() {
  static const cudaStream_t stream = kernels::cuda::next_pooled_stream(0);
  return stream;
}

void use(void* p, std::size_t bytes, cudaStream_t stream) {
  CHECK(cudaMemsetAsync(p, 1, bytes, stream) == cudaSuccess);
}

std::string refusal(Allocator& memory, std::size_t bytes) {
  try {
    memory.allocate(bytes, stream_a());
  } catch (const OutOfMemory& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a freed block is reused on its stream without a new segment") {
  Allocator memory(0, true);
  for (const std::size_t bytes : {std::size_t{100}, kMiB, 3 * kMiB, 30 * kMiB}) {
    CAPTURE(bytes);
    void* p = memory.allocate(bytes, stream_a());
    CHECK(reinterpret_cast<std::uintptr_t>(p) % 256 == 0);
    const auto asked = memory.report().system_allocations;
    memory.free(p);
    void* q = memory.allocate(bytes - 10, stream_a());
    CHECK(q == p);
    CHECK(memory.report().system_allocations == asked);
    memory.free(q);
  }
}

TEST_CASE("the size of a segment depends on the request") {
  Allocator memory(0, true);
  std::size_t reserved = 0;
  const auto grows = [&](std::size_t bytes) {
    memory.allocate(bytes, stream_a());
    const std::size_t before = std::exchange(reserved, memory.report().reserved);
    return (reserved - before) / kMiB;
  };
  CHECK(grows(1) == 2);
  CHECK(grows(kMiB) == 0);  // the rest of the small segment
  CHECK(grows(kMiB + 1) == 20);
  CHECK(grows(9 * kMiB) == 0);  // the rest of the medium segment
  CHECK(grows(10 * kMiB) == 10);
  CHECK(grows(21 * kMiB + 1) == 22);  // a separate large segment, rounded to 2 MiB
  CHECK(grows(0) == 0);
  CHECK(memory.report().segments == 4);
  CHECK(memory.report().live_blocks == 7);
}

TEST_CASE("blocks are split, and merged with free neighbours") {
  Allocator memory(0, true);
  char* p[4];
  for (char*& each : p) each = static_cast<char*>(memory.allocate(1000, stream_a()));
  for (int i = 1; i < 4; ++i) CHECK(p[i] == p[i - 1] + 1024);
  CHECK(memory.report().splits == 4);
  memory.free(p[0]);
  memory.free(p[2]);
  CHECK(memory.report().merges == 0);  // live blocks are between them
  char* beyond = static_cast<char*>(memory.allocate(2000, stream_a()));
  CHECK(beyond == p[3] + 1024);                     // neither hole is large enough
  CHECK(memory.allocate(900, stream_a()) == p[0]);  // the first of the smallest sufficient ones
  memory.free(p[3]);
  CHECK(memory.report().merges == 1);
  CHECK(memory.allocate(2000, stream_a()) == p[2]);  // the merged hole
  for (void* each :
       {static_cast<void*>(p[0]), static_cast<void*>(p[1]), static_cast<void*>(p[2]), static_cast<void*>(beyond)}) {
    memory.free(each);
  }
  CHECK(memory.report().splits == memory.report().merges);
  CHECK(memory.allocate(kMiB, stream_a()) == p[0]);
  CHECK(memory.report().system_allocations == 1);
}

TEST_CASE("a large block is not split if the rest would be useless") {
  Allocator memory(0, true);
  void* p = memory.allocate(24 * kMiB, stream_a());
  memory.free(p);
  CHECK(memory.allocate(23 * kMiB, stream_a()) == p);
  CHECK(memory.report().splits == 0);
  CHECK(memory.report().allocated == 24 * kMiB);
  memory.free(p);
  CHECK(memory.allocate(22 * kMiB, stream_a()) == p);
  CHECK(memory.report().splits == 1);
}

TEST_CASE("a block belongs to its stream") {
  for (const auto& [own, other] : {std::pair(stream_a(), stream_b()), std::pair(stream_b(), stream_a())}) {
    Allocator memory(0, true);
    void* p = memory.allocate(5000, own);
    memory.free(p);
    void* q = memory.allocate(5000, other);
    CHECK(q != p);
    CHECK(memory.report().segments == 2);
    CHECK(memory.allocate(5000, own) == p);
  }
}

TEST_CASE("a block used by another stream is not reused until that stream has passed it" * LEVIN_HOLDS_A_STREAM) {
  Allocator memory(0, true);
  void* p = memory.allocate(5000, stream_a());
  Gate gate(stream_b());
  use(p, 5000, stream_b());
  memory.record_stream(p, stream_b());
  memory.record_stream(p, stream_b());
  memory.free(p);
  CHECK(memory.report().parked_blocks == 1);
  CHECK(memory.report().allocated == 0);
  void* q = memory.allocate(5000, stream_a());
  CHECK(q != p);
  gate.open();
  CHECK(memory.allocate(5000, stream_a()) == p);
  CHECK(memory.report().parked_blocks == 0);
}

TEST_CASE("use on the block's own stream delays nothing, and foreign memory is ignored") {
  Allocator memory(0, true);
  void* p = memory.allocate(64, stream_a());
  int elsewhere = 0;
  memory.record_stream(p, stream_a());
  memory.record_stream(&elsewhere, stream_b());
  memory.free(&elsewhere);
  memory.free(nullptr);
  memory.free(p);
  CHECK(memory.report().parked_blocks == 0);
  CHECK(memory.allocate(64, stream_a()) == p);
}

TEST_CASE("the cap is enforced with a summary of memory, and a refusal leaves no trace") {
  Allocator memory(0, true);
  void* held = memory.allocate(30 * kMiB, stream_a());
  memory.set_cap(40 * kMiB);
  const auto before = memory.report();
  const std::string text = refusal(memory, 12 * kMiB);
  CHECK(
      text.starts_with("[memory] cuda:0: 12.00 MiB asked for, which the cap forbids: 30.00 MiB in 1 live blocks (peak "
                       "30.00 MiB), 30.00 MiB taken from the device in 1 segments, cap 40.00 MiB; the device has "));
  CHECK(text.ends_with("Use a smaller batch or model, or 16-bit precision, or raise the cap."));
  CHECK(memory.report().allocated == before.allocated);
  CHECK(memory.report().reserved == before.reserved);
  CHECK(memory.report().out_of_memories == 1);
  void* fits = memory.allocate(9 * kMiB, stream_a());  // the usual 20 MiB would not fit
  CHECK(memory.report().reserved == 40 * kMiB);
  memory.set_cap(0);
  CHECK(refusal(memory, 12 * kMiB).empty());
  memory.free(fits);
  memory.free(held);
}

TEST_CASE("if the device is out of memory, the cache is flushed and the request retried") {
  Allocator memory(0, true);
  memory.set_cap(64 * kMiB);
  std::vector<void*> blocks;
  for (int i = 0; i < 2; ++i) blocks.push_back(memory.allocate(32 * kMiB, stream_a()));
  use(blocks[0], 32 * kMiB, stream_b());
  memory.record_stream(blocks[0], stream_b());
  for (void* p : blocks) memory.free(p);
  CHECK(memory.report().parked_blocks == 1);
  CHECK(refusal(memory, 60 * kMiB).empty());
  CHECK(memory.report().retries == 1);
  CHECK(memory.report().segments == 1);
  CHECK(memory.report().reserved == 60 * kMiB);
  CHECK(memory.report().parked_blocks == 0);
}

TEST_CASE("the allocator waits for a block in use by another stream if there is no other") {
  Allocator memory(0, true);
  memory.set_cap(32 * kMiB);
  void* p = memory.allocate(32 * kMiB, stream_a());
  use(p, 32 * kMiB, stream_b());
  memory.record_stream(p, stream_b());
  memory.free(p);
  CHECK(memory.allocate(32 * kMiB, stream_a()) == p);
  CHECK(cudaStreamQuery(stream_b()) == cudaSuccess);
  CHECK(memory.report().system_allocations == 1);
}

TEST_CASE("a request for more than the device has is an error, not a crash") {
  Allocator memory(0, true);
  CHECK(refusal(memory, std::size_t{1} << 42).find("which the device refused") != std::string::npos);
  CHECK(refusal(memory, ~std::size_t{0}).find("more than any device has") != std::string::npos);
  CHECK(refusal(memory, 1000).empty());
  CHECK_THROWS_AS(empty({int64_t{1} << 40}, {.device = levin::cuda(0)}), OutOfMemory);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("statistics return to their initial values") {
  Allocator memory(0, true);
  std::mt19937 random(7);
  std::vector<void*> live;
  for (int i = 0; i < 2000; ++i) {
    if (live.empty() || random() % 5 < 3) {
      live.push_back(memory.allocate(random() % 64 == 0 ? random() % (4 * kMiB) : random() % 20000, stream_a()));
    } else {
      std::swap(live[random() % live.size()], live.back());
      memory.free(live.back());
      live.pop_back();
    }
  }
  CHECK(memory.report().live_blocks == live.size());
  CHECK(memory.report().peak_allocated >= memory.report().allocated);
  CHECK(memory.report().reserved >= memory.report().allocated);
  for (void* p : live) memory.free(p);
  CHECK(memory.report().live_blocks == 0);
  CHECK(memory.report().allocated == 0);
  CHECK(memory.report().splits == memory.report().merges);
  CHECK(memory.report().peak_allocated > 0);
  memory.reset_peaks();
  CHECK(memory.report().peak_allocated == 0);
  memory.empty_cache();
  CHECK(memory.report().reserved == 0);
  CHECK(memory.report().segments == 0);
}

TEST_CASE("without a cache every block is allocated by the device") {
  Allocator memory(0, false);
  void* p = memory.allocate(1000, stream_a());
  CHECK(memory.report().allocated == 1000);
  CHECK(memory.report().reserved == 1000);
  use(p, 1000, stream_a());
  memory.free(p);
  CHECK(memory.report().reserved == 0);
  void* none = memory.allocate(0, stream_a());
  CHECK(none != nullptr);
  use(none, 0, stream_b());
  memory.record_stream(none, stream_b());
  memory.free(none);
  CHECK(memory.report().segments == 0);
  CHECK(refusal(memory, std::size_t{1} << 42).find("which the device refused") != std::string::npos);
}

#if LEVIN_TEST_EMULATED
TEST_CASE("a destroyed allocator leaves nothing on the device") {
  const auto left = [] {
    const auto all = emulator::leaked_allocations();
    return std::count_if(all.begin(), all.end(),
                         [](const std::string& s) { return s.find("allocation") != std::string::npos; });
  };
  const auto before = left();
  for (const bool caching : {true, false}) {
    Allocator memory(0, caching);
    void* p = memory.allocate(5000, stream_a());
    memory.record_stream(p, stream_b());
    memory.allocate(3 * kMiB, stream_a());
    memory.begin_pool(70, stream_a());
    memory.allocate(700, stream_a());
    memory.free(memory.allocate(800, stream_a()));
    memory.free(p);
    memory.end_pool(70);
    CHECK(left() > before);
  }
  CHECK(left() == before);
}
#endif

TEST_CASE("threads share an allocator") {
  Allocator memory(0, true);
  std::atomic<int> overlaps{0};
  std::vector<std::atomic<int>> owner(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<std::pair<char*, std::size_t>> live;
      for (int i = 0; i < 500; ++i) {
        const std::size_t bytes = 1 + random() % 9000;
        live.emplace_back(static_cast<char*>(memory.allocate(bytes, stream_a())), bytes);
        for (std::size_t k = 0; k + 1 < live.size(); ++k) {
          if (live.back().first < live[k].first + live[k].second && live[k].first < live.back().first + bytes)
            ++overlaps;
        }
        if (live.size() > 20) {
          memory.free(live.front().first);
          live.erase(live.begin());
        }
      }
      for (const auto& [p, bytes] : live) memory.free(p);
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(overlaps == 0);
  CHECK(memory.report().allocated == 0);
  CHECK(memory.report().splits == memory.report().merges);
}

TEST_CASE("with NaN filling, all memory is NaN when it is allocated") {
  Stream stream = current_stream(cuda(0));
  const auto next = [&] {  // returns the scratch memory that a kernel would get, and leaves zeros in it
    const kernels::cuda::Scratch<float> scratch(stream, 100);
    std::vector<float> values(100);
    CHECK(cudaMemcpyAsync(values.data(), scratch.get(), scratch.bytes(), cudaMemcpyDeviceToHost, stream_a()) ==
          cudaSuccess);
    CHECK(cudaMemsetAsync(scratch.get(), 0, scratch.bytes(), stream_a()) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream_a()) == cudaSuccess);
    return values;
  };
  const auto wrong = [](float x) { return std::isnan(x); };
  levin::cuda::fill_uninitialized_memory(false);
  next();
  {
    const test::Caching cache;
    next();
    CHECK(next()[99] == 0);  // the zeros that were left there
  }
  levin::cuda::fill_uninitialized_memory(true);
  CHECK(std::ranges::all_of(next(), wrong));
  CHECK(std::ranges::all_of(next(), wrong));
  CHECK(std::ranges::all_of(empty({7}, {.device = cuda(0)}).to_vector<float>(), wrong));
}

TEST_CASE("the public statistics follow tensors") {
  const std::size_t before = cuda::memory_allocated(0);
  cuda::reset_peak_memory_stats(0);
  {
    const Tensor t = empty({1 << 18}, {.device = levin::cuda(0)});
    CHECK(cuda::memory_allocated(0) == before + kMiB);
    CHECK(cuda::memory_reserved(0) >= cuda::memory_allocated(0));
    CHECK(device_backend(DeviceType::cuda).memory_stats(0).allocated == before + kMiB);
  }
  CHECK(cuda::memory_allocated(0) == before);
  CHECK(cuda::max_memory_allocated(0) == before + kMiB);
  CHECK(cuda::memory_summary(0).find("flushes and retries") != std::string::npos);
  cuda::set_per_process_memory_fraction(0.5, 0);
  CHECK(cuda::memory_stats(0).cap == cuda::get_device_properties(0).total_memory / 2);
  cuda::set_memory_cap(0, 0);
  CHECK_THROWS_AS(cuda::set_per_process_memory_fraction(0, 0), ValueError);
  CHECK_THROWS_AS(cuda::set_per_process_memory_fraction(1.5, 0), ValueError);
  cuda::empty_cache();
  CHECK(cuda::memory_allocated(0) == before);
}
