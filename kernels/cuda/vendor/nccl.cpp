// Loads NCCL as a table of functions and turns its errors into exceptions.

#include "kernels/cuda/vendor/nccl.h"

#include "kernels/cuda/vendor/library.h"

#include <levin/core/error.h>

#include <fmt/format.h>

#include <cstdlib>

#if __has_include(<levin/emulator/nccl_api.h>)
#include <levin/emulator/nccl_api.h>
#define LEVIN_HAS_EMULATED_NCCL 1
#endif

namespace levin::kernels::cuda {

namespace {

template <class Library>
nccl_api::Functions functions_of(const Library& library) {
  nccl_api::Functions f;
  library.find(f.get_version, "ncclGetVersion");
  library.find(f.get_unique_id, "ncclGetUniqueId");
  library.find(f.init_rank, "ncclCommInitRank");
  library.find(f.init_rank_config, "ncclCommInitRankConfig");
  library.find(f.init_all, "ncclCommInitAll");
  library.find(f.split, "ncclCommSplit");
  library.find(f.finalize, "ncclCommFinalize");
  library.find(f.destroy, "ncclCommDestroy");
  library.find(f.abort, "ncclCommAbort");
  library.find(f.async_error, "ncclCommGetAsyncError");
  library.find(f.count, "ncclCommCount");
  library.find(f.device, "ncclCommCuDevice");
  library.find(f.rank, "ncclCommUserRank");
  library.find(f.error_string, "ncclGetErrorString");
  library.find(f.last_error, "ncclGetLastError");
  library.find(f.all_reduce, "ncclAllReduce");
  library.find(f.reduce, "ncclReduce");
  library.find(f.broadcast, "ncclBroadcast");
  library.find(f.all_gather, "ncclAllGather");
  library.find(f.reduce_scatter, "ncclReduceScatter");
  library.find(f.send, "ncclSend");
  library.find(f.recv, "ncclRecv");
  library.find(f.group_start, "ncclGroupStart");
  library.find(f.group_end, "ncclGroupEnd");
  return f;
}

#if defined(LEVIN_HAS_EMULATED_NCCL)
struct Emulated {
  template <class F>
  void find(F*& function, const char* symbol) const {
    function = reinterpret_cast<F*>(emulator::nccl_function(symbol));
  }
};
#endif

nccl_api::Functions open_nccl() {
  static const LibraryNames names{"NCCL", "LEVIN_NCCL_LIBRARY", {"libnccl.so.2", "libnccl.so"}};
#if defined(LEVIN_HAS_EMULATED_NCCL)
  if (const char* path = std::getenv(names.variable); !path || !*path) return functions_of(Emulated());
#endif
  constexpr int oldest = 21801;  // the first with ncclCommSplit
  SharedLibrary library(names);
  int version = 0;
  nccl_api::Result (*get_version)(int*) = nullptr;
  library.find(get_version, "ncclGetVersion");
  if (get_version(&version) != nccl_api::kSuccess || version < oldest) {
    throw DeviceError(
        fmt::format("[nccl] NCCL has version {}.{}.{}, but 2.18.1 or newer is needed. Set {} to the path "
                    "of one.",
                    version / 10000, version / 100 % 100, version % 100, names.variable));
  }
  const nccl_api::Functions f = functions_of(library);
  library.keep();
  return f;
}

}  // namespace

const nccl_api::Functions& nccl() {
  static const nccl_api::Functions functions = open_nccl();
  return functions;
}

void check_failed(nccl_api::Result result, const char* call, nccl_api::Comm comm) {
  const char* const words = nccl().last_error(comm);
  throw DeviceError(fmt::format("[nccl] {} failed: {}.{}{}", call, nccl().error_string(result),
                                words && *words ? " " : "", words ? words : ""));
}

}  // namespace levin::kernels::cuda
