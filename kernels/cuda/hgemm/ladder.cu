// The list of the ladder of 16-bit floats.

#include "kernels/cuda/hgemm/ladder.h"

#include "kernels/cuda/hgemm/hgemm.cuh"
#include "kernels/cuda/hgemm/rungs.h"

namespace levin::kernels::cuda {

namespace {

/// Calls f.template operator()<T>() with Levin's C++ type for a product of 16-bit floats.
template <class F>
auto with_half(const MatmulArgs& args, F&& f) {
  if (args.out.dtype == DType::f16) return f.template operator()<Half>();
  return f.template operator()<BFloat16>();
}
bool is_half(const MatmulArgs& args) { return args.out.dtype == DType::f16 || args.out.dtype == DType::bf16; }

template <class T>
bool any_size(const Problem<T>& p) {  // the grid of the ladder's smallest tiles fits one launch
  return fits_launch(tile_grid(p.m, p.n, p.k, p.batch, 8, 32, 1), p.m, p.n, p.k);
}
bool any(const MatmulArgs& args) {
  return is_half(args) && with_half(args, [&]<class T>() { return any_size(problem_of<T>(args)); });
}
bool vectors(const MatmulArgs& args) {
  return any(args) && with_half(args, [&]<class T>() { return can_hgemm_persistent(problem_of<T>(args)); });
}

bool groups(const MatmulArgs& args) {
  const Stream stream = current_stream(args.out.device);
  return vectors(args) &&
         with_half(args, [&]<class T>() { return can_hgemm_warpgroups(problem_of<T>(args), stream); });
}

bool boxes(const MatmulArgs& args) {
  const Stream stream = current_stream(args.out.device);
  return vectors(args) &&
         with_half(args, [&]<class T>() { return can_hgemm_copy_engine(problem_of<T>(args), stream); });
}

#define LEVIN_HALF_RUNG(function)               \
  [](const MatmulArgs& args, Stream& stream) {  \
    with_half(args, [&]<class L>() {            \
      using T [[maybe_unused]] = DeviceType<L>; \
      function(problem_of<L>(args), stream);    \
    });                                         \
  }

constexpr MatmulRung kRungs[] = {
    {"naive", "a thread an element", any, LEVIN_HALF_RUNG(HalfRungs<T>::naive)},
    {"shared_tile", "tiles in shared memory", any, LEVIN_HALF_RUNG(HalfRungs<T>::shared_tile)},
    {"tensor_cores", "mma.sync fed by ldmatrix", vectors, LEVIN_HALF_RUNG(HalfRungs<T>::tensor_cores)},
    {"swizzled", "no bank conflicts", vectors, LEVIN_HALF_RUNG(HalfRungs<T>::swizzled)},
    {"async_stages", "the next tiles arrive by cp.async", vectors, LEVIN_HALF_RUNG(HalfRungs<T>::async_stages)},
    {"register_buffers", "two sets of fragments", vectors, LEVIN_HALF_RUNG(HalfRungs<T>::register_buffers)},
    {"persistent", "blocks walk over tiles in an order that L2 likes", vectors,
     LEVIN_HALF_RUNG(run_hgemm_persistent<T>)},
    {"warpgroups", "wgmma, four warps at once", groups, LEVIN_HALF_RUNG(HalfRungs<T>::warpgroups)},
    {"copy_engine", "the copy engine fills the buffers", boxes, LEVIN_HALF_RUNG(run_hgemm_copy_engine<T>)},
    {"any_operand", "rows that begin anywhere", any, LEVIN_HALF_RUNG(run_hgemm_any_operand<T>)},
};
#undef LEVIN_HALF_RUNG

}  // namespace

std::span<const MatmulRung> hgemm_rungs() { return kRungs; }

}  // namespace levin::kernels::cuda
