#pragma once
// The one door for threads. Chunks are a function of the range and grain alone, so results do not depend on the number
// of threads; only who computes a chunk does.

#include <cstdint>
#include <type_traits>

namespace levin {

using std::int64_t;

/// Threads that parallel_for uses; at first OMP_NUM_THREADS or the cores this process may run on (affinity, quota).
int num_threads();
/// Sets it (1 or more); throws ValueError.
void set_num_threads(int threads);
/// True inside a parallel_for body: nested calls run serially.
bool in_parallel_region();
/// Marks the calling thread as one that works alone (a data loader's worker): its parallel_for runs serially.
void set_thread_serial(bool serial);

namespace detail {
using ChunkFn = void (*)(const void* body, int64_t begin, int64_t end);
void parallel_chunks(int64_t begin, int64_t end, int64_t grain, ChunkFn fn, const void* body);
}  // namespace detail

/// Calls body(b, e) for the chunks [begin + i * grain, min(begin + (i + 1) * grain, end)), in any order and from
/// several threads; the first exception is rethrown here. A range of one chunk runs at once in the caller.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& body) {
  if (end <= begin) return;
  if (end - begin <= grain) {
    body(begin, end);
    return;
  }
  using Body = std::remove_reference_t<F>;
  detail::parallel_chunks(begin, end, grain, [](const void* f, int64_t b, int64_t e) {
    (*static_cast<Body*>(const_cast<void*>(f)))(b, e);
  }, &body);
}

}  // namespace levin
