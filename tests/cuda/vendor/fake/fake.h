#pragma once
// Records the calls of the stand-in for cuBLAS, cuDNN and cuFFT, and makes it fail on request.

#include <cstddef>

namespace levin::test {

struct FakeVendor {
  // Calls that were accepted.
  int products = 0, batched_products = 0;
  int convolutions[3] = {};  ///< forward, backward_input, backward_weight
  int choices = 0;           ///< queries for an algorithm
  int handles = 0, descriptors = 0;
  int transforms = 0, plans = 0;
  int compute = 0;  ///< compute type of the last product
  int math = -1;    ///< math type of the last convolution
  float beta = -1;  ///< beta of the last convolution
  // Requests.
  int next_status = 0;             ///< status that the next product, convolution or transform returns, if not 0
  bool rounds_products = false;    ///< rounds the products of 16-bit floats to their type before it adds beta C
  bool only_undetermined = false;  ///< every algorithm is nondeterministic
  // The reason why a call was refused for inconsistent arguments.
  char complaint[256] = "";
};

}  // namespace levin::test

/// Returns the library's only record.
extern "C" levin::test::FakeVendor* levin_fake_vendor();
