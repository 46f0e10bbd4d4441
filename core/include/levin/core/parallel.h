#pragma once
// Parallel loops over threads; operations use threads only through them. Chunks depend on the range and grain alone, so
// results do not depend on the number of threads; only the assignment of chunks to threads does.

#include <cstdint>
#include <type_traits>

namespace levin {

using std::int64_t;

/// Returns the number of threads that parallel_for uses, the caller included: by default OMP_NUM_THREADS, or the number
/// of cores that this process may run on (affinity, quota).
int num_threads();
/// Sets the number of threads (1 or more); throws ValueError.
void set_num_threads(int threads);
/// True inside the body of a parallel_for, where nested calls run serially.
bool in_parallel_region();
/// Makes every parallel_for of the calling thread run serially, e.g. for a data loader's worker.
void set_thread_serial(bool serial);

namespace detail {
using ChunkFn = void (*)(const void* body, int64_t begin, int64_t end);
void parallel_chunks(int64_t begin, int64_t end, int64_t grain, ChunkFn fn, const void* body);

/// Not inlined, so that each body is compiled once, not for one chunk and for several.
template <class Body>
[[gnu::noinline]] void run_chunk(const void* body, int64_t begin, int64_t end) {
  (*static_cast<Body*>(const_cast<void*>(body)))(begin, end);
}
}  // namespace detail

/// Calls body(b, e) for the chunks [begin + i * grain, min(begin + (i + 1) * grain, end)), in any order and from
/// several threads, and rethrows the first exception. A range of one chunk runs directly in the calling thread. Several
/// threads may call at once; they share the same workers. Throws StateError in a child process that was forked inside
/// body if chunks are missing there.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& body) {
  if (end <= begin) return;
  using Body = std::remove_reference_t<F>;
  if (end - begin <= grain) return detail::run_chunk<Body>(&body, begin, end);
  detail::parallel_chunks(begin, end, grain, detail::run_chunk<Body>, &body);
}

}  // namespace levin
