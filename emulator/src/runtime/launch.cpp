// Kernel launches: checked as by CUDA, then queued for the engine that runs grids.

#include "../team.h"
#include "state.h"

#include <levin/emulator/execution.h>

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <vector>

namespace levin::emulator {

namespace {

constexpr unsigned kMostThreads = 1024, kMultiprocessors = 4;
constexpr std::size_t kThreadsOfOne = 2048, kBlocksOfOne = 32;

/// Returns the kernel's name without its result type and parameters.
std::string shortened(std::string name) {
  if (name.starts_with("void ")) name.erase(0, 5);
  if (!name.empty() && name.back() == ')') {
    int depth = 0;
    std::size_t i = name.size();
    do {
      --i;
      depth += name[i] == ')' ? 1 : name[i] == '(' ? -1 : 0;
    } while (depth > 0 && i > 0);
    name.erase(i);
  }
  return name;
}

void find_name(Function& f, const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || !info.dli_sname || info.dli_saddr != address) {
    f.name = "at " + text_of(address);
    return;
  }
  f.symbol = info.dli_sname;
  int status = 0;
  char* const readable = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
  f.name = status == 0 ? shortened(readable) : info.dli_sname;
  std::free(readable);
}

Function& function_of(Runtime& rt, const void* address) {
  Function& f = rt.functions[address];
  if (f.name.empty()) find_name(f, address);
  return f;
}

/// Returns the largest dynamic shared memory that a launch of the kernel may request, in bytes.
std::size_t most_dynamic(const Function& f) {
  if (f.asked_shared) return static_cast<std::size_t>(*f.asked_shared);
  return kUsualSharedBytes - std::min(whole_kib(f.array_bytes), kUsualSharedBytes);
}

/// Returns the limit of a block's arrays and dynamic shared memory together, in bytes.
std::size_t shared_limit(const Runtime& rt, const Function& f) {
  return f.asked_shared ? shared_limits(rt.major, rt.minor).block : kUsualSharedBytes;
}

std::string text_of(const dim3& d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

/// The requests of the launch's attributes.
struct Wishes {
  dim3 cluster{1, 1, 1};
  bool clustered = false, cooperative = false;
};

Wishes wishes_of(const cudaLaunchConfig_t& config) {
  Wishes wishes;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttribute& a = config.attrs[i];
    if (a.id == cudaLaunchAttributeClusterDimension) {
      wishes.cluster = dim3(a.val.clusterDim.x, a.val.clusterDim.y, a.val.clusterDim.z);
      wishes.clustered = true;
    } else if (a.id == cudaLaunchAttributeCooperative) {
      wishes.cooperative = a.val.cooperative != 0;
    }
  }
  return wishes;
}

std::size_t blocks_on_one(const Runtime& rt, std::size_t threads, std::size_t shared) {
  const std::size_t whole_warps = (threads + 31) / 32 * 32;
  const SharedLimits limits = shared_limits(rt.major, rt.minor);
  return std::min({kThreadsOfOne / whole_warps, kBlocksOfOne, limits.multiprocessor / (shared + limits.reserved)});
}

cudaError_t check_cluster(Runtime& rt, const std::string& kernel, const dim3& grid, const Wishes& wishes,
                          const Function& f) {
  if (!wishes.clustered) return cudaSuccess;
  const dim3& c = wishes.cluster;
  const std::size_t size = std::size_t{c.x} * c.y * c.z;
  if (rt.major < 9) return rt.refuse(cudaErrorNotSupported, kernel + ": clusters need compute capability 9.0");
  if (size == 0 || size > (f.big_clusters ? 16u : 8u)) {
    return rt.refuse(cudaErrorInvalidClusterSize, kernel + ": a cluster of " + text_of(c) + " blocks");
  }
  if (grid.x % c.x == 0 && grid.y % c.y == 0 && grid.z % c.z == 0) return cudaSuccess;
  return rt.refuse(cudaErrorInvalidConfiguration,
                   kernel + ": a grid of " + text_of(grid) + " blocks is not made of clusters of " + text_of(c));
}

cudaError_t check(Runtime& rt, const cudaLaunchConfig_t& config, const Wishes& wishes, const Function& f) {
  const std::string kernel = "launch of kernel " + f.name;
  const dim3 &g = config.gridDim, &b = config.blockDim;
  if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535) {
    return rt.refuse(cudaErrorInvalidConfiguration, kernel + ": a grid of " + text_of(g) + " blocks");
  }
  const std::size_t threads = std::size_t{b.x} * b.y * b.z;
  if (threads == 0 || threads > kMostThreads || b.z > 64) {
    return rt.refuse(cudaErrorInvalidConfiguration, kernel + ": a block of " + text_of(b) + " threads");
  }
  const std::string fault = shared_memory_fault(f.array_bytes, config.dynamicSmemBytes, shared_limit(rt, f));
  if (!fault.empty()) return rt.refuse(cudaErrorInvalidValue, kernel + ": " + fault);
  if (config.dynamicSmemBytes > most_dynamic(f)) {
    return rt.refuse(cudaErrorInvalidValue,
                     kernel + ": " + std::to_string(config.dynamicSmemBytes) + " bytes of dynamic shared memory, and " +
                         std::to_string(most_dynamic(f)) + " were allowed by cudaFuncSetAttribute.");
  }
  const std::size_t resident = blocks_on_one(rt, threads, config.dynamicSmemBytes) * kMultiprocessors;
  if (wishes.cooperative && std::size_t{g.x} * g.y * g.z > resident) {
    return rt.refuse(cudaErrorCooperativeLaunchTooLarge,
                     kernel + ": " + std::to_string(resident) + " blocks can be resident at a time, not " + text_of(g));
  }
  return check_cluster(rt, kernel, g, wishes, f);
}

