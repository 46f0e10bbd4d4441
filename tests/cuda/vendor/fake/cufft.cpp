// A stand-in for cuFFT on emulated devices: sums in double. It refuses the addresses and plans that cuFFT refuses,
// gives wrong results for input that leaves cuFFT's undefined, and overwrites the input that cuFFT may overwrite.

#include <cmath>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "cuda/vendor/fake/numbers.h"

namespace levin::test::fake {

namespace {

constexpr int kSuccess = 0, kInvalidPlan = 1, kInvalidValue = 4;
constexpr int kR2C = 0x2a, kC2R = 0x2c, kC2C = 0x29, kD2Z = 0x6a, kZ2D = 0x6c, kZ2Z = 0x69;
constexpr std::size_t kWorkspace = 512;

struct Plan {
  int device = 0, type = 0;
  bool own_workspace = true, made = false, destroyed = false;
  long long n = 0, lines = 0;
  cudaStream_t stream = nullptr;
  char* workspace = nullptr;
};

struct Transform {
  bool real_in, real_out;
  Type type;
  long long n, lines;
  double sign;
  const void* in;
  void* out;
  char* workspace;
};

/// One element of the result per thread.
__global__ void transform(Transform t) {
  const long long half = t.n / 2 + 1, e = thread_index();
  if (e < static_cast<long long>(kWorkspace)) t.workspace[e] = 1;
  const long long inputs = t.real_out ? half : t.n, outputs = t.real_in ? half : t.n;
  if (e >= t.lines * outputs) return;
  const long long first = e / outputs * inputs, k = e % outputs;
  double re = 0, im = 0;
  for (long long j = 0; j < inputs; ++j) {
    const double angle = t.sign * 2 * M_PI * static_cast<double>(j * k % t.n) / static_cast<double>(t.n);
    const double c = std::cos(angle), s = std::sin(angle);
    const double x = load(t.in, t.type, t.real_in ? first + j : 2 * (first + j));
    const double y = t.real_in ? 0 : load(t.in, t.type, 2 * (first + j) + 1);
    const bool alone = j == 0 || 2 * j == t.n;
    re += (t.real_out && !alone ? 2 : 1) * (x * c - y * s);
    im += x * s + y * c;
    if (t.real_out && alone) re += y;  // the result is undefined unless y is 0
  }
  store(t.out, t.type, t.real_out ? e : 2 * e, re);
  if (!t.real_out) store(t.out, t.type, 2 * e + 1, im);
}

__global__ void overwrite(void* p, Type type, long long n) {
  if (thread_index() < n) store(p, type, thread_index(), std::numeric_limits<double>::quiet_NaN());
}

std::mutex mutex;
std::vector<Plan>& plans() {
  static std::vector<Plan> all;
  return all;
}

int execute(int handle, int type, const void* in, void* out, int direction) {
  FakeVendor& record = *levin_fake_vendor();
  if (const int status = std::exchange(record.next_status, 0)) return status;
  Plan p;
  {
    const std::lock_guard lock(mutex);
    if (handle < 0 || handle >= static_cast<int>(plans().size())) return kInvalidPlan;
    p = plans()[static_cast<std::size_t>(handle)];
  }
  int device = -1;
  cudaGetDevice(&device);
  const bool wide = type == kD2Z || type == kZ2D || type == kZ2Z;
  if (!p.made || p.destroyed || p.type != type) return kInvalidPlan;
  if (device != p.device) return complain("the plan of device %d is used on %d", p.device, device), kInvalidPlan;
  if (!p.workspace) return complain("no workspace"), kInvalidValue;
  for (const void* pointer : {in, static_cast<const void*>(out)})
    if (!pointer || reinterpret_cast<std::uintptr_t>(pointer) % (wide ? 16 : 8) != 0) return kInvalidValue;
  if (direction != -1 && direction != 1) return kInvalidValue;
  Transform t{.real_in = type == kR2C || type == kD2Z,
              .real_out = type == kC2R || type == kZ2D,
              .type = wide ? Type::f64 : Type::f32,
              .n = p.n,
              .lines = p.lines,
              .sign = static_cast<double>(direction),
              .in = in,
              .out = out,
              .workspace = p.workspace};
  const long long half = p.n / 2 + 1;
  if (!queue(transform, p.stream, p.lines * (t.real_in ? half : p.n) + static_cast<long long>(kWorkspace), t))
    return kInvalidValue;
  if (t.real_out && !queue(overwrite, p.stream, p.lines * 2 * half, const_cast<void*>(in), t.type, p.lines * 2 * half))
    return kInvalidValue;
  ++record.transforms;
  return kSuccess;
}

/// Calls f with the plan of the handle.
template <class F>
int with_plan(int handle, F f) {
  const std::lock_guard lock(mutex);
  if (handle < 0 || handle >= static_cast<int>(plans().size())) return kInvalidPlan;
  return f(plans()[static_cast<std::size_t>(handle)]);
}

}  // namespace

extern "C" {

int cufftCreate(int* handle) {
  const std::lock_guard lock(mutex);
  Plan p;
  cudaGetDevice(&p.device);
  *handle = static_cast<int>(plans().size());
  plans().push_back(p);
  ++levin_fake_vendor()->plans;
  return kSuccess;
}

int cufftDestroy(int handle) {
  return with_plan(handle, [](Plan& p) {
    if (std::exchange(p.destroyed, true)) return kInvalidPlan;
    --levin_fake_vendor()->plans;
    return kSuccess;
  });
}

int cufftSetAutoAllocation(int handle, int automatic) {
  return with_plan(handle, [&](Plan& p) { return p.own_workspace = automatic != 0, kSuccess; });
}

int cufftMakePlanMany64(int handle, int rank, long long* n, long long* in_embed, long long, long long,
                        long long* out_embed, long long, long long, int type, long long batch, std::size_t* workspace) {
  return with_plan(handle, [&](Plan& p) {
    if (p.own_workspace) return complain("cuFFT would allocate the workspace"), kInvalidValue;
    if (p.made) return complain("the plan is made twice"), kInvalidPlan;
    const bool known = rank == 1 && n[0] > 0 && batch > 0 && !in_embed && !out_embed;
    if (!known) return complain("an unknown layout"), kInvalidValue;
    p.n = n[0], p.lines = batch, p.type = type, p.made = true;
    *workspace = kWorkspace;
    return kSuccess;
  });
}

int cufftSetStream(int handle, cudaStream_t stream) {
  return with_plan(handle, [&](Plan& p) { return p.stream = stream, kSuccess; });
}

int cufftSetWorkArea(int handle, void* workspace) {
  return with_plan(handle, [&](Plan& p) { return p.workspace = static_cast<char*>(workspace), kSuccess; });
}

int cufftExecC2C(int p, const void* in, void* out, int direction) { return execute(p, kC2C, in, out, direction); }
int cufftExecZ2Z(int p, const void* in, void* out, int direction) { return execute(p, kZ2Z, in, out, direction); }
int cufftExecR2C(int p, const void* in, void* out) { return execute(p, kR2C, in, out, -1); }
int cufftExecD2Z(int p, const void* in, void* out) { return execute(p, kD2Z, in, out, -1); }
int cufftExecC2R(int p, const void* in, void* out) { return execute(p, kC2R, in, out, 1); }
int cufftExecZ2D(int p, const void* in, void* out) { return execute(p, kZ2D, in, out, 1); }

}  // extern "C"

}  // namespace levin::test::fake
