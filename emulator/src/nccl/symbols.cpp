// NCCL's functions by name, for programs that look them up in its library.

#include <levin/emulator/nccl_api.h>

#include <cstring>

namespace levin::emulator {

void* nccl_function(const char* name) {
  struct Symbol {
    const char* name;
    void* address;
  };
#define LEVIN_SYMBOL(function) \
  Symbol { #function, reinterpret_cast < void*>(&function) }
  static const Symbol symbols[] = {
      LEVIN_SYMBOL(ncclGetVersion),
      LEVIN_SYMBOL(ncclGetUniqueId),
      LEVIN_SYMBOL(ncclCommInitRank),
      LEVIN_SYMBOL(ncclCommInitRankConfig),
      LEVIN_SYMBOL(ncclCommInitAll),
      LEVIN_SYMBOL(ncclCommSplit),
      LEVIN_SYMBOL(ncclCommFinalize),
      LEVIN_SYMBOL(ncclCommDestroy),
      LEVIN_SYMBOL(ncclCommAbort),
      LEVIN_SYMBOL(ncclCommCount),
      LEVIN_SYMBOL(ncclCommCuDevice),
      LEVIN_SYMBOL(ncclCommUserRank),
      LEVIN_SYMBOL(ncclGetErrorString),
      LEVIN_SYMBOL(ncclGetLastError),
      LEVIN_SYMBOL(ncclCommGetAsyncError),
      LEVIN_SYMBOL(ncclAllReduce),
      LEVIN_SYMBOL(ncclReduce),
      LEVIN_SYMBOL(ncclBroadcast),
      LEVIN_SYMBOL(ncclAllGather),
      LEVIN_SYMBOL(ncclReduceScatter),
      LEVIN_SYMBOL(ncclSend),
      LEVIN_SYMBOL(ncclRecv),
      LEVIN_SYMBOL(ncclGroupStart),
      LEVIN_SYMBOL(ncclGroupEnd),
  };
#undef LEVIN_SYMBOL
  for (const Symbol& s : symbols) {
    if (std::strcmp(s.name, name) == 0) return s.address;
  }
  return nullptr;
}

}  // namespace levin::emulator
