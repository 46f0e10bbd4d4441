#pragma once
// The record of the stand-in for NVIDIA's libraries, in the tests that open it.

#include <doctest/doctest.h>

#include <dlfcn.h>

#include "cuda/vendor/fake/fake.h"

namespace levin::test {

inline FakeVendor& fake_record() {
  static FakeVendor& record = *[] {
    void* const library = dlopen(LEVIN_VENDOR_FAKE, RTLD_NOW);
    REQUIRE(library);
    return reinterpret_cast<FakeVendor* (*)()>(dlsym(library, "levin_fake_vendor"))();
  }();
  return record;
}

}  // namespace levin::test
