#include "kernels/cuda/vendor/cufft.h"

#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/device/backend.h"
#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/vendor/library.h"

#include <levin/core/error.h>

#include <fmt/format.h>

#include <cstdlib>
#include <mutex>
#include <vector>

namespace levin::kernels::cuda {

namespace cufft_api {

namespace {

Functions open() {
  static const LibraryNames names{"cuFFT", "LEVIN_CUFFT_LIBRARY", {"libcufft.so.12", "libcufft.so.11", "libcufft.so"}};
  SharedLibrary library(names);
  Functions f;
  library.find(f.create, "cufftCreate");
  library.find(f.destroy, "cufftDestroy");
  library.find(f.set_auto_allocation, "cufftSetAutoAllocation");
  library.find(f.make_plan, "cufftMakePlanMany64");
  library.find(f.set_stream, "cufftSetStream");
  library.find(f.set_work_area, "cufftSetWorkArea");
  library.find(f.c2c, "cufftExecC2C");
  library.find(f.z2z, "cufftExecZ2Z");
  library.find(f.r2c, "cufftExecR2C");
  library.find(f.d2z, "cufftExecD2Z");
  library.find(f.c2r, "cufftExecC2R");
  library.find(f.z2d, "cufftExecZ2D");
  library.keep();
  return f;
}

const Functions& cufft() {
  static const Functions functions = open();
  return functions;
}

void check(int status, const char* call) {
  if (status != kSuccess)
    throw DeviceError(fmt::format("[fft] {} failed with number {} of cuFFT's list of results. Set LEVIN_CUFFT_LIBRARY "
                                  "to the path of another version, or use the CPU.", call, status));
}

Type type_of(const CufftCall& c) {
  switch (c.kind) {
    case CufftKind::complex: return c.wide ? kZ2Z : kC2C;
    case CufftKind::to_half: return c.wide ? kD2Z : kR2C;
    case CufftKind::to_real: return c.wide ? kZ2D : kC2R;
  }
  return kC2C;
}

struct Plan {
  int device = 0;
  CufftCall call;
  Handle handle = 0;
  std::size_t workspace = 0;
};

Plan make_plan(int device, const CufftCall& call) {
  Plan p{device, call};
  long long n = call.n;
  check(cufft().create(&p.handle), "cufftCreate");
  check(cufft().set_auto_allocation(p.handle, 0), "cufftSetAutoAllocation");
  check(cufft().make_plan(p.handle, 1, &n, nullptr, 1, n, nullptr, 1, n, type_of(call), call.lines, &p.workspace),
        "cufftMakePlanMany64");
  return p;
}

/// Plans that no call uses, the latest last. A plan is used by one thread at a time: it has one stream and one
/// workspace.
class Plans {
 public:
  Plan take(int device, const CufftCall& call) {
    {
      const std::lock_guard lock(mutex_);
      for (std::size_t i = free_.size(); i-- > 0;)
        if (free_[i].device == device && free_[i].call == call) {
          const Plan p = free_[i];
          free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
          return p;
        }
    }
    return make_plan(device, call);
  }
  /// Destroying a plan waits for its work, so the oldest one goes.
  void put_back(const Plan& p) {
    constexpr std::size_t most = 64;
    const std::lock_guard lock(mutex_);
    free_.push_back(p);
    if (free_.size() <= most) return;
    check(cufft().destroy(free_.front().handle), "cufftDestroy");
    free_.erase(free_.begin());
  }

 private:
  std::mutex mutex_;
  std::vector<Plan> free_;
};

Plans& plans() {
  static Plans& all = *new Plans;  // never destroyed: at exit the device may already be gone
  return all;
}

/// cuFFT needs every address, also of real numbers, to be one where a complex number can stand. It returns
/// CUFFT_INVALID_VALUE (4) for others, such as the second element of a real tensor.
bool is_aligned(const CufftCall& call, const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % (call.wide ? 16 : 8) == 0;
}

std::int64_t bytes_of(const CufftCall& call, bool real) {
  const std::int64_t half = call.n / 2 + 1, complex = call.kind == CufftKind::complex ? call.n : half;
  return call.lines * (real ? call.n : 2 * complex) * (call.wide ? 8 : 4);
}

int execute(const Plan& p, const void* in, void* out) {
  const int direction = p.call.inverse ? kInverse : kForward;
  switch (type_of(p.call)) {
    case kC2C: return cufft().c2c(p.handle, in, out, direction);
    case kZ2Z: return cufft().z2z(p.handle, in, out, direction);
    case kR2C: return cufft().r2c(p.handle, in, out);
    case kD2Z: return cufft().d2z(p.handle, in, out);
    case kC2R: return cufft().c2r(p.handle, in, out);
    case kZ2D: return cufft().z2d(p.handle, in, out);
  }
  return 0;
}

}  // namespace
}  // namespace cufft_api

bool has_cufft() {
  static const bool opened = [] {
#if defined(LEVIN_EMULATED)
    if (!std::getenv("LEVIN_CUFFT_LIBRARY")) return false;
#endif
    try {
      cufft_api::cufft();
      return true;
    } catch (const DeviceError&) {
      return false;
    }
  }();
  return opened;
}

void run_cufft(const CufftCall& call, const void* in, void* out, Stream& stream) {
  using namespace cufft_api;
  const int device = stream.device().index;
  const DeviceGuard guard(device);
  const Plan plan = plans().take(device, call);
  const Scratch<std::byte> workspace(stream, static_cast<std::int64_t>(plan.workspace));
  check(cufft().set_stream(plan.handle, static_cast<cudaStream_t>(stream.handle())), "cufftSetStream");
  check(cufft().set_work_area(plan.handle, workspace.get()), "cufftSetWorkArea");
  const std::int64_t in_bytes = bytes_of(call, call.kind == CufftKind::to_half);
  const std::int64_t out_bytes = bytes_of(call, call.kind == CufftKind::to_real);
  const Scratch<std::byte> in_copy(stream, is_aligned(call, in) ? 0 : in_bytes);
  const Scratch<std::byte> out_copy(stream, is_aligned(call, out) ? 0 : out_bytes);
  if (in_copy.get()) copy_bytes(in_copy.get(), stream.device(), in, stream.device(), in_copy.bytes(), stream);
  check(execute(plan, in_copy.get() ? in_copy.get() : in, out_copy.get() ? out_copy.get() : out), "the transform");
  if (out_copy.get()) copy_bytes(out, stream.device(), out_copy.get(), stream.device(), out_copy.bytes(), stream);
  plans().put_back(plan);
}

}  // namespace levin::kernels::cuda
