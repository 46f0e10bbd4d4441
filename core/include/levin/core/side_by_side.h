#pragma once
// State for threads that compute independently side by side, such as the replicas of a module.

#include <levin/core/generator.h>

namespace levin {

/// Gives the calling thread its share: its parallel_for uses at most `threads` (1 or more), and num_threads() says so.
/// Throws ValueError.
void limit_thread(int threads);

/// The calling thread's default_generator() is another one while the object lives.
class DefaultGeneratorGuard {
 public:
  explicit DefaultGeneratorGuard(Generator& generator);
  ~DefaultGeneratorGuard();
  DefaultGeneratorGuard(const DefaultGeneratorGuard&) = delete;
  DefaultGeneratorGuard& operator=(const DefaultGeneratorGuard&) = delete;

 private:
  Generator* before_;
};

}  // namespace levin
