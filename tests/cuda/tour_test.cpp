// The code of the tour's chapter on CUDA (docs/tour/5_cuda.md), which runs in the emulator.
#if __has_include(<levin/emulator/execution.h>)
#include "support/page.h"

#include <levin/autograd/ops.h>
#include <levin/kernels/cuda.h>

#include <doctest/doctest.h>

#include "cuda_page.inc"
#endif