/// A kernel with a copy of its arguments.
class Call {
 public:
  Call(const void* function, CallKernel call, std::span<const std::byte> arguments)
      : function_(function), call_(call), blocks_((arguments.size() + sizeof(Block) - 1) / sizeof(Block)) {
    std::memcpy(blocks_.data(), arguments.data(), arguments.size());
  }
  void make() const { call_(function_, blocks_.front().bytes); }

 private:
  struct alignas(kArgumentAlignment) Block {
    std::byte bytes[kArgumentAlignment];
  };
  const void* function_;
  CallKernel call_;
  std::vector<Block> blocks_;
};

std::string run(const Launch& launch) {
  try {
    return run_grid(launch);
  } catch (const std::exception& e) {
    return std::string("kernel ") + launch.kernel + ": " + e.what();
  }
}

}  // namespace

cudaError_t queue_kernel(const cudaLaunchConfig_t* config, const void* function, CallKernel kernel,
                         const std::byte* arguments, std::size_t bytes) {
  return call(Needs::health, [&](Runtime& rt, Lock& lock) {
    if (!config || !function) return cudaErrorInvalidValue;
    Function& f = function_of(rt, function);
    CUstream_st* const stream = rt.find(config->stream);
    if (!stream) return rt.refuse(cudaErrorInvalidResourceHandle, "launch of kernel " + f.name + ": no such stream");
    if (stream->device != this_thread().device) {
      return rt.refuse(cudaErrorInvalidResourceHandle,
                       "launch of kernel " + f.name + ": the stream belongs to device " +
                           std::to_string(stream->device) + ", and " + std::to_string(this_thread().device) +
                           " is the current one");
    }
    const Wishes wishes = wishes_of(*config);
    const cudaError_t e = check(rt, *config, wishes, f);
    if (e != cudaSuccess) return e;
    Launch launch;
    launch.kernel = f.name.c_str();
    launch.grid = config->gridDim;
    launch.block = config->blockDim;
    launch.cluster = wishes.cluster;
    launch.shared_bytes = config->dynamicSmemBytes;
    launch.shared_limit = shared_limit(rt, f);
    launch.array_bytes = &f.array_bytes;
    f.most_threads = std::max(f.most_threads, config->blockDim.x * config->blockDim.y * config->blockDim.z);
    f.most_dynamic = std::max(f.most_dynamic, config->dynamicSmemBytes);
    launch.body = [](void* context) { static_cast<const Call*>(context)->make(); };
    Work work;
    work.kind = Work::Kind::kernel;
    work.opens = 1u << stream->device;
    work.name = launch.kernel;
    work.run = [launch, called = Call(function, kernel, {arguments, bytes})]() mutable {
      launch.context = &called;
      return run(launch);
    };
    return rt.submit(lock, *stream, std::move(work));
  });
}

