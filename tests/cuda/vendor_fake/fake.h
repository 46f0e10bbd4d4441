#pragma once
// What the stand-in for cuBLAS and cuDNN saw, and how it is told to fail.

#include <cstddef>

namespace levin::test {

struct FakeVendor {
  // Calls that were accepted.
  int products = 0, batched_products = 0;
  int convolutions[3] = {};  ///< forward, backward_input, backward_weight
  int choices = 0;           ///< questions for an algorithm
  int handles = 0, descriptors = 0;
  int compute = 0;  ///< compute type of the last product
  int math = -1;    ///< math type of the last convolution
  float beta = -1;  ///< of the last convolution
  // Orders.
  int next_status = 0;             ///< what the next product or convolution answers, if it is not 0
  bool only_undetermined = false;  ///< every algorithm gives other bits each time
  // Arguments that do not fit each other; the call was refused.
  char complaint[256] = "";
};

}  // namespace levin::test

/// The library's one record.
extern "C" levin::test::FakeVendor* levin_fake_vendor();
