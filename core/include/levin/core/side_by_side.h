#pragma once
// Thread-local state for threads that compute independently in parallel, such as the replicas of a module.

#include <levin/core/generator.h>

namespace levin {

/// Limits parallel_for of the calling thread to at most `threads` (1 or more); num_threads() returns no more than that.
/// Throws ValueError.
void limit_thread(int threads);

/// Replaces the calling thread's default_generator() while the object lives.
class DefaultGeneratorGuard {
 public:
  /// The generator must outlive the guard. Guards end in the reverse order in which they began.
  explicit DefaultGeneratorGuard(Generator& generator);
  ~DefaultGeneratorGuard();
  DefaultGeneratorGuard(const DefaultGeneratorGuard&) = delete;
  DefaultGeneratorGuard& operator=(const DefaultGeneratorGuard&) = delete;

 private:
  Generator* before_;
};

}  // namespace levin
