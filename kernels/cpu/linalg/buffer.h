#pragma once
// Vectors whose memory comes from the cache of the CPU's allocator: factorizations of one size after another ask the
// system for no pages.

#include <levin/core/allocator.h>

#include <cstddef>
#include <vector>

namespace levin::kernels::cpu::linalg {

template <class T>
struct CachedMemory {
  using value_type = T;

  CachedMemory() = default;
  template <class U>
  CachedMemory(const CachedMemory<U>&) {}

  T* allocate(std::size_t n) { return static_cast<T*>(cpu_allocator::allocate(n * sizeof(T))); }
  void deallocate(T* p, std::size_t n) noexcept { cpu_allocator::free(p, n * sizeof(T)); }
  bool operator==(const CachedMemory&) const { return true; }
};

template <class T>
using Buffer = std::vector<T, CachedMemory<T>>;

}  // namespace levin::kernels::cpu::linalg