cudaError_t set_function_attribute(const void* function, cudaFuncAttribute attr, int value) {
  return call(Needs::health, [&](Runtime& rt, Lock&) {
    if (!function) return cudaErrorInvalidDeviceFunction;
    Function& f = function_of(rt, function);
    switch (attr) {
      case cudaFuncAttributeMaxDynamicSharedMemorySize: {
        const std::size_t arrays = whole_kib(f.array_bytes), most = shared_limits(rt.major, rt.minor).block;
        if (value < 0 || arrays + static_cast<std::size_t>(value) > most) {
          return rt.refuse(cudaErrorInvalidValue,
                           "cudaFuncSetAttribute: kernel " + f.name + " asks for " + std::to_string(value) +
                               " bytes of dynamic shared memory beside " + std::to_string(arrays) +
                               " of its arrays; a block of compute capability " + std::to_string(rt.major) + "." +
                               std::to_string(rt.minor) + " has at most " + std::to_string(most));
        }
        f.asked_shared = value;
        ++rt.shared_requests;
        return cudaSuccess;
      }
      case cudaFuncAttributeNonPortableClusterSizeAllowed:
        f.big_clusters = value != 0;
        return cudaSuccess;
      case cudaFuncAttributePreferredSharedMemoryCarveout:
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
  });
}

cudaError_t function_attributes(cudaFuncAttributes* attributes, const void* function) {
  return call(Needs::health, [&](Runtime& rt, Lock&) {
    if (!attributes) return cudaErrorInvalidValue;
    if (!function) return cudaErrorInvalidDeviceFunction;
    *attributes = {};
    attributes->maxThreadsPerBlock = static_cast<int>(kMostThreads);
    attributes->numRegs = 32;
    attributes->ptxVersion = attributes->binaryVersion = rt.major * 10 + rt.minor;
    const Function& f = function_of(rt, function);
    attributes->sharedSizeBytes = whole_kib(f.array_bytes);
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(most_dynamic(f));
    return cudaSuccess;
  });
}

cudaError_t blocks_a_multiprocessor(int* blocks, const void* function, int threads, std::size_t shared) {
  return call(Needs::health, [&](Runtime& rt, Lock&) {
    if (!blocks || threads <= 0) return cudaErrorInvalidValue;
    if (!function) return cudaErrorInvalidDeviceFunction;
    const Function& f = function_of(rt, function);
    const bool fits = threads <= static_cast<int>(kMostThreads) && shared <= most_dynamic(f);
    *blocks = fits ? static_cast<int>(blocks_on_one(rt, static_cast<std::size_t>(threads), shared + f.array_bytes)) : 0;
    return cudaSuccess;
  });
}

cudaError_t active_clusters(int* clusters, const void* function, const cudaLaunchConfig_t* config) {
  return call(Needs::health, [&](Runtime& rt, Lock&) {
    if (!clusters || !config) return cudaErrorInvalidValue;
    if (!function) return cudaErrorInvalidDeviceFunction;
    const Wishes wishes = wishes_of(*config);
    const Function& f = function_of(rt, function);
    const cudaError_t e = check(rt, *config, wishes, f);
    if (e != cudaSuccess) return e;
    const dim3 &b = config->blockDim, &c = wishes.cluster;
    const std::size_t resident =
        blocks_on_one(rt, std::size_t{b.x} * b.y * b.z, config->dynamicSmemBytes + f.array_bytes);
    *clusters = static_cast<int>(resident * kMultiprocessors / (std::size_t{c.x} * c.y * c.z));
    return cudaSuccess;
  });
}

}  // namespace levin::emulator
