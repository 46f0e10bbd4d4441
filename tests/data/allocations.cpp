// Tracks requests to operator new, to detect a reader that trusts a damaged size.
#include "allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::size_t> largest{0};
}

namespace levin::test {
void forget_allocations() { largest = 0; }
std::size_t largest_allocation() { return largest; }
}  // namespace levin::test

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  for (std::size_t seen = largest; bytes > seen && !largest.compare_exchange_weak(seen, bytes);) {
  }
  return std::malloc(bytes > 0 ? bytes : 1);
}
void* operator new(std::size_t bytes) {
  if (void* p = operator new(bytes, std::nothrow)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
