#include <levin/kernels/range.h>

#if defined(__CUDACC__)
#include <nvtx3/nvToolsExt.h>
#endif

namespace levin::kernels {

#if defined(__CUDACC__)
void push_range(const char* name) { static_cast<void>(nvtxRangePushA(name)); }
void pop_range() { static_cast<void>(nvtxRangePop()); }
#else  // emulated devices have no profiler
void push_range(const char*) {}
void pop_range() {}
#endif

}  // namespace levin::kernels
