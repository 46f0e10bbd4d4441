#pragma once
// Makes device memory come from the cache while an object lives, also under the address sanitizer. Without the cache
// every freed tensor makes the host wait, which would disturb tests about waiting.

#include "kernels/cuda/device/allocator.h"

namespace levin::test {

class Caching {
 public:
  explicit Caching(int device = 0)
      : allocator_(kernels::cuda::allocator(device)), before_(allocator_.set_caching(true)) {}
  ~Caching() { allocator_.set_caching(before_); }
  Caching(const Caching&) = delete;
  Caching& operator=(const Caching&) = delete;

 private:
  kernels::cuda::Allocator& allocator_;
  bool before_;
};

}  // namespace levin::test
